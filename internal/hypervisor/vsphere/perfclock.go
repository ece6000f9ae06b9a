package vsphere

import (
	"context"
	"time"

	"github.com/vmware/govmomi/vim25/types"
)

// stamper is who stamps samples with its clock: a host, or the source itself.
type stamper struct {
	name         string
	system       *types.ManagedObjectReference // that knows the clock of a host
	off          string
	begun, ended clock         // when the watch began and when it ended
	known        bool          // both are there
	why          string        // or why not
	sampled      bool          // a sample was read since its clock was
	fresh        time.Duration // of those the freshest: its time less ours when it was read
}

// take notes a reading of the clock.
func (h *stamper) take(c clock, err error, why string) {
	switch {
	case err != nil && !h.known:
		h.why = why
	case err == nil && !h.known:
		h.begun, h.ended, h.known, h.sampled = c, c, true, false
	case err == nil:
		h.ended, h.sampled = c, false
	}
}

// age is how old, by a clock, the freshest sample was when it was read.
func (h *stamper) age(by clock) time.Duration { return by.ahead - h.fresh }

// fits reports whether a sample may have such an age when it is read: not below
// zero, and not much more than the time that the next one needs.
func (p *perf) fits(age, bound time.Duration) bool {
	bound += clockNoted
	return age >= -bound && age <= 2*p.longest()+bound
}

// ownClock reports whether samples were stamped by the host's own clock. They were
// not where by it they would have been taken after they were read; nor where by it
// they are too old, and not by the source's.
func (p *perf) ownClock(h *stamper) bool {
	own := h.age(h.ended)
	switch {
	case !h.sampled || p.fits(own, h.ended.bound):
		return true
	case own < 0:
		return false
	}
	return !p.source.known || !p.fits(h.age(p.source.ended), p.source.ended.bound)
}

// readClocks reads the clock of the source and of all hosts that stamp samples.
func (p *perf) readClocks(ctx context.Context) {
	at, err := p.c.sourceClock(ctx, p.now)
	p.source.name = p.c.Name()
	p.source.take(at, err, p.why(err))
	for _, h := range p.hosts {
		switch {
		case h.off != "":
		case !p.c.vim.IsVC(): // the host is who is asked
			h.take(at, err, p.why(err))
		case h.system == nil:
			h.why = "it does not tell who keeps it (configManager.dateTimeSystem)"
		default:
			at, err := p.c.hostClock(ctx, *h.system, p.now)
			h.take(at, err, p.why(err))
		}
	}
}

// ahead is by how much what stamped the samples of a host is ahead of our
// clock: its own clock; where that is not known, the source's, or so much
// that no sample was taken after it was read.
func (p *perf) ahead(host string) time.Duration {
	h := p.hosts[host]
	switch {
	case h == nil:
	case h.known && p.ownClock(h):
		return h.ended.ahead
	case h.sampled:
		return max(p.source.ended.ahead, h.fresh)
	}
	return p.source.ended.ahead
}

// reached notes up to when an entity was read.
func (p *perf) reached(e *entity, newest time.Time) {
	now := p.now()
	if h := p.hosts[e.on]; h != nil {
		if fresh := newest.Sub(now); !h.sampled || fresh > h.fresh {
			h.sampled, h.fresh = true, fresh
		}
	}
	e.upTo, e.read = newest.Add(-p.ahead(e.on)), true
	if e.upTo.After(now) { // by a clock that is not exact
		e.upTo = now
	}
}
