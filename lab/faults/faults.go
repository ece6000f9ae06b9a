// Package faults is a table of paths with something wrong, each made of
// network namespaces with real kernels and real traffic, and of what thru must
// say of it. With them stand healthy paths, of which it must say nothing.
//
// `make faults` measures all of them, one after the other, and prints what was
// said. It needs root and a quiet machine.
package faults

import (
	"context"
	"testing"

	"thru/internal/measure"
	"thru/lab"
)

// Fault is one path with what is wrong with it.
type Fault struct {
	Name    string   // stable, kebab-case, unique
	About   string   // what is wrong, in a few words
	Forward *Want    // of the data from the client; nil does not measure that direction
	Back    *Want    // of the data to the client
	Args    []string // of the command, beside the end point
	Needs   []lab.Need
	Build   func(t testing.TB) *Scene // what it makes goes with the test
}

// Want is what must be said of one direction.
type Want struct {
	Cause string   `json:"cause"`        // id of the first finding
	Or    []string `json:"or,omitempty"` // causes that are as right; Why says why
	Why   string   `json:"why,omitempty"`
	Place string   `json:"place,omitempty"` // measure.AtSender and so on; empty where several are right
	With  string   `json:"with,omitempty"`  // a cause that must be found too, first or not
}

// Scene is two hosts in which a Fault can be seen.
type Scene struct {
	Client, Server *lab.Host // without a server the client measures itself
	Target         string    // address of the server
	// In front of the program, such as a shell that joins a control group.
	ClientBy, ServerBy []string
	// During runs beside the command and ends with ctx; nil does nothing.
	During func(ctx context.Context)
}

// Healthy are the causes that say that nothing is wrong.
func Healthy() []string { return []string{"link-rate", measure.CauseNone} }
