package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Verb is one request to an agent: its name on the wire, what it asks and what it
// replies. The rows of the table below are all that there are.
type Verb[Req, Rep any] struct {
	name  string        // last in the subject
	since int           // wire minor that brought it: an agent of an older one does not know it
	wait  time.Duration // for the reply, where the caller's context has no deadline
	long  bool          // its reply may be so long that an operator fetches few of them at a time
}

// Job is work that an agent does for a client between two requests: one begins it,
// the other ends it and fetches its result.
type Job[Start, Reply, End, Result any] struct {
	Begin Verb[Start, Reply]
	End   Verb[End, Result]
}

// How long a reply is waited for.
const (
	callTime    = 5 * time.Second
	factsTime   = 10 * time.Second
	prepareTime = 15 * time.Second // as long as connections take
	probeTime   = 40 * time.Second // some hundred round trips
	beginTime   = 50 * time.Second // of a session that has connections yet to make, with a far end that is no agent
	resultTime  = 30 * time.Second // of any length: at least 10 kB/s; the last access of a slow disk; a host with thousands of threads
	alterTime   = 30 * time.Second // of settings that take a link down and wait for it
)

// The verbs of an agent.
var (
	Hello       = Verb[HelloRequest, HelloReply]{name: "hello", wait: callTime}
	Clock       = Verb[Empty, ClockReply]{name: "clock", wait: callTime}
	Facts       = Verb[FactsRequest, FactsReply]{name: "facts", wait: factsTime}
	Answer      = Verb[Empty, AnswerReply]{name: "answer", wait: callTime}
	Probe       = Verb[ProbeRequest, ProbeReply]{name: "probe", wait: probeTime}
	Reserve     = Verb[ReserveRequest, ReserveReply]{name: "reserve", wait: callTime}
	Prepare     = Verb[PrepareRequest, PrepareReply]{name: "prepare", wait: prepareTime}
	Start       = Verb[StartRequest, Empty]{name: "start", wait: beginTime}
	Collect     = Verb[CollectRequest, CollectReply]{name: "collect", wait: resultTime, long: true}
	CapturePart = Verb[CaptureRequest, CaptureReply]{name: "captured", wait: resultTime, long: true}
	Release     = Verb[ReleaseRequest, Empty]{name: "release", wait: callTime}
	Knobs       = Verb[KnobsRequest, KnobsReply]{name: "knobs", wait: factsTime}
	Tune        = Verb[TuneRequest, Empty]{name: "tune", wait: alterTime}
	Alter       = Verb[AlterRequest, ChangedReply]{name: "alter", wait: alterTime}
	Revert      = Verb[RevertRequest, ChangedReply]{name: "revert", wait: alterTime}
	Rollback    = Verb[Empty, ChangedReply]{name: "rollback", wait: alterTime} // all that the journal says was changed and not undone, also by earlier tunings and runs of the agent
	TuneEnd     = Verb[Empty, Empty]{name: "tuned", wait: alterTime}           // what has not been reverted stays
	FileSize    = Verb[FilePath, FileSizeReply]{name: "size", wait: callTime}
	FileRemove  = Verb[FilePath, Empty]{name: "remove", wait: callTime}
	Guests      = Verb[Empty, GuestsReply]{name: "guests", wait: resultTime, long: true}
)

// The jobs of an agent.
var (
	Disk    = Job[DiskStart, JobReply, JobEnd, DiskResult]{Verb[DiskStart, JobReply]{name: "disk", wait: callTime}, Verb[JobEnd, DiskResult]{name: "disked", wait: resultTime}}
	Observe = Job[ObserveStart, JobReply, JobEnd, ObserveResult]{Verb[ObserveStart, JobReply]{name: "observe", wait: callTime}, Verb[JobEnd, ObserveResult]{name: "observed", wait: factsTime}}
	File    = Job[FileStart, FileReply, FileEnd, FileResult]{Verb[FileStart, FileReply]{name: "file", wait: callTime}, Verb[FileEnd, FileResult]{name: "filed", wait: callTime}}
	Watch   = Job[WatchStart, JobReply, JobEnd, WatchResult]{Verb[WatchStart, JobReply]{name: "watch", wait: callTime}, Verb[JobEnd, WatchResult]{name: "watched", wait: resultTime, long: true}}
)

// Verbs are those of an agent, whatever their types.
func Verbs() []AnyVerb {
	return []AnyVerb{
		Hello, Clock, Facts, Answer, Probe, Reserve, Prepare, Start, Collect, CapturePart, Release,
		Knobs, Tune, Alter, Revert, Rollback, TuneEnd, Disk.Begin, Disk.End, Observe.Begin, Observe.End,
		File.Begin, File.End, FileSize, FileRemove, Guests, Watch.Begin, Watch.End,
	}
}

// AnyVerb is a Verb whatever its types.
type AnyVerb interface {
	String() string
	// Wait is how long a reply is waited for where the caller's context has no deadline.
	Wait() time.Duration
	// Since is the wire minor that brought it.
	Since() int
	// By answers it by a function of any message: m is of the type of its request,
	// and what is returned of that of its reply, or nil for an empty one.
	By(run func(ctx context.Context, client string, m any) (any, error)) Answerer
}

// String is the name of a verb on the wire.
func (v Verb[Req, Rep]) String() string { return v.name }

// Wait implements AnyVerb.
func (v Verb[Req, Rep]) Wait() time.Duration { return v.wait }

// Since implements AnyVerb.
func (v Verb[Req, Rep]) Since() int { return v.since }

// By implements AnyVerb.
func (v Verb[Req, Rep]) By(run func(ctx context.Context, client string, m any) (any, error)) Answerer {
	return On(v, func(ctx context.Context, client string, m Req) (r Rep, err error) {
		reply, err := run(ctx, client, m)
		r, _ = reply.(Rep)
		return r, err
	})
}

// Answerer answers one verb: JSON in, JSON out.
type Answerer struct {
	verb string
	run  func(ctx context.Context, client string, body []byte) ([]byte, error)
}

// Verb is what it answers, as on the wire.
func (a Answerer) Verb() string { return a.verb }

// Answer answers a message of this process, and reads the answer into reply, a pointer.
func (a Answerer) Answer(ctx context.Context, client string, m, reply any) error {
	body, err := json.Marshal(m)
	if err == nil {
		body, err = a.run(ctx, client, body)
	}
	if err != nil {
		return err
	}
	return decode(body, reply)
}

// On answers a verb by a function. It is called concurrently; its context ends when
// the client is gone or has stopped waiting.
func On[Req, Rep any](v Verb[Req, Rep], answer func(ctx context.Context, client string, m Req) (Rep, error)) Answerer {
	return Answerer{v.name, func(ctx context.Context, client string, body []byte) ([]byte, error) {
		var m Req
		if err := decode(body, &m); err != nil {
			return nil, fmt.Errorf("bus: reading the request: %w", err)
		}
		r, err := answer(ctx, client, m)
		if err != nil {
			return nil, err
		}
		return json.Marshal(r)
	}}
}

// Handler is what an agent answers. The client id has been checked by the
// control plane; a handler trusts it. Errors travel with hint and exit code.
type Handler interface {
	// Answers are its verbs; each has one.
	Answers() []Answerer
	// Gone tells that the client is no more: everything of it must end.
	Gone(client string)
}
