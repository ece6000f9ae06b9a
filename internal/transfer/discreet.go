package transfer

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
	"unicode"

	"thru/internal/fault"
	"thru/internal/unit"
)

// Discreet returns the client that makes returns for cfg, with errors and
// Info that are safe to show: a server may repeat the password anywhere in
// its texts, so Discreet removes it, and everything that controls a terminal.
func Discreet(cfg Config, makes func(Config) Client) Client {
	d := &discreet{}
	if ask := cfg.Password; ask != nil {
		cfg.Password = func() (string, error) {
			password, err := ask()
			d.learn(password)
			return password, err
		}
	}
	d.client = makes(cfg)
	return d
}

// discreet is a client whose texts are cleaned of secrets.
type discreet struct {
	client Client

	mu     sync.Mutex
	secret *regexp.Regexp // nil until a password was given
}

// Open opens a session that is discreet too.
func (d *discreet) Open(ctx context.Context) (Session, error) {
	s, err := d.client.Open(ctx)
	if err != nil {
		return nil, d.clean(err)
	}
	if o, ok := s.(Outside); ok {
		return discreetOutside{discreetSession{o, d}, o}, nil
	}
	return discreetSession{s, d}, nil
}

// learn takes the password; from then on all its forms are hidden.
func (d *discreet) learn(password string) {
	if form := formsOf(password); form != nil {
		d.mu.Lock()
		d.secret = form
		d.mu.Unlock()
	}
}

// hidden replaces the password.
const hidden = "..."

// text returns a text that is safe to show.
func (d *discreet) text(s string) string {
	d.mu.Lock()
	secret := d.secret
	d.mu.Unlock()
	if secret != nil {
		s = secret.ReplaceAllLiteralString(s, hidden)
	}
	return strings.Map(func(r rune) rune {
		if r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf) { // Cf: changes of the writing direction
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// clean returns an error that is safe to show and that errors.Is still
// matches.
func (d *discreet) clean(err error) error {
	if err == nil {
		return nil
	}
	c := error(&cleaned{text: d.text(err.Error()), err: err})
	if hint := fault.Hint(err); hint != d.text(hint) {
		c = fault.New(fault.Code(err), d.text(hint), "%w", c)
	}
	return c
}

// cleaned is an error with another text.
type cleaned struct {
	text string
	err  error
}

// Error returns the text that is safe to show.
func (c *cleaned) Error() string { return c.text }

// Unwrap returns the original error.
func (c *cleaned) Unwrap() error { return c.err }

// formsOf matches a password: as it is, percent-encoded in whole or in part
// (RFC 3986, 2.1), with the escapes of Go's quotes, and in base64, also with
// a user before it (RFC 7617). nil without a password.
func formsOf(password string) *regexp.Regexp {
	if password == "" {
		return nil
	}
	plain := &strings.Builder{}
	for _, r := range password {
		literal, encoded := regexp.QuoteMeta(string(r)), ""
		for _, b := range []byte(string(r)) {
			encoded += fmt.Sprintf("%%%02X", b)
		}
		switch r {
		case '"', '\\':
			literal = `\\?` + literal
		case ' ':
			literal += `|\+`
		}
		fmt.Fprintf(plain, "(?:%s|%s)", literal, encoded)
	}
	forms := append(base64Forms(password), edged(password, plain.String()))
	return regexp.MustCompile("(?i)" + strings.Join(forms, "|"))
}

// base64Forms returns the forms of a password alone, and the part that stays
// equal after any user and a colon: there are three ways to split that into
// groups of three bytes.
func base64Forms(password string) (forms []string) {
	for before := range 3 {
		coded := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), password...))
		begin := (before*8 + 5) / 6 // the first character that has bits of the password only
		end := (before + len(password)) * 8 / 6
		if end-begin >= tooShort {
			form := regexp.QuoteMeta(coded[begin:end])
			form = strings.NewReplacer("/", "[/_]", `\+`, `[+-]`).Replace(form) // RFC 4648, 5
			forms = append(forms, form+"[A-Za-z0-9]?=*")
		}
	}
	return forms
}

// tooShort is the length below which a password is hidden only as a whole
// word: otherwise the letter "e" would make a message unreadable.
const tooShort = 4

// edged makes the form of a short password match whole words only.
func edged(password, form string) string {
	if len(password) >= tooShort {
		return form
	}
	word := func(b byte) bool {
		return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '_'
	}
	if word(password[0]) {
		form = `\b` + form
	}
	if word(password[len(password)-1]) {
		form += `\b`
	}
	return form
}

// discreetSession is a session whose texts are cleaned.
type discreetSession struct {
	Session
	by *discreet
}

// Info returns the server's information, cleaned.
func (s discreetSession) Info() Info {
	info := s.Session.Info()
	info.Server = s.by.text(info.Server)
	info.Details = unit.Mapped(info.Details, s.by.text)
	return info
}

// Size returns the size of a file.
func (s discreetSession) Size(ctx context.Context, path string) (int64, error) {
	n, err := s.Session.Size(ctx, path)
	return n, s.by.clean(err)
}

// Get writes a file's bytes to w.
func (s discreetSession) Get(ctx context.Context, path string, w io.Writer) (int64, error) {
	n, err := s.Session.Get(ctx, path, w)
	return n, s.by.clean(err)
}

// Put creates a file.
func (s discreetSession) Put(ctx context.Context, path string, r io.Reader, size int64, overwrite bool) error {
	return s.by.clean(s.Session.Put(ctx, path, r, size, overwrite))
}

// Remove removes a file that Put created.
func (s discreetSession) Remove(ctx context.Context, path string) error {
	return s.by.clean(s.Session.Remove(ctx, path))
}

// Sockets returns the sockets of the session.
func (s discreetSession) Sockets() []net.Conn { return s.Session.Sockets() }

// Close ends the session.
func (s discreetSession) Close() error { return s.by.clean(s.Session.Close()) }

// discreetOutside is the discreet session of a program.
type discreetOutside struct {
	discreetSession
	program Outside
}

// Fetch writes a file of the server to a local path.
func (s discreetOutside) Fetch(ctx context.Context, path, local string, progress func(bytes int64)) (int64, error) {
	n, err := s.program.Fetch(ctx, path, local, progress)
	return n, s.by.clean(err)
}

// Send creates a file from a local one.
func (s discreetOutside) Send(ctx context.Context, local, path string, overwrite bool, progress func(bytes int64)) error {
	return s.by.clean(s.program.Send(ctx, local, path, overwrite, progress))
}
