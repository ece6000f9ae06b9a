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
	const like = "give a URL such as sftp://user@host/folder/file or smb://user@host/share/file"
	u, err := url.Parse(text)
	if err != nil && strings.Contains(text, "@") { // part of it may be a password, so none of it is shown
		return URL{}, fault.Usagef(like+"; give the password in THRU_PASSWORD or with --password-stdin", "the argument is not a URL of a file")
	}
	if len(text) > longestURL || err != nil || u.Host == "" || u.Scheme == "" || u.Opaque != "" {
		return URL{}, fault.Usagef(like, "%.200q is not a URL of a file", text)
	}
	t := URL{Protocol: strings.ToLower(u.Scheme), user: u.User.Username(), host: u.Hostname(), port: u.Port(), Path: strings.TrimPrefix(u.Path, "/")}
	if err := t.known(); err != nil {
		return t, err
	}
	if _, secret := u.User.Password(); secret {
		return t, fault.Usagef("give the password in THRU_PASSWORD or with --password-stdin: all users can see a command line", "a password does not belong in the URL")
	}
	n, err := strconv.Atoi(t.port)
	switch {
	case t.port != "" && (err != nil || n < 1 || n > 65535):
		return t, fault.Usagef(like, "%s is not a port", t.port)
	case t.host == "" || strings.HasPrefix(t.host, "-") || strings.HasPrefix(t.user, "-"):
		return t, fault.Usagef(like, "%.200q has no host", text)
	case t.Path == "":
		return t, fault.Usagef(like, "%.200q has no file", text)
	case t.port != "" && u.User == nil && strings.Contains(text, "@"): // USER:1/2@HOST reads as port 1
		return URL{}, fault.Usagef("encode an @ of the name as %40; give a password in THRU_PASSWORD or with --password-stdin", "the URL has an @ after the port")
	case u.RawQuery != "" || u.Fragment != "":
		return t, fault.Usagef("encode a ? of the name as %3F and a # as %23", "the URL of a transfer cannot have a query")
	}
	if err := t.ours(); err != nil {
		return t, err
	}
	return t, transfer.CheckName(t.Path)
}

// ours refuses parts that a thru:// URL cannot have.
func (u URL) ours() error {
	if u.Protocol == clients.Thru && u.user != "" {
		return fault.Usagef("omit "+u.user+"@: the join string gives the permission", "thru:// has no users")
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
		return fault.Usagef("enable SMB 2 or 3 at the server, and use smb://", "thru refuses SMB1: it requests one block at a time, which is slow on a long path, and it is open to tampering (Microsoft removed it)")
	}
	_, err := clients.Of(u.Protocol)
	return err
}
