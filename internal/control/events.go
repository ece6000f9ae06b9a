package control

import (
	"time"

	"thru/internal/bus"
	"thru/internal/measure"
)

// Observer receives the events of a run, in their order.
type Observer interface{ Hear(Event) }

// Event is one of the types below.
type Event interface{ happens() }

// Checking: facts are read, or the path is probed.
type Checking struct{ What string }

// StepBegun: a run of a step begins; Done and Total count the runs of the plan.
type StepBegun struct {
	Label       string
	Specs       []measure.Spec
	Done, Total int
}

// Waiting: other clients' tests are ahead at an end point.
type Waiting struct {
	EndPoint string
	Ahead    int
}

// Live is one interval of a flow at one of its ends.
type Live struct {
	Flow     int // index within the step
	EndPoint string
	Sends    bool
	Total    time.Duration // measured time as planned
	Ramp     time.Duration
	Event    bus.Event
}

// Ran: a run has ended, with its cell's figures so far.
type Ran struct{ Cell *measure.Cell }

// Explained: a step of an explanation has ended.
type Explained struct{ Step measure.Step }

// Failed: a flow of a step has failed, and the others go on.
type Failed struct {
	Spec measure.Spec
	Err  error
}

// Planned: a tuning has listed the changes that it will try, and how long they take.
type Planned struct {
	Tuning    measure.Tuning
	Proposals []measure.Proposal
}

// Trying: a change is about to be tried; Done of Of changes are tried, Of may still grow.
type Trying struct {
	Proposal measure.Proposal
	Done, Of int
	Left     time.Duration // of the budget
}

// Tried: the result of a tried change.
type Tried struct{ Attempt measure.Attempt }

// Stands: the state that a tuning has reached, with a cell of each direction.
type Stands struct {
	Milestone measure.Milestone
	Cells     []measure.Cell
}

func (Checking) happens()  {}
func (StepBegun) happens() {}
func (Waiting) happens()   {}
func (Live) happens()      {}
func (Ran) happens()       {}
func (Explained) happens() {}
func (Failed) happens()    {}
func (Planned) happens()   {}
func (Trying) happens()    {}
func (Tried) happens()     {}
func (Stands) happens()    {}
