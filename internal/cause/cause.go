// Package cause is the catalogue of causes that limit a path. It judges hosts and path before traffic (Judge),
// explains why a flow carries no more than it does (Diagnose), chooses the experiment that distinguishes the open
// causes (Next), and lists the changes to try (Propose).
//
// It is pure: the same document gives the same answer. The mechanism is in packages diagnose, gate and advise, the
// causes are in the other subpackages, and catalogue.go lists them.
//
// # One explanation
//
//  1. Diagnose fills the findings of every result from the evidence in the document. For each cause, a rule reports
//     that it holds, that a figure excludes it, or which fact is missing. A root cause comes before its effects
//     (Rule.Brings); causes that do not limit the rate come last.
//  2. `thru explain` (control/explain.go) probes the path, measures the requested traffic (the base), and diagnoses
//     it. While the first finding is not certain and the budget lasts, Next names the experiment that separates the
//     open causes: a measure.Spec that differs from the base in one thing. Its cell joins the document, and the same
//     rules judge again. The difference of the two diagnoses is what the experiment ruled out.
//  3. A stored result is diagnosed again when it is read, so better rules improve old results.
//  4. Recorded evidence of real faults tests the rules (lab/faults, `make faults`): namespaces, veth, tbf, nft, and
//     lab/wire, a user-space path that delays, drops, reorders and rewrites each segment.
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

// JudgeHypervisors returns only the gates about what a hypervisor reports of its guests.
func JudgeHypervisors(s scene.Subject) []measure.Gate {
	return gate.Judge(s, slices.DeleteFunc(Gates(), func(r gate.Rule) bool { return !r.Hypervisor }))
}

// IsHypervisorGate reports whether a gate judges what a hypervisor reports of a guest.
func IsHypervisorGate(id string) bool { return gate.IsHypervisorGateBy(Gates(), id) }

// Filter keeps the gates whose ids are in only (all, if only is empty) and not in skip. An id without a rule is an
// error, whose hint names the nearest id if there is one.
func Filter(gates []measure.Gate, only, skip []string) ([]measure.Gate, error) {
	return gate.Filter(Gates(), gates, only, skip)
}

// Diagnose fills the findings of every cell that the user requested, and those of the whole document. It may be
// called again after cells are added.
func Diagnose(d *measure.Document) {
	diagnose.Cells(d, theCatalogue())
	control.Settle(d)
	d.Findings = diagnose.Settle(slices.Concat(groups.Findings(theCatalogue(), d), diagnose.Whole(d)))
	d.Missing = diagnose.Wanted(d, theCatalogue())
	Transfer(d)
}

// Next returns the next experiment for the cell at that index. It returns false if the cause is certain or no
// experiment is left that would help. made holds the names of the experiments already tried, whatever their
// outcome.
func Next(d *measure.Document, cell int, made []string) (diagnose.Trial, bool) {
	return diagnose.Next(d, theCatalogue(), cell, made)
}

// Rungs compares several results as the rungs of a ladder, the lowest first: if a test on one machine is less than
// 1.3 times as fast as the link of the rung above should carry, that becomes the first finding of the upper rung,
// which then proves nothing about the link. Call Diagnose first.
//
// Only a test on one machine counts as a lower rung: of two paths it is unknown whether one is part of the other.
// The rungs of one document form a ladder if the plan says so (stat.Ladder has judged them).
func Rungs(docs []*measure.Document) { groups.Rungs(theCatalogue(), docs) }

// Transfer names the layer that limits a transfer, and why. It does nothing if nothing was transferred.
func Transfer(d *measure.Document) { transfer.Transfer(d, theCatalogue()) }

// Propose lists the changes to try, in this order: those for the findings, the binding one first; those for gates
// that fail; those for gates that warn, the costlier first; the last resort if almost nothing passes; options of
// the test and changes that are expensive on both hosts. A change that thru cannot or may not make itself has the
// reason (Proposal.OnlySaid) and its commands. The document must be diagnosed first. If a direction was measured
// several times, the last measurement counts; a host's reported knobs take precedence over its facts. The same
// document gives the same list.
func Propose(doc *measure.Document, seen advise.Seen) []measure.Proposal {
	return advise.Propose(doc, proposalRules(), seen)
}
