package transfer

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"

	"thru/internal/fault"
)

// parrot is a server, and its own client, that repeats in all its texts what
// it has received.
type parrot struct {
	cfg  Config
	says func(password string) string
	word string
}

func (p *parrot) Open(context.Context) (Session, error) {
	password, err := p.cfg.Password()
	if p.word = p.says(password); password == "" {
		return nil, p.fails(err)
	}
	return p, nil
}

func (p *parrot) fails(error) error {
	return fault.Failf("try "+p.word, "parrot: %w (%q)", ErrMissing, p.word)
}
func (p *parrot) Info() Info                                                { return Info{Server: p.word, Details: []string{p.word}} }
func (p *parrot) Sockets() []net.Conn                                       { return nil }
func (p *parrot) Close() error                                              { return p.fails(nil) }
func (p *parrot) Size(context.Context, string) (int64, error)               { return 0, p.fails(nil) }
func (p *parrot) Get(context.Context, string, io.Writer) (int64, error)     { return 0, p.fails(nil) }
func (p *parrot) Put(context.Context, string, io.Reader, int64, bool) error { return p.fails(nil) }
func (p *parrot) Remove(context.Context, string) error                      { return p.fails(nil) }

// program is a parrot that is a separate program.
type program struct{ *parrot }

func (p program) Open(ctx context.Context) (Session, error) {
	_, err := p.parrot.Open(ctx)
	return p, err
}
func (p program) Fetch(context.Context, string, string, func(int64)) (int64, error) {
	return 0, p.fails(nil)
}
func (p program) Send(context.Context, string, string, bool, func(int64)) error { return p.fails(nil) }

// words returns all texts of a session.
func words(t *testing.T, s Session) (all []string) {
	ctx := t.Context()
	_, size := s.Size(ctx, "f")
	_, get := s.Get(ctx, "f", io.Discard)
	errs := []error{size, get, s.Put(ctx, "f", strings.NewReader(""), 0, false), s.Remove(ctx, "f"), s.Close()}
	if o, ok := s.(Outside); ok {
		_, fetch := o.Fetch(ctx, "f", "", nil)
		errs = append(errs, fetch, o.Send(ctx, "", "f", false, nil))
	}
	for _, err := range errs {
		if !errors.Is(err, ErrMissing) || fault.Hint(err) == "" {
			t.Errorf("%v is no ErrMissing with a hint", err)
		}
		all = append(all, err.Error(), fault.Hint(err), fmt.Errorf("again: %w", err).Error())
	}
	return append(all, s.Info().Server, s.Info().Details[0])
}

// TestDiscreet: no server can make the password appear, in any of its texts.
func TestDiscreet(t *testing.T) {
	const password = `S3cr3t&pw/x "é y`
	for name, says := range map[string]func(string) string{
		"as it is":     func(p string) string { return "no <" + p + "> here" },
		"upper":        strings.ToUpper,
		"query":        url.QueryEscape,
		"path":         url.PathEscape,
		"lower escape": func(p string) string { return strings.ToLower(url.QueryEscape(p)) },
		"base64":       func(p string) string { return base64.StdEncoding.EncodeToString([]byte(p)) },
		"basic":        func(p string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte("anna:"+p)) },
		"basic, url":   func(p string) string { return base64.URLEncoding.EncodeToString([]byte("bob:" + p)) },
	} {
		cfg := Config{Password: func() (string, error) { return password, nil }}
		for _, outside := range []bool{false, true} {
			c := Discreet(cfg, func(c Config) Client {
				p := &parrot{cfg: c, says: says}
				if outside {
					return program{p}
				}
				return p
			})
			s, err := c.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := s.(Outside); ok != outside {
				t.Errorf("%s: a program: %t, want %t", name, ok, outside)
			}
			said := says(password)
			core := strings.ToLower(said[len(said)/2-3 : len(said)/2+3]) // the middle of it
			for _, w := range words(t, s) {
				if lower := strings.ToLower(w); strings.Contains(lower, core) || !strings.Contains(w, hidden) {
					t.Errorf("%s: %q", name, w)
				}
			}
		}
	}
}

// TestDiscreetText: texts stay unchanged, except for what must be hidden.
func TestDiscreetText(t *testing.T) {
	for _, c := range []struct{ password, text, want string }{
		{"", "as it is\nand so on", "as it is\nand so on"},
		{"", "a\x1b[31m\u009b31m\u202eb\xff\u2066", "a?[31m?31m?b??"},
		{"e", "the server, e, says e", "the server, ..., says ..."},
		{"?e", "the?e.", "the...."},
		{"four", "fourfold", "...fold"},
	} {
		d := &discreet{}
		d.learn(c.password)
		if got := d.text(c.text); got != c.want {
			t.Errorf("%q of %q: %q, want %q", c.password, c.text, got, c.want)
		}
	}
}

// FuzzDiscreet: the expression for any password compiles, and hides it.
func FuzzDiscreet(f *testing.F) {
	f.Add("S3cr3t&pw/x", "anna")
	f.Add("\xff(", "")
	f.Fuzz(func(t *testing.T, password, around string) {
		d := &discreet{}
		d.learn(password)
		got := d.text(around + password + around)
		if len(password) >= tooShort && !strings.Contains(hidden, password) && around == "" && got != hidden {
			t.Errorf("%q: %q", password, got)
		}
	})
}
