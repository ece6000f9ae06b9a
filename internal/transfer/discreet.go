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
)

// Discreet is the client that makes returns for cfg, whose errors and Info can be shown
// to anybody: a server may repeat the password in any of its words, and these are kept.
// Nor do they hold what steers a terminal.
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

// discreet is a client, and what its words must not hold.
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

// learn takes the password, whose forms are hidden from then on.
func (d *discreet) learn(password string) {
	if form := formsOf(password); form != nil {
		d.mu.Lock()
		d.secret = form
		d.mu.Unlock()
	}
}

// hidden stands where the password stood.
const hidden = "..."

// text is what may be shown of a text.
func (d *discreet) text(s string) string {
	d.mu.Lock()
	secret := d.secret
	d.mu.Unlock()
	if secret != nil {
		s = secret.ReplaceAllLiteralString(s, hidden)
	}
	return strings.Map(func(r rune) rune {
		if r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf) { // Cf: what turns the direction of writing
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// clean is an error that is still what it was for errors.Is, and may be shown.
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

// cleaned is an error by other words.
type cleaned struct {
	text string
	err  error
}

// Error is what may be shown.
func (c *cleaned) Error() string { return c.text }

// Unwrap returns the error itself.
func (c *cleaned) Unwrap() error { return c.err }

// formsOf finds a password as it is, percent-encoded in whole or in part (RFC 3986, 2.1),
// with what Go's quotes put before a character, and in base64, also with a user
// before it (RFC 7617). nil where there is none.
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

// base64Forms are a password alone, and what of it stands the same after any user and a
// colon: how that falls into groups of three bytes is one of three ways.
func base64Forms(password string) (forms []string) {
	for before := range 3 {
		coded := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), password...))
		begin := (before*8 + 5) / 6 // the first character that holds bits of the password alone
		end := (before + len(password)) * 8 / 6
		if end-begin >= tooShort {
			form := regexp.QuoteMeta(coded[begin:end])
			form = strings.NewReplacer("/", "[/_]", `\+`, `[+-]`).Replace(form) // RFC 4648, 5
			forms = append(forms, form+"[A-Za-z0-9]?=*")
		}
	}
	return forms
}

// tooShort is the length below which a password is hidden as a word alone: the letter
// "e" would leave nothing of a message to read.
const tooShort = 4

// edged lets the form of a short password match whole words.
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

// discreetSession is a session whose words are cleaned.
type discreetSession struct {
	Session
	by *discreet
}

// Info is what the server says of itself, cleaned.
func (s discreetSession) Info() Info {
	info := s.Session.Info()
	info.Server = s.by.text(info.Server)
	details := make([]string, 0, len(info.Details))
	for _, detail := range info.Details {
		details = append(details, s.by.text(detail))
	}
	info.Details = details
	return info
}

// Size of a file.
func (s discreetSession) Size(ctx context.Context, path string) (int64, error) {
	n, err := s.Session.Size(ctx, path)
	return n, s.by.clean(err)
}

// Get writes a file's bytes to w.
func (s discreetSession) Get(ctx context.Context, path string, w io.Writer) (int64, error) {
	n, err := s.Session.Get(ctx, path, w)
	return n, s.by.clean(err)
}

// Put makes a file.
func (s discreetSession) Put(ctx context.Context, path string, r io.Reader, size int64, overwrite bool) error {
	return s.by.clean(s.Session.Put(ctx, path, r, size, overwrite))
}

// Remove removes what Put made.
func (s discreetSession) Remove(ctx context.Context, path string) error {
	return s.by.clean(s.Session.Remove(ctx, path))
}

// Sockets are those of the session.
func (s discreetSession) Sockets() []net.Conn { return s.Session.Sockets() }

// Close ends the session.
func (s discreetSession) Close() error { return s.by.clean(s.Session.Close()) }

// discreetOutside is that of a program.
type discreetOutside struct {
	discreetSession
	program Outside
}

// Fetch writes a file of the server to a local path.
func (s discreetOutside) Fetch(ctx context.Context, path, local string, progress func(bytes int64)) (int64, error) {
	n, err := s.program.Fetch(ctx, path, local, progress)
	return n, s.by.clean(err)
}

// Send makes a file of a local one.
func (s discreetOutside) Send(ctx context.Context, local, path string, overwrite bool, progress func(bytes int64)) error {
	return s.by.clean(s.program.Send(ctx, local, path, overwrite, progress))
}
