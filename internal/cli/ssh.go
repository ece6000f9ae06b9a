package cli

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"thru/internal/fault"
	"thru/internal/host/platform"
	"thru/internal/measure"
)

// bySSH reads a host on which no thru runs, such as an ESXi server, by its own
// commands over the system's ssh, and judges its facts. It changes nothing there.
func (c *checkCmd) bySSH(ctx context.Context, e *env, runner runnerOfFacts) (*measure.Document, error) {
	begin := time.Now()
	destination, port, err := sshTarget(c.EndPoint)
	if err != nil {
		return nil, err
	}
	p := e.Board(false)
	defer p.Clear()
	p.Checking("logging in at " + destination)
	r := platform.SSH(destination, port)
	defer r.Close()
	system, err := platform.Detect(ctx, r)
	if err != nil {
		return nil, err
	}
	p.Checking("reading " + destination + " (" + system + ")")
	facts, err := platform.Read(ctx, system, r)
	if err != nil {
		return nil, err
	}
	return runner.CheckFacts(c.EndPoint, destination, facts, begin)
}

// runnerOfFacts is the part of control.Runner that bySSH needs.
type runnerOfFacts interface {
	CheckFacts(name, addr string, facts measure.Facts, begin time.Time) (*measure.Document, error)
}

// sshScheme begins the name of an end point that is reached by ssh.
const sshScheme = "ssh"

// sshTarget reads ssh://[USER@]HOST[:PORT].
func sshTarget(endPoint string) (destination string, port int, err error) {
	u, err := url.Parse(endPoint)
	hint := "such as ssh://root@esx1 or ssh://admin@10.0.0.5:2222"
	if err != nil || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || strings.HasPrefix(u.Hostname(), "-") {
		return "", 0, fault.Usagef(hint, "%q is no end point of ssh", endPoint)
	}
	if _, secret := u.User.Password(); secret {
		return "", 0, fault.Usagef("use a key (ssh-copy-id): a password in the command line is seen by all users", "a password does not belong in an end point")
	}
	if p := u.Port(); p != "" {
		if port, err = strconv.Atoi(p); err != nil || port < 1 || port > 65535 {
			return "", 0, fault.Usagef(hint, "port %s is none", p)
		}
	}
	destination = u.Hostname()
	if user := u.User.Username(); user != "" {
		if strings.HasPrefix(user, "-") {
			return "", 0, fault.Usagef(hint, "%q is no user", user)
		}
		destination = fmt.Sprintf("%s@%s", user, destination)
	}
	return destination, port, nil
}
