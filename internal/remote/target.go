package remote

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"thru/internal/fault"
)

// SSHScheme is the scheme of an end point that is reached by ssh.
const SSHScheme = "ssh"

// SSHTarget parses ssh://[USER@]HOST[:PORT].
func SSHTarget(endPoint string) (destination string, port int, err error) {
	u, err := url.Parse(endPoint)
	hint := "give the end point as ssh://root@esx1 or ssh://admin@10.0.0.5:2222"
	if err != nil || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || strings.HasPrefix(u.Hostname(), "-") {
		return "", 0, fault.Usagef(hint, "%q is not an ssh end point", endPoint)
	}
	if _, secret := u.User.Password(); secret {
		return "", 0, fault.Usagef("use a key (ssh-copy-id): all users can read a password in a command line", "a password does not belong in an end point")
	}
	if p := u.Port(); p != "" {
		if port, err = strconv.Atoi(p); err != nil || port < 1 || port > 65535 {
			return "", 0, fault.Usagef(hint, "port %s is not valid", p)
		}
	}
	destination = u.Hostname()
	if user := u.User.Username(); user != "" {
		if strings.HasPrefix(user, "-") {
			return "", 0, fault.Usagef(hint, "%q is not a user name", user)
		}
		destination = fmt.Sprintf("%s@%s", user, destination)
	}
	return destination, port, nil
}
