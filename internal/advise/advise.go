// Package advise turns what a diagnosis found, and what the gates say of the
// hosts, into an ordered list of changes to try: what binds first, each with its
// reason, the figure that it should bring, its risk, and the commands that do
// the same by hand, with those that undo them. It is pure: a document in, a list
// out, so that advice can be had from a stored result too.
package advise

import "thru/internal/measure"

// Seen is what a tuning has come to know so far. The zero Seen is that of one
// that begins, and of advice from a stored result.
type Seen struct {
	// Kept are the ids of the proposals that were kept, in order.
	Kept []string
	// Undone are the ids of those that were tried and brought nothing, each with
	// how many had been kept by then (len(Kept)). One comes again only where a
	// finding asks for it, not a gate alone, and more has been kept since: what
	// held the path up then may have hidden what it brings.
	Undone map[string]int
	// Never are the ids of those that must not come again, whatever is found:
	// declined, failed, not in use, or changed by somebody else meanwhile.
	Never map[string]bool
	// Only are the ids of the knobs that may be proposed; none: all.
	Only []string
}

// Propose lists the changes to try, in order: what the findings ask for, the
// binding one first; then what gates ask for that fail; then what gates ask for
// that warn; then options of the test. A change that thru cannot or may not make
// itself says why (Proposal.OnlySaid), and has its commands. The document has to
// be diagnosed (package diagnose). Of several measurements of one direction the
// last counts; what a host says of its knobs counts before its facts.
func Propose(doc *measure.Document, seen Seen) []measure.Proposal { return nil }

// Script writes the changes of one end point as two scripts: the first makes
// them, in order, the second undoes them in reverse. They are for the shell of
// its system: POSIX sh, or PowerShell on Windows. Both are empty where there is
// nothing to do at that end point.
func Script(proposals []measure.Proposal, endPoint string) (do, undo string) { return "", "" }
