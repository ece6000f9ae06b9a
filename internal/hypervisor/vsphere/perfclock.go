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
	begun, ended clock     // when the watch began and when it ended
	known        bool      // both are there
	why          string    // or why not
	newest, seen time.Time // the newest sample by its clock, and when that was read by ours
}

// take notes a reading of the clock.
func (h *stamper) take(c clock, err error, why string) {
	switch {
	case err != nil && !h.known:
		h.why = why
	case err == nil && !h.known:
		h.begun, h.ended, h.known = c, c, true
	case err == nil:
		h.ended = c
	}
}

// early tells that by this clock a sample was taken after it was read: then it
// is not the clock that the sample was stamped by.
func (h *stamper) early() bool {
	return h.known && h.newest.Add(-h.ended.ahead).Sub(h.seen) > clockNoted+h.ended.bound
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
// clock: its own clock; where that is not known, the source's.
func (p *perf) ahead(host string) time.Duration {
	if h := p.hosts[host]; h != nil && h.known && !h.early() {
		return h.ended.ahead
	}
	return p.source.ended.ahead
}

// reached notes up to when an entity was read.
func (p *perf) reached(e *entity, newest time.Time) {
	if h := p.hosts[e.on]; h != nil && newest.After(h.newest) {
		h.newest, h.seen = newest, p.now()
	}
	e.upTo, e.read = newest.Add(-p.ahead(e.on)), true
}
