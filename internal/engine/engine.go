// Package engine defines what moves test traffic: an Engine opens one end of
// one flow as a Session, which connects, starts on a barrier, reports its
// progress, and keeps the evidence of its end.
//
// Engines never import each other. The contract of the data plane that all of them
// use is in the tests of package worker.
//
// # Foreign programs
//
// An engine that speaks a foreign protocol runs in the agent, and a worker moves its bytes: state machines want goroutines and a
// garbage collector, hot loops neither. It makes the connections and hands their descriptors to a worker over a Unix socket
// (worker.Adopt, Take; SCM_RIGHTS). Windows has no such thing, and these end points are refused there.
//
// Of iperf3://HOST the local agent alone has a session. The worker says when it has stopped, the engine tells the far
// end, reads its results, and calls Enough. What the far end reports of itself is the evidence of that end (Session.Far), marked
// reported_by.
//
// The engine's server side (`thru serve --iperf`) takes a call up to the point where it knows what is asked for. That makes a plan of
// one step, which package node runs as for any client of its own: with turn, limits, evidence, and a document that is kept.
// Prepare.Token names the call to the engine. A foreign client does not queue, since its program knows only "busy": it is told so
// while another test has the turn. Foreign clients share the turn among themselves.
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
	Targets []string // HOST:PORT to try in order, at the end that dials
	Token   string   // from the listening end's Ready, at the end that dials
	// PeerPorts is the listening end's range, at the end that dials, for the hint when nothing answers.
	PeerPorts [2]int
	Listen    Listen // at the end that listens
	MaxRate   int64  // bit/s of goodput that this end allows; 0 is no bound
	Login     Login  // where the far end asks who we are
}

// Login is what an iperf3 server may ask of its clients.
type Login struct {
	User, Password string
	PublicKey      []byte // of the server: PEM
	PKCS1          bool   // the older padding, PKCS #1 v1.5, in place of OAEP
}

// String keeps the password out of every print.
func (l Login) String() string { return "login of " + l.User }

// Listen says where an end may accept data connections.
type Listen struct {
	Addrs       []string // addresses without port; empty means all
	Device      string
	First, Last int // port range, inclusive
	Offset      int // where in it to begin looking for a free port
}

// Ready is what a Session knows when Open returns: a listening end where it
// can be reached, a dialling end what it is connected to.
type Ready struct {
	Token   string
	Port    int
	Local   string
	Peer    string
	Conns   []measure.Addresses // of the streams, those of the flow's own direction first; after Start at the latest
	RTTIdle *measure.RTT
	Skipped []string // targets that did not answer, with the reason
}

// Kind of an Update.
type Kind int

// The course of a session: Progress any number of times in ramp and measured
// time, Mark when the measured time begins, Bin at each of its seconds, Finish
// when it is over, then Done (evidence complete) or Failed.
const (
	Progress Kind = iota
	Mark
	Bin
	Finish
	Done
	Failed
)

// Update tells of one step of a session.
type Update struct {
	Kind        Kind
	Ramp        bool          // Progress in the ramp
	At          time.Duration // start of the interval since Mark; negative in the ramp
	Span        time.Duration
	Bytes       int64
	Packets     int64          // datagrams sent or received in the interval
	Lost        int64          // datagrams missed in it, at the receiver
	Requests    int64          // transactions in it
	Back        bool           // of the other direction of two-way traffic
	Retransmits *int64         // segments in the interval, at the sender
	Each        []measure.Tick // of each stream, where Spec.EachStream asks for it
	Began       int64          // Mark: when that was by this host's wall clock, in ns since 1970; 0: just now
	Err         error          // Failed
}

// Session is one end of one flow. Close ends it at any time, twice without
// harm, and leaves no process, thread, socket or goroutine of it.
type Session interface {
	Ready() Ready
	// Joined waits at a listening end until all connections have come; from then
	// on Ready names the peer.
	Joined(ctx context.Context) error
	// Start releases the barrier; ramp is the time that is not counted, near
	// what is known of the CPUs close to the interface.
	Start(ctx context.Context, ramp time.Duration, near host.PlacementFacts) error
	// Updates is closed after Done or Failed, or by Close.
	Updates() <-chan Update
	// Process is the id of the process that moves the data, for its CPU and memory.
	Process() int
	// Evidence is complete after Done, and what there is so far before.
	Evidence() measure.Evidence
	// Back is the evidence of the other direction of two-way traffic
	// (Spec.Duplex); false where there is none.
	Back() (measure.Evidence, bool)
	// Far is what the program at the other end reported of itself, and of the
	// other direction of two-way traffic; nil where the other end is an agent,
	// which speaks for itself.
	Far() (far, back *measure.Evidence)
	Close() error
}

// Engine opens sessions. Errors say what to do by internal/fault.
type Engine interface {
	Name() string
	Open(ctx context.Context, e End) (Session, error)
}

// Call is a client of a foreign program's kind that has asked for a test and
// now waits. What it asks for is run as any test is: its Specs name the engine,
// and Token names the call to that engine, as End.Token at the end that listens.
type Call struct {
	Token   string
	Name    string // of its end point in Specs, such as "iperf3://10.0.0.2"; the other one is "local"
	Addr    string
	Program string // what it says it is, such as "iperf3 3.12"; may be empty
	Specs   []measure.Spec
	Back    *Callback // it wants to be called back too (iperf2 -d and -r); nil else
	// Refuse ends the call without a test, in the words of its protocol. It does
	// nothing once an engine has taken the call.
	Refuse func(reason error)
}

// Callback is a test that a caller wants from here to a port of its own: at
// once with the one that it makes, or after it.
type Callback struct {
	Spec   measure.Spec // from "local", which dials
	Port   int
	AtOnce bool
}

// ErrBusy is the reason to refuse a call: another test has the turn.
var ErrBusy = errors.New("engine: another test is running here")

// Table finds an engine by the name in Spec.Engine.
type Table map[string]Engine
