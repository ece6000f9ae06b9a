package vsphere

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
	vimxml "github.com/vmware/govmomi/vim25/xml"

	"thru/internal/fault"
)

// Ends of a session that are not the server's fault.
var (
	errNotVSphere = errors.New("it is neither a vCenter nor an ESXi host")
	errClosed     = errors.New("vsphere: the session was closed")
)

// winRefused is Windows' WSAECONNREFUSED, which Go on Windows does not map to
// ECONNREFUSED.
const winRefused = syscall.Errno(10061)

// faultOf returns the fault in a server's answer, or nil.
func faultOf(err error) types.BaseMethodFault {
	var with interface{ Fault() types.BaseMethodFault }
	if errors.As(err, &with) {
		return with.Fault()
	}
	return nil
}

// isFault reports whether a server answered with that kind of fault.
func isFault[F types.BaseMethodFault](err error) bool {
	_, is := faultOf(err).(F)
	return is
}

// untrusted is the error for a certificate that was not accepted.
type untrusted struct {
	addr string
	sum  [32]byte
	err  error
}

// Error names the server, its certificate and the reason.
func (u *untrusted) Error() string {
	return fmt.Sprintf("the certificate of %s (SHA-256 %s) is not accepted: %v", u.addr, hex.EncodeToString(u.sum[:]), u.err)
}

// Unwrap returns the reason.
func (u *untrusted) Unwrap() error { return u.err }

// verify accepts a server's certificate: one that the system trusts for that
// host, or one that is pinned.
func verify(host, addr string, cfg Config) func(tls.ConnectionState) error {
	return func(s tls.ConnectionState) error {
		if cfg.Insecure {
			return nil
		}
		chain := x509.NewCertPool()
		for _, c := range s.PeerCertificates[1:] {
			chain.AddCert(c)
		}
		leaf := s.PeerCertificates[0]
		_, err := leaf.Verify(x509.VerifyOptions{DNSName: host, Intermediates: chain})
		if err == nil {
			return nil
		}
		sum := sha256.Sum256(leaf.Raw)
		if cfg.Pin != nil {
			err = cfg.Pin(addr, sum)
		}
		if err != nil {
			return &untrusted{addr, sum, err}
		}
		return nil
	}
}

// serviceVersion returns the newest API version that the server and this
// client know (vimServiceVersions.xml, which needs no session).
func serviceVersion(ctx context.Context, web *soap.Client) (string, error) {
	u := web.URL()
	u.Path = strings.TrimSuffix(u.Path, "/") + "/vimServiceVersions.xml"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", err
	}
	var reply serviceVersions
	err = web.Do(ctx, req, func(res *http.Response) error {
		if res.StatusCode == http.StatusServiceUnavailable {
			return errors.New("its web service is unavailable (503): it may still be starting")
		}
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("%w: it answers %s", errNotVSphere, res.Status)
		}
		reply, err = readVersions(res.Body)
		return err
	})
	if err != nil && ctx.Err() != nil {
		return "", ctx.Err() // a server that fails as the time ends has timed out
	}
	if err != nil {
		return "", err
	}
	return reply.choose()
}

// serviceVersions is the document with the server's API versions.
type serviceVersions struct {
	Namespaces []struct {
		Name    string   `xml:"name"`
		Version string   `xml:"version"`
		Prior   []string `xml:"priorVersions>version"`
	} `xml:"namespace"`
}

// readVersions reads that document.
func readVersions(in io.Reader) (reply serviceVersions, err error) {
	if err := xml.NewDecoder(io.LimitReader(in, 64<<10)).Decode(&reply); err != nil {
		return reply, fmt.Errorf("%w: its answer cannot be read: %w", errNotVSphere, err)
	}
	return reply, nil
}

// choose returns our version where the server knows it, otherwise the
// server's.
func (s serviceVersions) choose() (string, error) {
	for _, n := range s.Namespaces {
		if n.Name != "urn:"+vim25.Namespace || n.Version == "" {
			continue
		}
		if slices.Contains(n.Prior, vim25.Version) {
			return vim25.Version, nil
		}
		return n.Version, nil
	}
	return "", fmt.Errorf("%w: it does not speak vim25", errNotVSphere)
}

// explain adds words and a hint for a person to an error of the server or of
// the connection.
func (c *Client) explain(doing string, err error) error {
	if err == nil || errors.Is(err, errClosed) {
		return err
	}
	words, hint := c.words(err)
	hint = cmp.Or(hint, fault.Hint(err))
	if words != "" {
		err = &said{words, err}
	}
	return fault.Failf(hint, "vsphere: %s: %w", doing, err)
}

