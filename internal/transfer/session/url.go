package session

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"thru/internal/fault"
	"thru/internal/transfer"
	"thru/internal/transfer/clients"
)

// URL is PROTO://[USER@]HOST[:PORT]/PATH.
type URL struct {
	Protocol, user, host, port string
	Path                       string // decoded, without the leading slash
}

// longestURL limits a URL: a path of 4095 bytes, each encoded.
const longestURL = 16 << 10

// String returns the URL without a query and without secrets.
func (u URL) String() string {
	shown := url.URL{Scheme: u.Protocol, Host: u.host, Path: "/" + u.Path}
	if strings.Contains(u.host, ":") {
		shown.Host = "[" + u.host + "]"
	}
	if u.port != "" {
		shown.Host += ":" + u.port
	}
	if u.user != "" {
		shown.User = url.User(u.user)
	}
	if u.port != "" && u.user == "" { // otherwise the text before @ could be a password
		shown.RawPath = strings.ReplaceAll(shown.EscapedPath(), "@", "%40")
	}
	return shown.String()
}

// ParseURL parses the URL of a transfer. It refuses an invalid name before
// any connection.
func ParseURL(text string) (URL, error) {
	const like = "such as sftp://user@host/folder/file or smb://user@host/share/file"
	u, err := url.Parse(text)
	if err != nil && strings.Contains(text, "@") { // part of it may be a password, so none of it is shown
		return URL{}, fault.Usagef(like+"; the password comes by THRU_PASSWORD or --password-stdin", "what stands there is no URL of a file")
	}
	if len(text) > longestURL || err != nil || u.Host == "" || u.Scheme == "" || u.Opaque != "" {
		return URL{}, fault.Usagef(like, "%.200q is no URL of a file", text)
	}
	t := URL{Protocol: strings.ToLower(u.Scheme), user: u.User.Username(), host: u.Hostname(), port: u.Port(), Path: strings.TrimPrefix(u.Path, "/")}
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
	case t.Path == "":
		return t, fault.Usagef(like, "%.200q names no file", text)
	case t.port != "" && u.User == nil && strings.Contains(text, "@"): // USER:1/2@HOST reads as port 1
		return URL{}, fault.Usagef("encode @ as %40 where it belongs to the name; a password comes by THRU_PASSWORD or --password-stdin", "an @ stands behind a port")
	case u.RawQuery != "" || u.Fragment != "":
		return t, fault.Usagef("encode ? as %3F and # as %23 where they belong to the name", "a URL of a transfer has no query")
	}
	if err := t.ours(); err != nil {
		return t, err
	}
	return t, transfer.CheckName(t.Path)
}

// ours refuses parts that a thru:// URL cannot have.
func (u URL) ours() error {
	if u.Protocol == clients.Thru && u.user != "" {
		return fault.Usagef("leave "+u.user+"@ out: who may do this has been let in by a join string", "thru:// has no users")
	}
	return nil
}

// EndPoint returns the end point of a thru:// URL; "" for any other.
func (u URL) EndPoint() string {
	switch {
	case u.Protocol != clients.Thru:
		return ""
	case u.port != "":
		return net.JoinHostPort(u.host, u.port)
	}
	return u.host
}

// known refuses protocols that thru does not support, with the reason.
func (u URL) known() error {
	switch u.Protocol {
	case "smb1", "cifs":
		return fault.Usagef("smb:// speaks SMB 2 and 3; switch one of them on at the server", "SMB1 is refused: it asks for one block at a time, so a long path stays empty, and it can be rewritten on the way (Microsoft removed it)")
	}
	_, err := clients.Of(u.Protocol)
	return err
}
