// Package rule defines a cause of the catalogue: one value with all that thru knows of it, from the gate before
// traffic to the change that helps.
package rule

import (
	"thru/internal/cause/advise"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/measure"
)

// Cause is one cause of a rate that is lower than it could be. It has one file in its family, and a row in the
// catalogue.
type Cause struct {
	// Rule has its id and texts, how counters and packets show it, what distinguishes it from similar causes, and
	// which causes are its effects.
	diagnose.Rule
	// Gates show before any traffic that it would limit the rate. Their Cause is this one.
	Gates []gate.Rule
	// Urgent is its position, from 1, among the causes whose gates are fixed first, by their possible cost. With 0
	// its gates come after those.
	Urgent int
	// Propose are the changes of settings that help, in order. Without any, the fix of the finding is passed on in
	// words.
	Propose []advise.Proposer
	// Tight reports whether a gate shows a limit that is known to bind (advise.Rule).
	Tight func(advise.Request) bool
	// LastResort assumes the cause if almost nothing passes (advise.Rule).
	LastResort func(*advise.Direction) *measure.Finding
}
