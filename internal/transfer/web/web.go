// Package web moves files by HTTP and HTTPS (RFC 9110) through Go's net/http:
// GET downloads a file, PUT creates one.
package web

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"thru/internal/fault"
	"thru/internal/transfer"
)

// New returns a client of a server by scheme "http" or "https".
func New(scheme string, cfg transfer.Config) transfer.Client { return client{scheme, cfg} }

type client struct {
	scheme string
	cfg    transfer.Config
}

// mostHeader limits the header of a response, in bytes: net/http would accept
// 10 MiB.
const mostHeader = 256 << 10

// session is a server that has responded once.
type session struct {
	transfer.Operating
	scheme string
	cfg    transfer.Config
	http   *http.Client
	tls    *tls.Config

	mu       sync.Mutex
	info     transfer.Info
	password *string // nil until the server has asked for one
}

// Open requests the header of the URL's path: that shows the server's name,
// and whether it needs a login. A missing file is no failure yet.
func (c client) Open(ctx context.Context) (transfer.Session, error) {
	s := &session{scheme: c.scheme, cfg: c.cfg, tls: c.cfg.TLS()}
	s.Operating = transfer.Operating{Wires: transfer.NewWires(c.cfg), Do: s.operations()}
	s.info = transfer.Info{Client: "net/http of " + runtime.Version(), Library: true}
	s.http = &http.Client{CheckRedirect: s.redirect, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			conn, err := s.Data(ctx, addr)
			if err != nil || s.scheme != "https" {
				return conn, err
			}
			return transfer.Buffered(conn), nil
		},
		TLSClientConfig: s.tls, DisableCompression: true,
		// A large body waits until the server accepts it: a refusal costs no
		// traffic.
		ExpectContinueTimeout: time.Second,
		ReadBufferSize:        64 << 10, WriteBufferSize: 64 << 10, MaxResponseHeaderBytes: mostHeader,
	}}
	if err := s.greet(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("web: opening: %w", err), s.Close())
	}
	return s, nil
}

func (s *session) greet(ctx context.Context) error {
	if s.cfg.Path != "" {
		if err := transfer.CheckName(s.cfg.Path); err != nil {
			return err
		}
	}
	ctx, done := s.Greet(ctx)
	resp, err := s.ask(ctx, http.MethodHead, s.cfg.Path, nil, nil)
	if err == nil {
		resp.Body.Close()
	}
	return done(err)
}

// redirect follows redirects only within the server, and keeps its
// information.
func (s *session) redirect(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	same := req.URL.Host == first.Host && req.URL.Scheme == first.Scheme
	secured := first.Scheme == "http" && req.URL.Scheme == "https" && req.URL.Hostname() == first.Hostname()
	if !same && !secured {
		return fault.Failf("give that URL if you trust it", "the server redirects to another server, %.200q, which thru does not follow", req.URL.Scheme+"://"+req.URL.Host)
	}
	if req.Method != via[0].Method { // net/http would make it a GET, whose success means nothing
		return fault.Failf("give that URL if you trust it", "the server redirects %s to %.200q", via[0].Method, req.URL.Scheme+"://"+req.URL.Host+req.URL.EscapedPath())
	}
	if len(via) >= 5 {
		return errors.New("too many redirects")
	}
	s.keepNegotiated(fmt.Sprintf("redirected to %.200q", req.URL.Scheme+"://"+req.URL.Host+req.URL.EscapedPath()))
	return nil
}

// keepNegotiated stores what was negotiated, once.
func (s *session) keepNegotiated(detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.info.Details, detail) {
		s.info.Details = append(s.info.Details, detail)
	}
}

// Info returns the information of the last responses.
func (s *session) Info() transfer.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := s.info
	info.Details = slices.Clone(info.Details)
	return info
}

// url returns the URL of a path of the server.
func (s *session) url(path string) string {
	host := s.cfg.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if s.cfg.Port != "" {
		host = net.JoinHostPort(s.cfg.Host, s.cfg.Port)
	}
	return (&url.URL{Scheme: s.scheme, Host: host, Path: "/" + path}).String()
}

// muchToSend is the size from which on the server is first asked whether it
// accepts the body, as curl does: a server that does not answer costs a
// second.
const muchToSend = 1 << 20

