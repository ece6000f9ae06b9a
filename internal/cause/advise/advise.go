// Package advise turns the findings of a diagnosis and the gates of the hosts into an ordered list of changes to
// try: the binding one first, each with its reason, the expected gain, its risk, and the commands to make and to
// undo it as a manual step. It is pure, a document in and a list out, so it can also advise on a stored result.
package advise

import (
	"slices"
	"strings"

	"thru/internal/measure"
)

// Seen is what a tuning has learnt so far. The zero Seen is for the start of a tuning, and for advice on a stored
// result.
type Seen struct {
	// Kept are the ids of the kept proposals, in order.
	Kept []string
	// Undone are the ids of those that were tried without a gain, each with how many had been kept by then
	// (len(Kept)). One returns only if a finding or a gate of the buffers asks for it and more has been kept
	// since: the earlier bottleneck may have hidden its gain.
	Undone map[string]int
	// Never are the ids of those that must not return, whatever is found: declined, failed, not in force, or
	// changed by somebody else meanwhile.
	Never map[string]bool
	// Only are the ids of the knobs that may be proposed; empty: all.
	Only []string
}

// Propose is cause.Propose with these rules.
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

// add appends a proposal, or adds the additional reason to an equal one in the list.
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

// ofHost returns the end point of an advice in words; "" for the path.
func ofHost(p measure.Proposal) string {
	if len(p.Commands) == 0 {
		return ""
	}
	return p.Commands[0].EndPoint
}

// lets reports whether a proposal may be made after what was seen; tight: a gate asks for it whose limit is known
// to bind.
func (s Seen) lets(p measure.Proposal, tight bool) bool {
	if s.Never[p.ID] || !s.wants(p) {
		return false
	}
	before, tried := s.Undone[p.ID]
	return !tried || (p.Cause != "" || tight) && len(s.Kept) > before
}

// wants reports whether all knobs of a proposal may be proposed.
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
