package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Verb is one request to an agent: its name on the wire, its request and reply types.
// The table below has them all.
type Verb[Req, Rep any] struct {
	name  string        // last token of the subject
	since int           // wire minor that introduced it: an older agent does not know it
	wait  time.Duration // for the reply, where the caller's context has no deadline
	long  bool          // its reply may be so long that an operator fetches only a few at a time
}

// Job is work that an agent does for a client between two requests: one begins it, the
// other ends it and fetches its result.
type Job[Start, Reply, End, Result any] struct {
	Begin Verb[Start, Reply]
	End   Verb[End, Result]
}

// Time limits for replies.
const (
	callTime    = 5 * time.Second
	factsTime   = 10 * time.Second
	prepareTime = 15 * time.Second // includes connecting
	probeTime   = 40 * time.Second // some hundred round trips
	beginTime   = 50 * time.Second // of a session that has yet to connect to a foreign far end
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
	Rollback    = Verb[Empty, ChangedReply]{name: "rollback", wait: alterTime} // all unreverted changes in the journal, including those of earlier tunings and runs of the agent
	TuneEnd     = Verb[Empty, Empty]{name: "tuned", wait: alterTime}           // what was not reverted stays
	FileSize    = Verb[FilePath, FileSizeReply]{name: "size", wait: callTime}
	FileRemove  = Verb[FilePath, Empty]{name: "remove", wait: callTime}
	Guests      = Verb[Empty, GuestsReply]{name: "guests", wait: resultTime, long: true}
	Reflect     = Verb[ReflectRequest, ReflectReply]{name: "reflect", since: 1, wait: callTime}
	Pairs       = Verb[PairsRequest, PairsReply]{name: "pairs", since: 1, wait: factsTime}
	Samples     = Verb[SamplesRequest, SamplesReply]{name: "samples", since: 1, wait: resultTime, long: true}
)

// The jobs of an agent.
var (
	Disk    = Job[DiskStart, JobReply, JobEnd, DiskResult]{Verb[DiskStart, JobReply]{name: "disk", wait: callTime}, Verb[JobEnd, DiskResult]{name: "disked", wait: resultTime}}
	Observe = Job[ObserveStart, JobReply, JobEnd, ObserveResult]{Verb[ObserveStart, JobReply]{name: "observe", wait: callTime}, Verb[JobEnd, ObserveResult]{name: "observed", wait: factsTime}}
	File    = Job[FileStart, FileReply, FileEnd, FileResult]{Verb[FileStart, FileReply]{name: "file", wait: callTime}, Verb[FileEnd, FileResult]{name: "filed", wait: callTime}}
	Watch   = Job[WatchStart, JobReply, JobEnd, WatchResult]{Verb[WatchStart, JobReply]{name: "watch", wait: callTime}, Verb[JobEnd, WatchResult]{name: "watched", wait: resultTime, long: true}}
)

// Verbs returns those of an agent, of any type.
func Verbs() []AnyVerb {
	return []AnyVerb{
		Hello, Clock, Facts, Answer, Probe, Reserve, Prepare, Start, Collect, CapturePart, Release,
		Knobs, Tune, Alter, Revert, Rollback, TuneEnd, Disk.Begin, Disk.End, Observe.Begin, Observe.End,
		File.Begin, File.End, FileSize, FileRemove, Guests, Watch.Begin, Watch.End, Reflect, Pairs, Samples,
	}
}

// AnyVerb is a Verb of any type.
type AnyVerb interface {
	String() string
	// Wait returns how long to wait for a reply where the caller's context has no deadline.
	Wait() time.Duration
	// Since returns the wire minor that introduced the verb.
	Since() int
	// By returns an Answerer that calls run: m has the type of the request, and the
	// result that of the reply, or is nil for an empty one.
	By(run func(ctx context.Context, client string, m any) (any, error)) Answerer
}

// String returns the name of a verb on the wire.
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

// Verb returns the verb's name on the wire.
func (a Answerer) Verb() string { return a.verb }

// Answer answers a message of this process, and stores the reply in the pointer reply.
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

// On returns an Answerer that calls a function. It is called concurrently; its context
// ends when the client is gone or has stopped waiting.
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

// Handler is the implementation of an agent's verbs. It can trust the client id, which
// the control plane has checked. Errors keep their hint and exit code on the wire.
type Handler interface {
	// Answers returns one Answerer for each verb of the agent.
	Answers() []Answerer
	// Gone reports that the client is gone: all that belongs to it must end.
	Gone(client string)
}
