package web

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"thru/internal/transfer"
)

// open starts a server of h, and a session with it.
func open(t *testing.T, h http.HandlerFunc, set func(*transfer.Config)) (transfer.Session, error) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	host, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	cfg := transfer.Config{Host: host, Port: port}
	if set != nil {
		set(&cfg)
	}
	s, err := New("http", cfg).Open(t.Context())
	if err == nil {
		t.Cleanup(func() { s.Close() })
	}
	return s, err
}

// TestAnswers: servers' responses, and the resulting errors.
func TestAnswers(t *testing.T) {
	put := func(ctx context.Context, s transfer.Session) error {
		return s.Put(ctx, "new", strings.NewReader("some"), 4, false)
	}
	get := func(ctx context.Context, s transfer.Session) error {
		_, err := s.Get(ctx, "new", io.Discard)
		return err
	}
	for name, c := range map[string]struct {
		method string
		status int
		do     func(context.Context, transfer.Session) error
		want   error
	}{
		"get, 404": {"GET", 404, get, transfer.ErrMissing}, "get, 410": {"GET", 410, get, transfer.ErrMissing},
		"get, 403": {"GET", 403, get, transfer.ErrDenied},
		"put, 507": {"PUT", 507, put, transfer.ErrFull}, "put, 413": {"PUT", 413, put, transfer.ErrFull},
		"put, 403": {"PUT", 403, put, transfer.ErrReadOnly}, "put, 405": {"PUT", 405, put, transfer.ErrReadOnly},
		"put, 409": {"PUT", 409, put, transfer.ErrMissing}, "put, 412": {"PUT", 412, put, transfer.ErrExists},
	} {
		s, err := open(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == c.method {
				w.WriteHeader(c.status)
			} else {
				w.WriteHeader(404)
			}
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.do(t.Context(), s); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestShort: a server that announces more than it sends.
func TestShort(t *testing.T) {
	s, err := open(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		if r.Method == "GET" {
			w.Write(make([]byte, 400))
		}
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.Get(t.Context(), "file", io.Discard); n != 400 || !errors.Is(err, transfer.ErrShort) {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// TestPassword: the session asks for the password once, only where the server
// needs it, and reports that it was sent in clear text.
func TestPassword(t *testing.T) {
	for name, c := range map[string]struct {
		scheme string // of the server's challenge; empty: no login
		asked  int
		fails  bool
	}{
		"nobody asks": {"", 0, false}, "basic": {`Basic realm="x"`, 1, false}, "digest": {`Digest realm="x", nonce="y"`, 0, true},
	} {
		asked := 0
		s, err := open(t, func(w http.ResponseWriter, r *http.Request) {
			_, password, _ := r.BasicAuth()
			if c.scheme != "" && password != "right" {
				w.Header().Set("WWW-Authenticate", c.scheme)
				w.WriteHeader(401)
				return
			}
			w.Write([]byte("abc"))
		}, func(cfg *transfer.Config) {
			cfg.User, cfg.Password = "me", func() (string, error) { asked++; return "right", nil }
		})
		for range 2 {
			if err == nil {
				_, err = s.Get(t.Context(), "file", io.Discard)
			}
		}
		if asked != c.asked || (err != nil) != c.fails || c.fails && !errors.Is(err, transfer.ErrLogin) {
			t.Errorf("%s: asked %d times, %v", name, asked, err)
		}
		if err == nil && slices.Contains(s.Info().Details, "password sent in clear text") != (c.asked > 0) {
			t.Errorf("%s: asked %d times, and reports %q", name, asked, s.Info().Details)
		}
	}
}

// TestPutElsewhere: an upload is not sent to another server, and only files
// that we have created are removed.
func TestPutElsewhere(t *testing.T) {
	var wrong atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { wrong.Add(1) }))
	defer other.Close()
	s, err := open(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case "PUT":
			http.Redirect(w, r, other.URL+"/taken", http.StatusTemporaryRedirect)
		case "DELETE":
			wrong.Add(1)
		default:
			w.WriteHeader(404)
		}
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), "new", strings.NewReader("secret"), 6, false); err == nil {
		t.Error("a PUT that was sent elsewhere counts as done")
	}
	if wrong.Load() != 0 {
		t.Errorf("%d unexpected requests", wrong.Load())
	}
}

// TestBrokenOverwrite: a server that keeps its old file when a PUT breaks
// still has it.
func TestBrokenOverwrite(t *testing.T) {
	var removed atomic.Bool
	s, err := open(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case "HEAD":
			w.Header().Set("Content-Length", "77")
		case "PUT":
			io.Copy(io.Discard, r.Body)
		case "DELETE":
			removed.Store(true)
		}
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), "old", strings.NewReader("half"), 100, true); !errors.Is(err, transfer.ErrSource) {
		t.Errorf("%v, want %v", err, transfer.ErrSource)
	}
	if removed.Load() {
		t.Error("the file that was there before is gone")
	}
}
