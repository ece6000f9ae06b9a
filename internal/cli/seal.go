package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"thru/internal/bus"
	"thru/internal/cli/console"
	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/measure"
)

// sealBegin is where the last line of a signed file begins. It stands nowhere else
// in it.
const sealBegin = "<!-- thru-signature "

// sealLine is the last line of a signed file. The signature is over all before " sig=".
var sealLine = regexp.MustCompile(`^<!-- thru-signature 1 key=([A-Z2-7]{56}) host=([A-Za-z0-9._-]{1,253}) at=([0-9TZ:-]{20}) sig=([A-Za-z0-9_-]{86}) -->\n$`)

// seal is who signed a file, and when by that host's clock.
type seal struct {
	Key  string
	Host string
	At   time.Time
	sig  string
	over []byte
}

// signer is the key by which this host's agent is known. It is made on first use,
// as the agent's identity is.
func (e *env) signer() (*bus.Signer, error) {
	dir, err := bus.DefaultState()
	if err != nil {
		return nil, err
	}
	state, err := bus.OpenState(dir)
	if err != nil {
		return nil, err
	}
	return state.Signer()
}

// sealed returns the text with the line that signs it.
func sealed(text []byte, s *bus.Signer, host string, at time.Time) ([]byte, error) {
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	// A page writes < as an entity; in a command of Markdown it stays what it is.
	text = bytes.ReplaceAll(text, []byte(sealBegin), []byte("<! -- thru-signature "))
	over := fmt.Appendf(text, "%s1 key=%s host=%s at=%s", sealBegin, s.Key, signedName(host), at.UTC().Format(time.RFC3339))
	sig, err := s.Sign(over)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(over, " sig=%s -->\n", sig), nil
}

// signedName is a host's name in the form that sealLine takes.
func signedName(host string) string {
	name := regexp.MustCompile(`[^A-Za-z0-9._-]`).ReplaceAllString(host, "-")
	return name[:min(len(name), 253)]
}

// readSeal finds the signature of a file; nil where it has none. The error is of
// one that cannot be what sealed wrote.
func readSeal(text []byte) (*seal, error) {
	i := bytes.Index(text, []byte(sealBegin))
	if i < 0 {
		return nil, nil
	}
	m := sealLine.FindSubmatch(text[i:])
	if m == nil || i > 0 && text[i-1] != '\n' {
		return nil, errors.New("its signature is not the last line, or was changed")
	}
	at, err := time.Parse(time.RFC3339, string(m[3]))
	if err != nil {
		return nil, errors.New("the time of its signature was changed")
	}
	return &seal{Key: string(m[1]), Host: string(m[2]), At: at, sig: string(m[4]), over: text[:bytes.LastIndex(text, []byte(" sig="))]}, nil
}

// verified is what --verify finds out, as --json prints it.
type verified struct {
	File     string         `json:"file"`
	Signed   bool           `json:"signed"`
	Valid    bool           `json:"valid"` // as it was when it was signed, and by --signer where one is named
	Key      string         `json:"key,omitempty"`
	Host     string         `json:"host,omitempty"`
	SignedAt *time.Time     `json:"signed_at,omitempty"` // by the signer's clock
	Signer   string         `json:"signer,omitempty"`    // own, named or unknown
	Reason   string         `json:"reason,omitempty"`
	Error    *measure.Error `json:"error"`
}

// Who signed, as far as this host can tell.
const (
	signerOwn     = "this host"
	signerNamed   = "as named"
	signerUnknown = "unknown"
)

// verify judges a file against its signature, and against a key that was named.
func verify(file string, text []byte, signer, own string) verified {
	v := verified{File: file}
	s, err := readSeal(text)
	if err != nil {
		v.Signed, v.Reason = true, err.Error()
		return v
	}
	if s == nil {
		v.Reason = "it is not signed"
		return v
	}
	v.Signed, v.Key, v.Host, v.SignedAt = true, s.Key, s.Host, &s.At
	ok, err := bus.Verify(s.over, s.Key, s.sig)
	switch {
	case err != nil:
		v.Reason = err.Error()
	case !ok:
		v.Reason = "it was changed after it was signed"
	case signer != "" && signer != s.Key:
		v.Reason = "it was signed by another key than the one named"
	default:
		v.Valid = true
	}
	switch s.Key {
	case signer:
		v.Signer = signerNamed
	case own:
		v.Signer = signerOwn
	default:
		v.Signer = signerUnknown
	}
	return v
}

// verify prints what is known of the signatures of files.
func (c *reportCmd) verify(ctx context.Context, e *env) error {
	if c.Signer != "" && !bus.ValidSigner(c.Signer) {
		return fault.Usagef("it is one word that begins with A: thru report --my-key prints that of a host", "--signer %q is no key", short(c.Signer))
	}
	own := ""
	if dir, err := bus.DefaultState(); err == nil && bus.HasState(dir) { // who only checks needs no key
		if s, err := e.signer(); err == nil {
			own = s.Key
		}
	}
	var worst error
	for _, path := range c.Results {
		text, err := console.Until(ctx, path, func() ([]byte, error) { return e.wholeFile(path) })
		if err != nil {
			return err
		}
		v := verify(path, text, c.Signer, own)
		var verr error
		switch {
		case !v.Signed:
			verr = fault.Failf("thru report RESULT --html FILE signs what it writes", "%s: %s", fault.Named(path), v.Reason)
		case !v.Valid:
			verr = fault.New(fault.Verdict, "ask who gave it to you for it once more", "%s: %s", fault.Named(path), v.Reason)
		}
		if fault.Code(verr) > fault.Code(worst) {
			worst = verr
		}
		if err := e.printVerified(v, verr, c.JSON); err != nil {
			return err
		}
	}
	if worst != nil {
		return printed{worst}
	}
	return nil
}

// printVerified prints what was found out of one file.
func (e *env) printVerified(v verified, verr error, asJSON bool) error {
	if asJSON {
		if verr != nil {
			v.Error = control.Describe(verr)
		}
		return printJSON(e.Out, v)
	}
	if verr != nil {
		e.ErrorLines(verr)
		return nil
	}
	by := "whose key this host does not know; compare it with what " + v.Host + " prints for `thru report --my-key`"
	switch v.Signer {
	case signerOwn:
		by = "which is this host"
	case signerNamed:
		by = "with the key that you named"
	}
	_, err := fmt.Fprintf(e.Out, "%s: signed by %s at %s, %s\nkey: %s\nNothing in it was changed since.\n", console.Printable(v.File), v.Host, v.SignedAt.Local().Format("2006-01-02 15:04:05 MST"), by, v.Key)
	return err
}

// wholeFile reads a file, or stdin, up to the most that a report may have.
func (e *env) wholeFile(path string) ([]byte, error) {
	s, err := e.openOne(context.Background(), path)
	if err != nil {
		return nil, err
	}
	defer closeSources([]*source{s})
	return e.read(s)
}
