// Package engine defines how test traffic is moved: an Engine opens one end of one flow as a Session, which connects, starts on a barrier, reports its
// progress, and keeps the evidence of its end.
//
// Engines never import each other. The tests of package worker hold the contract of the data plane that all engines use.
//
// # Foreign programs
//
// An engine for a foreign protocol runs in the agent, and a worker moves its bytes: state machines need goroutines and a garbage collector, hot loops need
// neither. The engine makes the connections and hands their descriptors to a worker over a Unix socket (worker.Adopt, Take; SCM_RIGHTS). Windows cannot do
// this, so thru refuses these end points there.
//
// For iperf3://HOST only the local agent has a session. The worker reports when it has stopped; the engine then ends the test with the far end, reads its
// results, and calls Enough. The figures that the far end reports become the evidence of that end (Session.Far), marked reported_by.
//
// The engine's server side (`thru serve --iperf`) takes a call up to the point where it knows the requested test. Package node runs that test as a plan of one
// step, as for its own clients: with turn, limits, evidence, and a stored document. Prepare.Token identifies the call for the engine. A foreign client cannot
// queue, because its program knows only "busy": the server refuses it while another test has the turn. Foreign clients share the turn among themselves.
package engine

import (
	"context"
	"errors"
	"time"

	"thru/internal/host"
	"thru/internal/measure"
)

// End describes one end of one flow.
type End struct {
	Name    string // of the end point, for the evidence
	Spec    measure.Spec
	Sends   bool     // this end sends the data
	Dials   bool     // this end opens the connections
	Targets []string // HOST:PORT to try in order, at the dialling end
	Token   string   // from the listening end's Ready, at the dialling end
	// PeerPorts is the listening end's port range, at the dialling end, for the hint when nothing answers.
	PeerPorts [2]int
	Listen    Listen // at the listening end
	MaxRate   int64  // bit/s of goodput that this end allows; 0: no limit
	Login     Login  // where the far end requires a login
}

// Login is what an iperf3 server may require of its clients.
type Login struct {
	User, Password string
	PublicKey      []byte // of the server: PEM
	PKCS1          bool   // the older padding, PKCS #1 v1.5, in place of OAEP
}

// String keeps the password out of all output.
func (l Login) String() string { return "login of " + l.User }

// Listen says where an end may accept data connections.
type Listen struct {
	Addrs       []string // addresses without port; empty means all
	Device      string
	First, Last int // port range, inclusive
	Offset      int // where in the range to start looking for a free port
}

// Ready is what a Session knows when Open returns: a listening end its address, a dialling end its connections.
type Ready struct {
	Token   string
	Port    int
	Local   string
	Peer    string
	Conns   []measure.Addresses // of the streams, those of the flow's own direction first; complete after Start
	RTTIdle *measure.RTT
	Skipped []string // targets that did not answer, with the reason
}

// Kind of an Update.
type Kind int

// Order of a session's updates: Progress any number of times in ramp and measured time, Mark when the measured time begins, Bin at each of its seconds, Finish
// when it ends, then Done (evidence complete) or Failed.
const (
	Progress Kind = iota
	Mark
	Bin
	Finish
	Done
	Failed
)

// Update reports one step of a session.
type Update struct {
	Kind        Kind
	Ramp        bool          // Progress in the ramp
	At          time.Duration // start of the interval since Mark; negative in the ramp
	Span        time.Duration
	Bytes       int64
	Packets     int64          // datagrams sent or received in the interval
	Lost        int64          // datagrams missing in it, at the receiver
	Requests    int64          // transactions in it
	Back        bool           // for the other direction of two-way traffic
	Retransmits *int64         // segments in the interval, at the sender
	Each        []measure.Tick // of each stream, where Spec.EachStream is set
	Began       int64          // Mark: its time by this host's wall clock, in ns since 1970; 0: now
	Err         error          // Failed
}

// Session is one end of one flow. Close ends it at any time, may be called twice, and leaves no process, thread, socket or goroutine of it.
type Session interface {
	Ready() Ready
	// Joined waits at a listening end until all connections are made; after that Ready names the peer.
	Joined(ctx context.Context) error
	// Start releases the barrier. ramp is the time that does not count, near the CPU placement facts of the interface.
	Start(ctx context.Context, ramp time.Duration, near host.PlacementFacts) error
	// Updates is closed after Done or Failed, or by Close.
	Updates() <-chan Update
	// Process is the id of the process that moves the data, for its CPU and memory.
	Process() int
	// Evidence is complete after Done, and partial before.
	Evidence() measure.Evidence
	// Back returns the evidence of the other direction of two-way traffic (Spec.Duplex); false where there is none.
	Back() (measure.Evidence, bool)
	// Far returns the evidence that the program at the other end reports of itself, and that of the other direction of two-way traffic; nil where the other
	// end is an agent, which has its own evidence.
	Far() (far, back *measure.Evidence)
	Close() error
}

// Engine opens sessions. Its errors carry hints of internal/fault.
type Engine interface {
	Name() string
	Open(ctx context.Context, e End) (Session, error)
}

// Call is a client of a foreign program that has requested a test and waits. The server runs the test as any other: its Specs name the engine, and Token
// identifies the call for that engine, as End.Token at the listening end.
type Call struct {
	Token   string
	Name    string // of its end point in Specs, such as "iperf3://10.0.0.2"; the other one is "local"
	Addr    string
	Program string // program and version that it reports, such as "iperf3 3.12"; may be empty
	Specs   []measure.Spec
	Back    *Callback // a test back to the client (iperf2 -d and -r); nil without
	// Refuse ends the call without a test, by the means of its protocol. It does nothing once an engine has taken the call.
	Refuse func(reason error)
}

// Callback is a test that a caller requests from here to its own port: at the same time as its own test, or after it.
type Callback struct {
	Spec   measure.Spec // from "local", which dials
	Port   int
	AtOnce bool
}

// ErrBusy is the reason to refuse a call: another test has the turn.
var ErrBusy = errors.New("engine: another test is running here")

// Table finds an engine by the name in Spec.Engine.
type Table map[string]Engine
