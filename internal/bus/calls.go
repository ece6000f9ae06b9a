package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"thru/internal/fault"
)

// How long a reply is waited for where the caller's context has no deadline.
const (
	callTime  = 5 * time.Second
	factsTime = 10 * time.Second
	// beginTime is for a session that has connections yet to make, with a far end that is no agent.
	beginTime   = 50 * time.Second
	prepareTime = 15 * time.Second
	probeTime   = 40 * time.Second
	collectTime = 30 * time.Second
	// capturedTime is for one part of a capture: at least 10 kB/s.
	capturedTime = 30 * time.Second
	// guestsTime is for the processes of a host with thousands of threads.
	guestsTime = 30 * time.Second
	// alterTime is for settings that take a link down and wait for it.
	alterTime = 30 * time.Second
)

// Hello introduces the two to each other. An agent of another wire major is
// an error that wraps ErrWire; its reply is returned as well.
func (c *Client) Hello(ctx context.Context) (HelloReply, error) {
	m := Hello{WireMajor: WireMajor, WireMinor: WireMinor, Thru: c.version}
	r, err := call[HelloReply](ctx, c, verbHello, callTime, m)
	if err == nil && r.WireMajor != WireMajor {
		err = c.wireError(r)
	}
	return r, err
}

// wireError names both versions, and the side to upgrade: the older one.
func (c *Client) wireError(r HelloReply) error {
	hint := "upgrade thru here"
	if r.WireMajor < WireMajor {
		hint = "upgrade thru at the end point"
	}
	return fault.Failf(hint, "bus: this %s speaks wire %d.%d, that at %s (%s) wire %d.%d: %w",
		program(c.version), WireMajor, WireMinor, c.peer(), program(r.Thru), r.WireMajor, r.WireMinor, ErrWire)
}

func program(version string) string {
	if version == "" {
		return "thru"
	}
	return "thru " + version
}

// Clock asks what time it is at the agent.
func (c *Client) Clock(ctx context.Context) (ClockReply, error) {
	return call[ClockReply](ctx, c, verbClock, callTime, Clock{})
}

// Facts fetches the facts of the agent's host.
func (c *Client) Facts(ctx context.Context, m FactsRequest) (FactsReply, error) {
	return call[FactsReply](ctx, c, verbFacts, factsTime, m)
}

// Answer opens the answering end of a probe.
func (c *Client) Answer(ctx context.Context, m Answer) (AnswerReply, error) {
	return call[AnswerReply](ctx, c, verbAnswer, callTime, m)
}

// Probe probes the path to an answering end; some hundred round trips of it.
func (c *Client) Probe(ctx context.Context, m Probe) (ProbeReply, error) {
	return call[ProbeReply](ctx, c, verbProbe, probeTime, m)
}

// Reserve asks for the agent's turn.
func (c *Client) Reserve(ctx context.Context, m Reserve) (ReserveReply, error) {
	return call[ReserveReply](ctx, c, verbReserve, callTime, m)
}

// Prepare sets up one end of a flow; it may take as long as connections do.
func (c *Client) Prepare(ctx context.Context, m Prepare) (PrepareReply, error) {
	return call[PrepareReply](ctx, c, verbPrepare, prepareTime, m)
}

// Start lets the traffic of a session flow.
func (c *Client) Start(ctx context.Context, m Start) (Empty, error) {
	return call[Empty](ctx, c, verbStart, beginTime, m)
}

// Collect fetches the evidence of a session, of any length.
func (c *Client) Collect(ctx context.Context, m Collect) (CollectReply, error) {
	return call[CollectReply](ctx, c, verbCollect, collectTime, m)
}

// Captured fetches a part of what a session has captured.
func (c *Client) Captured(ctx context.Context, m Captured) (CapturedReply, error) {
	return call[CapturedReply](ctx, c, verbCaptured, capturedTime, m)
}

// Release ends a session, or all of the client's.
func (c *Client) Release(ctx context.Context, m Release) (Empty, error) {
	return call[Empty](ctx, c, verbRelease, callTime, m)
}

// Knobs asks what can be set at the agent's host.
func (c *Client) Knobs(ctx context.Context, m Knobs) (KnobsReply, error) {
	return call[KnobsReply](ctx, c, verbKnobs, factsTime, m)
}

// Tune makes this client the one who tunes the agent's host. What an earlier
// tuning has left there is undone first.
func (c *Client) Tune(ctx context.Context, m Tune) (Empty, error) {
	return call[Empty](ctx, c, verbTune, alterTime, m)
}

// Alter sets knobs of the agent's host.
func (c *Client) Alter(ctx context.Context, m Alter) (ChangedReply, error) {
	return call[ChangedReply](ctx, c, verbAlter, alterTime, m)
}

// Revert undoes changes of this tuning.
func (c *Client) Revert(ctx context.Context, m Revert) (ChangedReply, error) {
	return call[ChangedReply](ctx, c, verbRevert, alterTime, m)
}

// Rollback undoes all that the journal of the agent's host holds.
func (c *Client) Rollback(ctx context.Context, m Rollback) (ChangedReply, error) {
	return call[ChangedReply](ctx, c, verbRollback, alterTime, m)
}

// Tuned ends this tuning and leaves what was not reverted.
func (c *Client) Tuned(ctx context.Context, m Tuned) (Empty, error) {
	return call[Empty](ctx, c, verbTuned, alterTime, m)
}

// Disk begins to measure a disk of the agent's host.
func (c *Client) Disk(ctx context.Context, m Disk) (DiskReply, error) {
	return call[DiskReply](ctx, c, verbDisk, callTime, m)
}

