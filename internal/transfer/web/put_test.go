package web

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"thru/internal/transfer"
)

// TestPutRedirected: a redirected PUT or DELETE does not count as done.
func TestPutRedirected(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		s, err := open(t, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/there/":
				io.WriteString(w, "a page")
			case r.Method == "PUT" || r.Method == "DELETE":
				w.Header().Set("Location", "/there/")
				w.WriteHeader(status)
			default:
				w.WriteHeader(404)
			}
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{4, 2 << 20} {
			if err := s.Put(t.Context(), "new", bytes.NewReader(make([]byte, size)), int64(size), false); err == nil || !strings.Contains(err.Error(), "redirects") {
				t.Errorf("%d, %d bytes: %v", status, size, err)
			}
		}
		// net/http repeats a DELETE after 307 and 308 as a DELETE.
		if err := s.Remove(t.Context(), "new"); (err == nil) != (status >= 307) {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// TestPasswordOfPut: reading needs no login, and writing does. hears reports
// whether the server reads the body before it asks for the login.
func TestPasswordOfPut(t *testing.T) {
	for _, c := range []struct {
		hears bool
		user  string
		size  int
		fails bool
	}{
		{false, "me", 64 << 10, false}, {false, "me", 1 << 20, false}, {false, "me", 9 << 20, false},
		{true, "me", 64 << 10, false}, {true, "me", 1 << 20, false}, {true, "me", 9 << 20, true}, // more than is kept
	} {
		got := []byte{}
		s, err := open(t, func(w http.ResponseWriter, r *http.Request) {
			user, password, _ := r.BasicAuth()
			switch {
			case r.Method != "PUT":
				w.WriteHeader(404)
			case user != "me" || password != "right":
				if c.hears {
					io.Copy(io.Discard, r.Body)
				}
				w.Header().Set("WWW-Authenticate", "Basic")
				w.WriteHeader(401)
			default:
				got, _ = io.ReadAll(r.Body)
				w.WriteHeader(201)
			}
		}, func(cfg *transfer.Config) {
			cfg.User, cfg.Password = c.user, func() (string, error) { return "right", nil }
		})
		if err != nil {
			t.Fatal(err)
		}
		sent := bytes.Repeat([]byte("0123456789abcde\n"), c.size/16)
		err = s.Put(t.Context(), "new", struct{ io.Reader }{bytes.NewReader(sent)}, int64(len(sent)), false)
		if (err != nil) != c.fails || c.fails && !errors.Is(err, transfer.ErrLogin) {
			t.Errorf("%+v: %v", c, err)
		}
		if err == nil && !bytes.Equal(got, sent) {
			t.Errorf("%+v: %d bytes arrived, of %d, or others", c, len(got), len(sent))
		}
	}
}
