package vsphere

import (
	"context"
	"time"

	"github.com/vmware/govmomi/vim25/types"
)

// stamper is a host, or the source itself, whose clock stamps samples.
type stamper struct {
	name         string
	system       *types.ManagedObjectReference // has the clock of a host
	off          string
	begun, ended clock         // at the begin and at the end of the watch
	known        bool          // both are known
	why          string        // or the reason why not
	sampled      bool          // a sample was read since its clock was
	fresh        time.Duration // of the freshest sample: its time minus ours when it was read
}

// take stores a reading of the clock.
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

// age returns how old, by a clock, the freshest sample was when it was read.
func (h *stamper) age(by clock) time.Duration { return by.ahead - h.fresh }

// fits reports whether a sample can have such an age when it is read: not
// negative, and not much more than the sampling interval.
func (p *perf) fits(age, bound time.Duration) bool {
	bound += clockNoted
	return age >= -bound && age <= 2*p.longest()+bound
}

// ownClock reports whether the host's own clock stamped the samples. It did
// not where by it they were taken after they were read; nor where by it they
// are too old, and by the source's clock not.
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
		case !p.c.vim.IsVC(): // the source is the host
			h.take(at, err, p.why(err))
		case h.system == nil:
			h.why = "the server does not report the host's time system (configManager.dateTimeSystem)"
		default:
			at, err := p.c.hostClock(ctx, *h.system, p.now)
			h.take(at, err, p.why(err))
		}
	}
}

// ahead returns by how much the clock that stamped the samples of a host is
// ahead of ours: the host's own clock; where that is not known, the source's,
// or so much that no sample was taken after it was read.
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

// reached records up to when an entity was read.
func (p *perf) reached(e *entity, newest time.Time) {
	now := p.now()
	if h := p.hosts[e.on]; h != nil {
		if fresh := newest.Sub(now); !h.sampled || fresh > h.fresh {
			h.sampled, h.fresh = true, fresh
		}
	}
	e.upTo, e.read = newest.Add(-p.ahead(e.on)), true
	if e.upTo.After(now) { // the clock offset is not exact
		e.upTo = now
	}
}
