package cli

import (
	"context"
	"fmt"

	"thru/internal/bus"
	"thru/internal/cli/console"
	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/library"
)

// verify prints what is known about the signatures of files.
func (c *reportCmd) verify(ctx context.Context, e *env) error {
	if c.Signer != "" && !bus.ValidSigner(c.Signer) {
		return fault.Usagef("give one word that begins with A, as thru report --my-key prints it", "--signer %q is not a key", fault.Short(c.Signer))
	}
	own := ""
	if dir, err := bus.DefaultState(); err == nil && bus.HasState(dir) { // a user who only verifies needs no key
		if s, err := library.Signer(); err == nil {
			own = s.Key
		}
	}
	var worst error
	for _, path := range c.Results {
		text, err := fault.Until(ctx, path, func() ([]byte, error) { return e.reader().WholeFile(path) })
		if err != nil {
			return err
		}
		v := library.Verify(path, text, c.Signer, own)
		var verr error
		switch {
		case !v.Signed:
			verr = fault.Failf("thru report RESULT --html FILE signs what it writes", "%s: %s", fault.Named(path), v.Reason)
		case !v.Valid:
			verr = fault.New(fault.Verdict, "get the file again from its author", "%s: %s", fault.Named(path), v.Reason)
		}
		if fault.Code(verr) > fault.Code(worst) {
			worst = verr
		}
		if err := e.printVerified(v, verr, c.JSON); err != nil {
			return err
		}
	}
	if worst != nil {
		return console.Printed(worst)
	}
	return nil
}

// printVerified prints the result for one file.
func (e *env) printVerified(v library.Verified, verr error, asJSON bool) error {
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
	by := "with a key that this host does not know; compare it with the output of `thru report --my-key` on " + v.Host
	switch v.Signer {
	case library.SignerOwn:
		by = "which is this host"
	case library.SignerNamed:
		by = "with the key that you named"
	}
	_, err := fmt.Fprintf(e.Out, "%s: signed by %s at %s, %s\nkey: %s\nIt was not changed since.\n", fault.Printable(v.File), v.Host, v.SignedAt.Local().Format("2006-01-02 15:04:05 MST"), by, v.Key)
	return err
}
