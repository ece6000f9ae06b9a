// Package bustest is a fake agent behind the control plane, for tests of
// whatever talks to one.
package bustest

import (
	"context"
	"sync"

	"thru/internal/bus"
)

// Call is one request that the fake has got.
type Call struct {
	Client  string
	Verb    string // "hello", "prepare", ...
	Message any    // bus.Hello, bus.Prepare, ...
}

// Handler answers every verb with the reply that stands in its field. Set the
// fields before it is served.
type Handler struct {
	HelloReply    bus.HelloReply
	FactsReply    bus.FactsReply
	AnswerReply   bus.AnswerReply
	ProbeReply    bus.ProbeReply
	ReserveReply  bus.ReserveReply
	PrepareReply  bus.PrepareReply
	CollectReply  bus.CollectReply
	CapturedReply bus.CapturedReply
	ClockReply    bus.ClockReply
	KnobsReply    bus.KnobsReply
	ChangedReply  bus.ChangedReply // of alter, revert and rollback
	DiskReply     bus.DiskReply
	DiskedReply   bus.DiskedReply
	ObserveReply  bus.ObserveReply
	ObservedReply bus.ObservedReply
	FileReply     bus.FileReply
	FiledReply    bus.FiledReply
	FileSizeReply bus.FileSizeReply
	GuestsReply   bus.GuestsReply
	WatchReply    bus.WatchReply
	WatchedReply  bus.WatchedReply
	// On, if set, hears each call before it is answered; it may wait, or make
	// the call fail.
	On func(ctx context.Context, c Call) error

	mu    sync.Mutex
	calls []Call
	gone  map[string]int
	news  chan struct{} // closed and renewed when a client goes
}

// New returns a handler that speaks this wire version and grants every turn.
func New() *Handler {
	return &Handler{
		HelloReply: bus.HelloReply{
			WireMajor: bus.WireMajor, WireMinor: bus.WireMinor, Thru: "test", Hostname: "fake", CPUs: 2,
			Privileges: []string{bus.PrivilegeMeasure},
		},
		ReserveReply: bus.ReserveReply{Granted: true},
		PrepareReply: bus.PrepareReply{Session: "s1"},
		gone:         map[string]int{},
		news:         make(chan struct{}),
	}
}

// Calls returns what was asked so far, in order.
func (h *Handler) Calls() []Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Call(nil), h.calls...)
}

// GoneTimes is how often Gone was called for a client.
func (h *Handler) GoneTimes(client string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gone[client]
}