// said is an error in other words.
type said struct {
	words string
	err   error
}

// Error returns the words.
func (s *said) Error() string { return s.words }

// Unwrap returns the original error.
func (s *said) Unwrap() error { return s.err }

// words returns the words and the hint for an error. Empty words keep those
// of the error.
func (c *Client) words(err error) (words, hint string) {
	switch f := faultOf(err).(type) {
	case *types.InvalidLogin:
		return fmt.Sprintf("user name or password is wrong (user %s)", c.user),
			"give the user with its domain at a vCenter, such as reader@vsphere.local; after several wrong logins the account may be locked for minutes; an ESXi host in lockdown mode accepts only few users"
	case *types.NotAuthenticated:
		return "the session was lost", "try again: the server ended the session"
	case *types.NoPermission:
		return noPermission(f), "ask for the role Read-only (System.View and System.Read) on the root folder, propagated"
	case nil:
	default:
		return "", "check the server's log (vpxd.log, hostd.log): it refuses the request"
	}
	return pathWords(err)
}

// pathWords returns the words for connection errors.
func pathWords(err error) (words, hint string) {
	var trust *untrusted
	var dns *net.DNSError
	var plain tls.RecordHeaderError
	var timeout net.Error
	switch {
	case errors.As(err, &trust):
		const byHand = "compare the SHA-256 fingerprint with that of the server's console or of `openssl x509 -fingerprint -sha256` there"
		return trust.Error(), cmp.Or(fault.Hint(trust.err), byHand)
	case errors.Is(err, context.Canceled):
		return "", ""
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Sprintf("the name %s is not known", dns.Name), "check the spelling, or give its address"
	case errors.As(err, &dns):
		return fmt.Sprintf("the name %s cannot be looked up: %s", dns.Name, dns.Err), "check the DNS server, or name its address"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time", "check the address, and firewalls for TCP port 443; a busy vCenter may need longer"
	case errors.Is(err, errNotVSphere), errors.As(err, &plain), errors.Is(err, http.ErrSchemeMismatch):
		return notVSphere(err), "name a vCenter or an ESXi host, with the port of its web service (default 443)"
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, winRefused):
		return "connection refused: nothing listens there", "check address and port; the web service needs minutes after a start of vCenter or the host"
	}
	return answerWords(err)
}

// answerWords returns the words for unusable answers, and for Go's errors of
// a connection.
func answerWords(err error) (words, hint string) {
	var syntax *vimxml.SyntaxError
	var other vimxml.UnmarshalError
	var direction *url.Error
	switch {
	case errors.Is(err, errTooMuch):
		return errTooMuch.Error(), "check that it is a vCenter or an ESXi host; a proxy may answer in its place"
	case errors.As(err, &syntax), errors.As(err, &other):
		return "its answer is not from a vSphere server, or is incomplete", "try again, then check the server's log (vpxd.log, hostd.log); a proxy may answer in its place"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return "it ended the connection before its answer", "try again in a minute: its web service may be starting or out of sessions"
	case errors.As(err, &direction):
		return inner(err).Error(), ""
	}
	return "", ""
}

// inner removes what Go adds about requests and sockets, since a person asked
// for a name.
func inner(err error) error {
	for {
		var of *url.Error
		var op *net.OpError
		var call *os.SyscallError
		switch {
		case errors.As(err, &of):
			err = of.Err
		case errors.As(err, &op):
			err = op.Err
		case errors.As(err, &call):
			err = call.Err
		default:
			return err
		}
	}
}

// notVSphere describes a server that is not vSphere.
func notVSphere(err error) string {
	if errors.Is(err, errNotVSphere) {
		text := err.Error()
		return text[strings.Index(text, errNotVSphere.Error()):]
	}
	return errNotVSphere.Error() + ": it does not speak TLS"
}

// noPermission names the missing privilege.
func noPermission(f *types.NoPermission) string {
	privilege := f.PrivilegeId
	for _, m := range f.MissingPrivileges {
		privilege = cmp.Or(privilege, strings.Join(m.PrivilegeIds[:min(len(m.PrivilegeIds), 1)], ""))
	}
	if privilege == "" {
		return "no permission"
	}
	return "no permission (" + privilege + ")"
}
