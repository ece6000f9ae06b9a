// Package tuning is a table of healthy paths and of hosts on them with bad settings, in network namespaces
// with real kernels and traffic, and of what `thru tune` must make of each. It also kills the tuning programs
// at random moments, and compares all settings of both hosts before and after.
//
// `make tunes` runs all cases, one after the other, and prints the results. It needs root and a quiet
// machine. To run one case, with a binary that was built before:
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
	Peer     = "peer"     // host b, by the join string that allows tuning
	Measured = "measured" // host b, by the join string that only allows measuring
)

// Case is a healthy path with some bad settings.
type Case struct {
	Name  string // stable, kebab-case, unique
	Build func(t testing.TB) *Scene
	Args  []string // of the traffic: "--one-way"
	Bad   []Bad
	Needs []lab.Need
}

// Bad is one bad setting, or one fault of the path.
type Bad struct {
	Name  string
	About string
	Spoil func(s *Scene)
	// Cures are the changes that repair it, "tcp-rmem@peer": keeping them is right. A Bad without cures does
	// no harm: then none of its settings may be changed for good.
	Cures []string
}

// named returns a case with these bad things. Its name joins their names, without characters that are special
// to -run.
func named(c Case, bad ...Bad) Case {
	var names []string
	for _, b := range bad {
		names = append(names, b.Name)
	}
	c.Name, c.Bad = strings.Join(append([]string{c.Name}, names...), "_"), bad
	return c
}

// may reports whether a change repairs something in this case.
func (c Case) may(change string) bool {
	return slices.ContainsFunc(c.Bad, func(b Bad) bool { return slices.Contains(b.Cures, change) })
}

// changes names the changes of an attempt: "tcp-rmem@peer", or "-P 4" for an option of the test.
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