// WaitGone returns when Gone was called for a client, or the context ends.
func (h *Handler) WaitGone(ctx context.Context, client string) error {
	for {
		h.mu.Lock()
		times, news := h.gone[client], h.news
		h.mu.Unlock()
		if times > 0 {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (h *Handler) note(ctx context.Context, client, verb string, m any) error {
	c := Call{client, verb, m}
	h.mu.Lock()
	h.calls = append(h.calls, c)
	h.mu.Unlock()
	if h.On == nil {
		return nil
	}
	return h.On(ctx, c)
}

// Hello implements bus.Handler.
func (h *Handler) Hello(ctx context.Context, client string, m bus.Hello) (bus.HelloReply, error) {
	return h.HelloReply, h.note(ctx, client, "hello", m)
}

// Facts implements bus.Handler.
func (h *Handler) Facts(ctx context.Context, client string, m bus.FactsRequest) (bus.FactsReply, error) {
	return h.FactsReply, h.note(ctx, client, "facts", m)
}

// Answer implements bus.Handler.
func (h *Handler) Answer(ctx context.Context, client string, m bus.Answer) (bus.AnswerReply, error) {
	return h.AnswerReply, h.note(ctx, client, "answer", m)
}

// Probe implements bus.Handler.
func (h *Handler) Probe(ctx context.Context, client string, m bus.Probe) (bus.ProbeReply, error) {
	return h.ProbeReply, h.note(ctx, client, "probe", m)
}

// Reserve implements bus.Handler.
func (h *Handler) Reserve(ctx context.Context, client string, m bus.Reserve) (bus.ReserveReply, error) {
	return h.ReserveReply, h.note(ctx, client, "reserve", m)
}

// Prepare implements bus.Handler.
func (h *Handler) Prepare(ctx context.Context, client string, m bus.Prepare) (bus.PrepareReply, error) {
	return h.PrepareReply, h.note(ctx, client, "prepare", m)
}

// Start implements bus.Handler.
func (h *Handler) Start(ctx context.Context, client string, m bus.Start) (bus.Empty, error) {
	return bus.Empty{}, h.note(ctx, client, "start", m)
}

// Collect implements bus.Handler.
func (h *Handler) Collect(ctx context.Context, client string, m bus.Collect) (bus.CollectReply, error) {
	return h.CollectReply, h.note(ctx, client, "collect", m)
}

// Captured implements bus.Handler.
func (h *Handler) Captured(ctx context.Context, client string, m bus.Captured) (bus.CapturedReply, error) {
	return h.CapturedReply, h.note(ctx, client, "captured", m)
}

// Clock implements bus.Handler.
func (h *Handler) Clock(ctx context.Context, client string, m bus.Clock) (bus.ClockReply, error) {
	return h.ClockReply, h.note(ctx, client, "clock", m)
}

// Release implements bus.Handler.
func (h *Handler) Release(ctx context.Context, client string, m bus.Release) (bus.Empty, error) {
	return bus.Empty{}, h.note(ctx, client, "release", m)
}

// Knobs implements bus.Handler.
func (h *Handler) Knobs(ctx context.Context, client string, m bus.Knobs) (bus.KnobsReply, error) {
	return h.KnobsReply, h.note(ctx, client, "knobs", m)
}

// Tune implements bus.Handler.
func (h *Handler) Tune(ctx context.Context, client string, m bus.Tune) (bus.Empty, error) {
	return bus.Empty{}, h.note(ctx, client, "tune", m)
}

// Alter implements bus.Handler.
func (h *Handler) Alter(ctx context.Context, client string, m bus.Alter) (bus.ChangedReply, error) {
	return h.ChangedReply, h.note(ctx, client, "alter", m)
}

// Revert implements bus.Handler.
func (h *Handler) Revert(ctx context.Context, client string, m bus.Revert) (bus.ChangedReply, error) {
	return h.ChangedReply, h.note(ctx, client, "revert", m)
}

// Rollback implements bus.Handler.
func (h *Handler) Rollback(ctx context.Context, client string, m bus.Rollback) (bus.ChangedReply, error) {
	return h.ChangedReply, h.note(ctx, client, "rollback", m)
}

// Tuned implements bus.Handler.
func (h *Handler) Tuned(ctx context.Context, client string, m bus.Tuned) (bus.Empty, error) {
	return bus.Empty{}, h.note(ctx, client, "tuned", m)
}

// Disk implements bus.Handler.
func (h *Handler) Disk(ctx context.Context, client string, m bus.Disk) (bus.DiskReply, error) {
	return h.DiskReply, h.note(ctx, client, "disk", m)
}

// Disked implements bus.Handler.
func (h *Handler) Disked(ctx context.Context, client string, m bus.Disked) (bus.DiskedReply, error) {
	return h.DiskedReply, h.note(ctx, client, "disked", m)
}

// Observe implements bus.Handler.
func (h *Handler) Observe(ctx context.Context, client string, m bus.Observe) (bus.ObserveReply, error) {
	return h.ObserveReply, h.note(ctx, client, "observe", m)
}

// Observed implements bus.Handler.
func (h *Handler) Observed(ctx context.Context, client string, m bus.Observed) (bus.ObservedReply, error) {
	return h.ObservedReply, h.note(ctx, client, "observed", m)
}

// File implements bus.Handler.
func (h *Handler) File(ctx context.Context, client string, m bus.File) (bus.FileReply, error) {
	return h.FileReply, h.note(ctx, client, "file", m)
}

// Filed implements bus.Handler.
func (h *Handler) Filed(ctx context.Context, client string, m bus.Filed) (bus.FiledReply, error) {
	return h.FiledReply, h.note(ctx, client, "filed", m)
}

// FileSize implements bus.Handler.
func (h *Handler) FileSize(ctx context.Context, client string, m bus.FileSize) (bus.FileSizeReply, error) {
	return h.FileSizeReply, h.note(ctx, client, "size", m)
}

// FileRemove implements bus.Handler.
func (h *Handler) FileRemove(ctx context.Context, client string, m bus.FileRemove) (bus.Empty, error) {
	return bus.Empty{}, h.note(ctx, client, "remove", m)
}

// Guests implements bus.Handler.
func (h *Handler) Guests(ctx context.Context, client string, m bus.Guests) (bus.GuestsReply, error) {
	return h.GuestsReply, h.note(ctx, client, "guests", m)
}

// Watch implements bus.Handler.
func (h *Handler) Watch(ctx context.Context, client string, m bus.Watch) (bus.WatchReply, error) {
	return h.WatchReply, h.note(ctx, client, "watch", m)
}

// Watched implements bus.Handler.
func (h *Handler) Watched(ctx context.Context, client string, m bus.Watched) (bus.WatchedReply, error) {
	return h.WatchedReply, h.note(ctx, client, "watched", m)
}

// Gone implements bus.Handler.
func (h *Handler) Gone(client string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone[client]++
	close(h.news)
	h.news = make(chan struct{})
}
