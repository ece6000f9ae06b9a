package cli

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"thru/internal/fault"
	"thru/internal/transfer"
	"thru/internal/transfer/clients"
)

// transferURL is PROTO://[USER@]HOST[:PORT]/PATH.
type transferURL struct {
	protocol, user, host, port string
	path                       string // decoded, without the slash before it
}

// longestURL bounds it: a path of 4095 bytes, each encoded.
const longestURL = 16 << 10

// String is the URL without a query and without secrets.
func (u transferURL) String() string {
	shown := url.URL{Scheme: u.protocol, Host: u.host, Path: "/" + u.path}
	if strings.Contains(u.host, ":") {
		shown.Host = "[" + u.host + "]"
	}
	if u.port != "" {
		shown.Host += ":" + u.port
	}
	if u.user != "" {
		shown.User = url.User(u.user)
	}
	if u.port != "" && u.user == "" { // else what stands before @ could be a password
		shown.RawPath = strings.ReplaceAll(shown.EscapedPath(), "@", "%40")
	}
	return shown.String()
}

// parseTransferURL reads the URL of a transfer. What is wrong with a name is
// said before anything is connected.
func parseTransferURL(text string) (transferURL, error) {
	const like = "such as sftp://user@host/folder/file or smb://user@host/share/file"
	u, err := url.Parse(text)
	if err != nil && strings.Contains(text, "@") { // part of it may be a password, so none of it is told
		return transferURL{}, fault.Usagef(like+"; the password comes by THRU_PASSWORD or --password-stdin", "what stands there is no URL of a file")
	}
	if len(text) > longestURL || err != nil || u.Host == "" || u.Scheme == "" || u.Opaque != "" {
		return transferURL{}, fault.Usagef(like, "%.200q is no URL of a file", text)
	}
	t := transferURL{protocol: strings.ToLower(u.Scheme), user: u.User.Username(), host: u.Hostname(), port: u.Port(), path: strings.TrimPrefix(u.Path, "/")}
	if err := t.known(); err != nil {
		return t, err
	}
	if _, secret := u.User.Password(); secret {
		return t, fault.Usagef("THRU_PASSWORD or --password-stdin: what stands in a command line is seen by all users", "a password does not belong in the URL")
	}
	n, err := strconv.Atoi(t.port)
	switch {
	case t.port != "" && (err != nil || n < 1 || n > 65535):
		return t, fault.Usagef(like, "port %s is none", t.port)
	case t.host == "" || strings.HasPrefix(t.host, "-") || strings.HasPrefix(t.user, "-"):
		return t, fault.Usagef(like, "%.200q names no host", text)
	case t.path == "":
		return t, fault.Usagef(like, "%.200q names no file", text)
	case t.port != "" && u.User == nil && strings.Contains(text, "@"): // USER:1/2@HOST reads as port 1
		return transferURL{}, fault.Usagef("encode @ as %40 where it belongs to the name; a password comes by THRU_PASSWORD or --password-stdin", "an @ stands behind a port")
	case u.RawQuery != "" || u.Fragment != "":
		return t, fault.Usagef("encode ? as %3F and # as %23 where they belong to the name", "a URL of a transfer has no query")
	}
	if err := t.ours(); err != nil {
		return t, err
	}
	return t, transfer.CheckName(t.path)
}

// ours refuses what a URL of thru's own cannot have.
func (u transferURL) ours() error {
	if u.protocol == clients.Thru && u.user != "" {
		return fault.Usagef("leave "+u.user+"@ out: who may do this has been let in by a join string", "thru:// has no users")
	}
	return nil
}

// endPoint is the end point of a URL of thru's own; "" of any other.
func (u transferURL) endPoint() string {
	switch {
	case u.protocol != clients.Thru:
		return ""
	case u.port != "":
		return net.JoinHostPort(u.host, u.port)
	}
	return u.host
}

// known refuses protocols that thru does not speak, with the reason.
func (u transferURL) known() error {
	switch u.protocol {
	case "smb1", "cifs":
		return fault.Usagef("smb:// speaks SMB 2 and 3; switch one of them on at the server", "SMB1 is refused: it asks for one block at a time, so a long path stays empty, and it can be rewritten on the way (Microsoft removed it)")
	}
	_, err := clients.Of(u.protocol)
	return err
}
