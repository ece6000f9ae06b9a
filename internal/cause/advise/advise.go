// Package advise turns what a diagnosis found, and what the gates say of the
// hosts, into an ordered list of changes to try: what binds first, each with its
// reason, the figure that it should bring, its risk, and the commands that do
// the same by hand, with those that undo them. It is pure: a document in, a list
// out, so that advice can be had from a stored result too.
package advise

import (
	"slices"
	"strings"

	"thru/internal/measure"
)

// Seen is what a tuning has come to know so far. The zero Seen is that of one
// that begins, and of advice from a stored result.
type Seen struct {
	// Kept are the ids of the proposals that were kept, in order.
	Kept []string
	// Undone are the ids of those that were tried and brought nothing, each with
	// how many had been kept by then (len(Kept)). One comes again only where a
	// finding asks for it, or a gate of the buffers, and more has been kept since:
	// what held the path up then may have hidden what it brings.
	Undone map[string]int
	// Never are the ids of those that must not come again, whatever is found:
	// declined, failed, not in use, or changed by somebody else meanwhile.
	Never map[string]bool
	// Only are the ids of the knobs that may be proposed; none: all.
	Only []string
}

// Propose is Propose by these rules.
func Propose(doc *measure.Document, rules []Rule, seen Seen) []measure.Proposal {
	sc := newAdvice(doc)
	sc.rules = rules
	sc.kept = seen.Kept
	var now, late []measure.Proposal
	for _, r := range sc.requests() {
		for _, d := range r.drafts() {
			if !sc.changes(d) {
				continue
			}
			if len(seen.Kept) > 0 && d.Once && slices.ContainsFunc(seen.Kept, d.isLike) {
				continue
			}
			if slices.ContainsFunc(d.Settings, func(s measure.Setting) bool { return r.TakesBack(s) }) {
				continue
			}
			p := sc.proposal(r, d)
			if d.late {
				late = add(late, p)
			} else {
				now = add(now, p)
			}
		}
	}
	for _, p := range late {
		now = add(now, p)
	}
	return slices.DeleteFunc(now, func(p measure.Proposal) bool { return !seen.lets(p, sc.isOfTight(p.Gate)) })
}

// add appends a proposal, or where the same one is there already says in it who
// else asks for it.
func add(list []measure.Proposal, p measure.Proposal) []measure.Proposal {
	i := slices.IndexFunc(list, func(o measure.Proposal) bool {
		return o.ID == p.ID || len(p.Settings) == 0 && p.Test == nil && o.Title == p.Title && ofHost(o) == ofHost(p)
	})
	if i < 0 {
		return append(list, p)
	}
	if has := &list[i]; has.Gate == "" {
		has.Gate = p.Gate
	}
	return list
}

// ofHost is the end point whose advice in words it is; "" of the path.
func ofHost(p measure.Proposal) string {
	if len(p.Commands) == 0 {
		return ""
	}
	return p.Commands[0].EndPoint
}

// lets tells whether a proposal may come, after what was seen; tight: a gate asks for it
// that says what is known to bind.
func (s Seen) lets(p measure.Proposal, tight bool) bool {
	if s.Never[p.ID] || !s.wants(p) {
		return false
	}
	before, tried := s.Undone[p.ID]
	return !tried || (p.Cause != "" || tight) && len(s.Kept) > before
}

// wants tells whether all knobs of a proposal may be proposed.
func (s Seen) wants(p measure.Proposal) bool {
	if len(s.Only) == 0 {
		return true
	}
	for _, x := range p.Settings {
		if !slices.Contains(s.Only, x.Knob) {
			return false
		}
	}
	if p.Test != nil {
		name, _, _ := strings.Cut(p.ID, "=")
		return slices.Contains(s.Only, name)
	}
	return len(p.Settings) > 0
}