// Disked ends that measurement and fetches its result: the last access of a
// slow disk is waited for.
func (c *Client) Disked(ctx context.Context, m Disked) (DiskedReply, error) {
	return call[DiskedReply](ctx, c, verbDisked, collectTime, m)
}

// Observe begins to observe the agent's host during a transfer, or adds connections.
func (c *Client) Observe(ctx context.Context, m Observe) (ObserveReply, error) {
	return call[ObserveReply](ctx, c, verbObserve, callTime, m)
}

// Observed ends that and fetches what was seen.
func (c *Client) Observed(ctx context.Context, m Observed) (ObservedReply, error) {
	return call[ObservedReply](ctx, c, verbObserved, factsTime, m)
}

// File begins to move one file; what it replies says where to connect.
func (c *Client) File(ctx context.Context, m File) (FileReply, error) {
	return call[FileReply](ctx, c, verbFile, callTime, m)
}

// Filed asks how that has ended, for a moment; its error is that of the agent's end.
func (c *Client) Filed(ctx context.Context, m Filed) (FiledReply, error) {
	return call[FiledReply](ctx, c, verbFiled, callTime, m)
}

// FileSize asks for the size of a file.
func (c *Client) FileSize(ctx context.Context, m FileSize) (FileSizeReply, error) {
	return call[FileSizeReply](ctx, c, verbSize, callTime, m)
}

// FileRemove removes a file.
func (c *Client) FileRemove(ctx context.Context, m FileRemove) (Empty, error) {
	return call[Empty](ctx, c, verbRemove, callTime, m)
}

// Guests fetches the virtual machines of the agent's host.
func (c *Client) Guests(ctx context.Context, m Guests) (GuestsReply, error) {
	return call[GuestsReply](ctx, c, verbGuests, guestsTime, m)
}

// Watch begins to read counters of guests and of the agent's host.
func (c *Client) Watch(ctx context.Context, m Watch) (WatchReply, error) {
	return call[WatchReply](ctx, c, verbWatch, callTime, m)
}

// Watched ends that and fetches what was counted.
func (c *Client) Watched(ctx context.Context, m Watched) (WatchedReply, error) {
	return call[WatchedReply](ctx, c, verbWatched, guestsTime, m)
}

// call makes one request. An error of the agent comes back as *fault.Error
// with its message, hint and exit code.
func call[A any](ctx context.Context, c *Client, verb string, wait time.Duration, m any) (A, error) {
	var a A
	if _, set := ctx.Deadline(); !set {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	began := time.Now()
	body, err := c.fetch(ctx, verb, m)
	if err != nil {
		return a, c.callError(ctx, verb, time.Since(began), err)
	}
	if err := decode(body, &a); err != nil {
		return a, fmt.Errorf("bus: %s: reading the reply of %s: %w", verb, c.peer(), err)
	}
	return a, nil
}

// fetch makes a request and puts the parts of a long reply together.
func (c *Client) fetch(ctx context.Context, verb string, m any) ([]byte, error) {
	r, err := c.request(ctx, verb, m)
	if err != nil {
		return nil, err
	}
	id := r.Header.Get(headerTransfer)
	if id == "" {
		return r.Data, nil
	}
	size, err := strconv.Atoi(r.Header.Get(headerSize))
	if err != nil || size > replyBytes {
		return nil, errors.New("the length of the reply cannot be right")
	}
	body := r.Data
	for len(body) < size {
		part, err := c.request(ctx, verbPart, partRequest{Transfer: id, Offset: len(body)})
		if err != nil {
			return nil, err
		}
		if len(part.Data) == 0 || len(body)+len(part.Data) > size {
			return nil, errors.New("a part of the reply has the wrong length")
		}
		body = append(body, part.Data...)
	}
	return body, nil
}

// request sends one message and waits for its reply, the connection's end, or
// the context's.
func (c *Client) request(ctx context.Context, verb string, m any) (*nats.Msg, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	if len(body) > partBytes {
		return nil, fmt.Errorf("a request of %d bytes is too long", len(body))
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	header := nats.Header{}
	if until, ok := ctx.Deadline(); ok {
		header.Set(headerPatience, strconv.FormatInt(max(time.Until(until).Milliseconds(), 1), 10))
	}
	r, err := c.route.ask(ctx, verb, header, body)
	if err != nil {
		return nil, err
	}
	if r.Header.Get(headerCode) != "" {
		return nil, decodeError(r.Data)
	}
	return r, nil
}

// callError says what a request that failed means. What the agent itself
// answered is left as it is.
func (c *Client) callError(ctx context.Context, verb string, waited time.Duration, err error) error {
	var answered *fault.Error
	switch {
	case errors.As(err, &answered):
		return err
	case c.Err() != nil:
		return c.Err()
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fault.Failf("the end point is overloaded or stuck, or the network loses packets",
			"bus: %s: no reply from %s within %v: %w", verb, c.peer(), waited.Round(100*time.Millisecond), ErrTimeout)
	case errors.Is(err, nats.ErrNoResponders) && c.name != "":
		return fault.Failf("`thru hosts` shows who is there", "bus: %s: %s is not there: %w", verb, c.peer(), ErrTimeout)
	case errors.Is(err, nats.ErrNoResponders):
		return fault.Failf("wait until `thru serve` says that it is ready", "bus: %s: %s is starting or ending: %w", verb, c.peer(), ErrTimeout)
	}
	return fmt.Errorf("bus: %s: asking %s: %w", verb, c.peer(), err)
}
