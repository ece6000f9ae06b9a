// Package rule says what a cause of the catalogue is: one value that holds all
// that thru knows of it, from the gate before traffic to the change that helps.
package rule

import (
	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/measure"
)

// Cause is one cause of a rate that is lower than it could be. It stands in one
// file of its family, and in a row of the catalogue.
type Cause struct {
	// Rule is its id and words, the judgement by counters and by packets, what
	// tells it from its neighbours, and which causes it brings along.
	diagnose.Rule
	// Gates show before any traffic that it would bind. Their Cause is this one.
	Gates []gate.Rule
	// Urgent is its place among the causes whose gates are mended first, by what they
	// may cost, from 1 on; 0: its gates follow.
	Urgent int
	// Propose are the changes of settings that help, in order; none: then
	// the remedy of the finding is passed on in words.
	Propose []advise.Proposer
	// Tight tells of a gate that says what is known to bind (advise.Rule).
	Tight func(advise.Request) bool
	// LastResort supposes it where next to nothing passes (advise.Rule).
	LastResort func(*advise.Direction) *measure.Finding
}