// ask sends a request, and sends it again with the password where the server
// asks for one. The response's body must be closed.
func (s *session) ask(ctx context.Context, method, path string, b *body, header http.Header) (*http.Response, error) {
	for {
		req, err := http.NewRequestWithContext(ctx, method, s.url(path), nil)
		if err != nil {
			return nil, fmt.Errorf("making a request: %w", err)
		}
		if req.Header = header.Clone(); req.Header == nil {
			req.Header = http.Header{}
		}
		req.Header.Set("User-Agent", "thru")
		stop := b.into(req, s.password == nil && s.cfg.User != "")
		if s.password != nil {
			req.SetBasicAuth(s.cfg.User, *s.password)
		}
		resp, err := s.http.Do(req)
		if err != nil {
			return nil, fmt.Errorf("%s %.200s: %w", method, req.URL.Redacted(), plain(err))
		}
		s.met(resp)
		if resp.StatusCode != http.StatusUnauthorized {
			return resp, nil
		}
		resp.Body.Close()
		if err := s.ready(resp, stop()); err != nil {
			return nil, err
		}
	}
}

// plain removes method and URL from an error of net/http.
func plain(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// met stores what a response shows about the server.
func (s *session) met(resp *http.Response) {
	s.mu.Lock()
	s.info.Server = cmp.Or(resp.Header.Get("Server"), s.info.Server)
	if resp.TLS != nil && len(resp.TLS.PeerCertificates) > 0 {
		s.info.Fingerprint = transfer.Fingerprint(resp.TLS.PeerCertificates[0].Raw)
	}
	s.mu.Unlock()
	s.keepNegotiated(resp.Proto)
	if resp.TLS != nil {
		s.keepNegotiated(transfer.Describe(*resp.TLS))
	}
}

// ready gets the password that a refused request lacked. lost is how much of
// its body cannot be sent again.
func (s *session) ready(refusal *http.Response, lost int64) error {
	basic := slices.ContainsFunc(refusal.Header.Values("WWW-Authenticate"), func(v string) bool {
		return len(v) >= 5 && strings.EqualFold(v[:5], "basic")
	})
	switch {
	case s.password != nil:
		return fault.Failf("check user and password", "logging in: %w (%s)", transfer.ErrLogin, refusal.Status)
	case !basic:
		return fault.Failf("let the server offer the scheme Basic: thru supports no other", "logging in: %w: it asks for %.100q", transfer.ErrLogin, refusal.Header.Get("WWW-Authenticate"))
	case lost > 0:
		return fault.Failf("give USER@ in the URL, then thru asks a server that supports \"Expect: 100-continue\" first", "logging in: %w: it asked for a password after %d bytes had been sent", transfer.ErrLogin, lost)
	case s.cfg.Password == nil:
		return fault.Failf("give user and password", "logging in: %w: it requires a password", transfer.ErrLogin)
	}
	password, err := s.cfg.Password()
	if err != nil {
		return fmt.Errorf("asking for the password: %w", err)
	}
	if s.scheme == "http" {
		s.keepNegotiated("password sent in clear text")
	}
	s.password = &password
	return nil
}

// judge converts an unsuccessful response to an error. writing decides the
// meaning of 403.
func judge(resp *http.Response, writing bool) error {
	var kind error
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusNotFound || code == http.StatusGone || code == http.StatusConflict && writing:
		kind = transfer.ErrMissing // 409: a parent folder is missing (RFC 4918, 9.7.1)
	case code >= 300 && code < 400: // of a PUT or DELETE
		return fault.Failf("give that URL if you trust it", "the server redirects to %.200q (%s)", resp.Header.Get("Location"), resp.Status)
	case code == http.StatusPreconditionFailed:
		kind = transfer.ErrExists
	case code == http.StatusInsufficientStorage || code == http.StatusRequestEntityTooLarge:
		kind = transfer.ErrFull
	case writing && (code == http.StatusForbidden || code == http.StatusMethodNotAllowed || code == http.StatusNotImplemented):
		kind = transfer.ErrReadOnly
	case code == http.StatusForbidden:
		kind = transfer.ErrDenied
	default:
		kind = errors.New("the server failed or did not understand")
	}
	err := fmt.Errorf("%w (%s)", kind, resp.Status)
	if resp.StatusCode == http.StatusInternalServerError {
		return fault.Failf("check the server's log: a full disk, a read-only folder", "%w", err)
	}
	return err
}
