// Package faults is a table of faulty paths, each made of network namespaces with real kernels and real
// traffic, and of the diagnosis that thru must give. It also has healthy paths, for which thru must report
// nothing.
//
// `make faults` measures all of them in turn and prints the diagnoses. It needs root and a quiet machine.
package faults

import (
	"context"
	"testing"

	"thru/internal/measure"
	"thru/lab"
)

// Fault is one path and its fault.
type Fault struct {
	Name    string   // stable, kebab-case, unique
	About   string   // the fault in a few words
	Forward *Want    // for data from the client; nil: do not measure this direction
	Back    *Want    // for data to the client
	Args    []string // of the command, in addition to the end point
	Needs   []lab.Need
	Build   func(t testing.TB) *Scene // cleaned up after the test
}

// Want is the expected diagnosis of one direction.
type Want struct {
	Cause string   `json:"cause"`        // id of the first finding
	Or    []string `json:"or,omitempty"` // other correct causes; Why explains them
	Why   string   `json:"why,omitempty"`
	Place string   `json:"place,omitempty"` // measure.AtSender and so on; empty if several are correct
	With  string   `json:"with,omitempty"`  // a cause that must also be found, in any place
}

// Scene is two hosts that show a Fault.
type Scene struct {
	Client, Server *lab.Host // without a server the client tests itself
	Target         string    // address of the server
	// Command prefixes, such as a shell that joins a control group.
	ClientBy, ServerBy []string
	// During runs concurrently with the command and ends with ctx; nil does nothing.
	During func(ctx context.Context)
}

// Healthy returns the causes that mean that nothing is wrong.
func Healthy() []string { return []string{"link-rate", measure.CauseNone} }
