// Package cause is the catalogue of what can hold a path back. It judges hosts
// and path before traffic (Judge), names why a flow carries no more than it
// does (Diagnose), chooses the experiment that tells open causes apart (Next),
// and lists the changes to try (Propose).
//
// It is pure: the same document gives the same answer. The mechanism is in
// diagnose, gate and advise; the causes are in the families beside them, and
// catalogue.go is their table.
//
// # One explanation
//
//  1. Diagnose fills the findings of every result from the evidence that the document holds anyway. A rule says of its cause
//     that it holds, that a figure speaks against it, or which fact is missing. A root stands before what it brings along
//     (Rule.Brings); what the rate does not depend on comes last.
//  2. `thru explain` (control/explain.go) probes the path, measures the traffic that was asked for (the base), and diagnoses. While the first
//     finding is not certain and the budget lasts, Next names the experiment that separates the open causes: a measure.Spec that
//     differs from the base in one thing. Its cell joins the document, and the same rules judge again. What an experiment ruled out is
//     the difference of the two diagnoses.
//  3. A stored result is diagnosed anew when it is read, so better rules improve old results.
//  4. Recorded evidence of real faults holds the rules (lab/faults, `make faults`): namespaces, veth, tbf, nft, and lab/wire, a path in user
//     space that delays, drops, reorders and rewrites each segment.
package cause

import (
	"slices"

	"thru/internal/cause/advise"
	"thru/internal/cause/control"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/groups"
	"thru/internal/cause/scene"
	"thru/internal/cause/transfer"
	"thru/internal/measure"
)

// Judge returns all gates, the worst first, then in the order of the catalogue.
func Judge(s scene.Subject) []measure.Gate { return gate.Judge(s, Gates()) }

// JudgeHypervisors returns the gates of what a hypervisor says of guests alone.
func JudgeHypervisors(s scene.Subject) []measure.Gate {
	return gate.Judge(s, slices.DeleteFunc(Gates(), func(r gate.Rule) bool { return !r.Hypervisor }))
}

// IsHypervisorGate tells whether a gate judges what a hypervisor says of a guest.
func IsHypervisorGate(id string) bool { return gate.IsHypervisorGateBy(Gates(), id) }

// Filter keeps the gates whose ids are in only (all, where it is empty) and
// not in skip. An id that no rule has is a mistake of the caller's, and the
// error's hint is the nearest one, if any is near.
func Filter(gates []measure.Gate, only, skip []string) ([]measure.Gate, error) {
	return gate.Filter(Gates(), gates, only, skip)
}

// Diagnose fills the findings of every cell that a person asked for, and those
// of the whole. It may be called again as cells are added.
func Diagnose(d *measure.Document) {
	diagnose.Cells(d, theCatalogue())
	control.Settle(d)
	d.Findings = diagnose.Settle(slices.Concat(groups.Findings(theCatalogue(), d), diagnose.Whole(d)))
	d.Missing = diagnose.Wanted(d, theCatalogue())
	Transfer(d)
}

// Next is the experiment to make next for the cell at that index; false where
// it is settled, or nothing that is left would tell more. made are the names
// of those that were tried already, whatever came of them.
func Next(d *measure.Document, cell int, made []string) (diagnose.Trial, bool) {
	return diagnose.Next(d, theCatalogue(), cell, made)
}

// Rungs looks at several results as the rungs of a ladder, the lowest first:
// where a machine measured against itself is no faster than 1.3 times what a
// link above it should carry, that comes first in the findings of the upper
// rung, which then proves nothing of the link. Diagnose comes before it.
//
// Only a rung on one machine is taken for the lower one: of two paths nobody
// says that one is a part of the other. The rungs of one document are a ladder
// of which the plan says so (stat.Ladder has judged them).
func Rungs(docs []*measure.Document) { groups.Rungs(theCatalogue(), docs) }

// Transfer names which layer of a transfer binds, and why. It does nothing where
// nothing was moved.
func Transfer(d *measure.Document) { transfer.Transfer(d, theCatalogue()) }

// Propose lists the changes to try, in order: what the findings ask for, the
// binding one first; then what gates ask for that fail; then what gates ask for
// that warn, the costlier first; then the last resort where next to nothing passes;
// then options of the test, and what asks much of both hosts. A
// change that thru cannot or may not make itself says why (Proposal.OnlySaid),
// and has its commands. The document has to be diagnosed (package diagnose). Of
// several measurements of one direction the last counts; what a host says of
// its knobs counts before its facts. The same document gives the same list.
func Propose(doc *measure.Document, seen advise.Seen) []measure.Proposal {
	return advise.Propose(doc, proposalRules(), seen)
}
