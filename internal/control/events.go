package control

import (
	"time"

	"thru/internal/bus"
	"thru/internal/measure"
)

// Observer hears what happens, in the order in which it happens.
type Observer interface{ Hear(Event) }

// Event is something that happens: one of the types below.
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
	Total    time.Duration // of the measured time
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

// Planned: a tuning knows what it will try, and how long that takes.
type Planned struct {
	Tuning    measure.Tuning
	Proposals []measure.Proposal
}

// Trying: a change is to be tried, after so many of those that there are now.
type Trying struct {
	Proposal measure.Proposal
	Done, Of int
	Left     time.Duration // of the budget
}

// Tried: what became of it.
type Tried struct{ Attempt measure.Attempt }

// Stands: the state that a tuning has come to, with a cell of each direction.
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
