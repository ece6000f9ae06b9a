// Package tuning is a table of healthy paths, and of hosts on them that are
// badly set: real kernels in network namespaces, real traffic, and what
// `thru tune` must make of it. It also kills whoever tunes, at any moment, and
// compares all settings of both hosts before and after.
//
// `make tunes` runs all of it, one after the other, and prints what came of
// it. It needs root and a quiet machine. One case alone, by a binary that was
// built before:
//
//	go test -c -tags tuning -o tuning.test ./lab/tuning
//	./tuning.test -names
//	THRU_BINARY=bin/thru ./tuning.test -test.run 'TestCases/^long_small-receive$'
//	THRU_BINARY=bin/thru ./tuning.test -test.run TestAA -aa 20
package tuning

import (
	"slices"
	"strings"
	"testing"

	"thru/internal/measure"
	"thru/lab"
)

// Names of the end points of a Scene, as documents have them.
const (
	Local    = "local"    // host a, where the commands run
	Peer     = "peer"     // host b, by the join string that lets tune
	Measured = "measured" // host b, by the join string that lets measure and no more
)

// Case is a healthy path on which something is set badly.
type Case struct {
	Name  string // stable, kebab-case, unique
	Build func(t testing.TB) *Scene
	Args  []string // of the traffic: "--one-way"
	Bad   []Bad
	Needs []lab.Need
}

// Bad is one thing that is set badly, or that the path does not let pass.
type Bad struct {
	Name  string
	About string
	Spoil func(s *Scene)
	// Cures are changes that mend it, "tcp-rmem@peer": keeping them is right. None
	// mend what does no harm: then nothing of it may be kept.
	Cures []string
}

// named is a case with these things bad, and a name of all of them in which
// nothing has a meaning to -run.
func named(c Case, bad ...Bad) Case {
	var names []string
	for _, b := range bad {
		names = append(names, b.Name)
	}
	c.Name, c.Bad = strings.Join(append([]string{c.Name}, names...), "_"), bad
	return c
}

// may tells whether a change is one that mends something here.
func (c Case) may(change string) bool {
	return slices.ContainsFunc(c.Bad, func(b Bad) bool { return slices.Contains(b.Cures, change) })
}

// changes names what an attempt has changed: "tcp-rmem@peer", or "-P 4" where it
// is an option of the test.
func changes(p measure.Proposal) []string {
	var all []string
	for _, s := range p.Settings {
		all = append(all, s.Knob+"@"+s.EndPoint)
	}
	if p.Test != nil {
		all = append(all, p.Test.Flags)
	}
	return all
}
