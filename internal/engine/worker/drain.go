package worker

import (
	"context"
	"errors"
	"time"

	"thru/internal/measure"
)

// drain lets data in flight arrive, in limited time, and takes the last sample.
func (w *worker) drain(ctx context.Context) error {
	f := w.flow
	if w.cmd.connectionless() {
		w.drainDatagrams(ctx)
	}
	limit := time.NewTimer(drainWait)
	defer limit.Stop()
	all := make(chan struct{})
	go func() {
		defer close(all)
		for _, s := range f.streams {
			<-s.drained
		}
	}()
	look := time.NewTicker(askEvery)
	defer look.Stop()
	for {
		select {
		case <-all:
			return w.last()
		case <-look.C:
			_ = w.stopped(drainWait) // asks the far end's kernel; the limit decides
		case <-limit.C: // a slow path still holds data; the totals will differ and show it
			return errors.Join(w.stopped(drainWait), w.last())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// connectionless reports whether the streams have no end of their own, so that the side connection signals it: datagrams and CRR traffic.
func (c openCommand) connectionless() bool {
	return c.Spec.Protocol == measure.UDP || c.Spec.Traffic == measure.CRR
}

// quiet is how long no datagram arrives before a receiver assumes that none is in flight.
const quiet = 100 * time.Millisecond

// drainDatagrams informs the peer that the last datagram has left; at the receiver it waits for that message, and then until no more datagrams arrive.
func (w *worker) drainDatagrams(ctx context.Context) {
	f := w.flow
	limit, cancel := context.WithTimeout(ctx, drainWait)
	defer cancel()
	if w.cmd.Sends {
		for _, s := range f.streams {
			select {
			case <-s.done:
			case <-limit.Done():
				return
			}
		}
		f.side.conn.CloseWrite()
		select {
		case <-f.side.gone: // the receiver has all datagrams
		case <-limit.Done():
		}
		return
	}
	select {
	case <-f.side.gone:
	case <-limit.Done():
	}
	w.awaitQuiet()
	w.endDatagrams()
	f.side.conn.CloseWrite()
}

// endDatagrams ends the streams of a receiver when no datagram is in flight; their threads publish their last counts. It waits for them, in limited time.
func (w *worker) endDatagrams() {
	limit := time.After(drainWait)
	w.flow.ending.Store(true)
	for _, s := range w.flow.streams {
		if !closed(s.done) { // else an engine may still use its socket
			w.path.io.interrupt(s)
		}
	}
	for _, s := range w.flow.streams {
		select {
		case <-s.done:
		case <-limit:
			return
		}
	}
}

// awaitQuiet waits until no datagram arrives for a while, or for a limited time.
func (w *worker) awaitQuiet() {
	for give := time.Now().Add(drainWait); time.Now().Before(give); {
		before := w.received()
		sleepThread(quiet)
		if w.received() == before {
			return
		}
	}
}

// received sums the bytes of the receiving streams; for a sender, the sent bytes.
func (w *worker) received() (n int64) {
	for _, s := range w.flow.streams {
		if !s.sends || !w.cmd.receives() {
			n += s.bytes.Load()
		}
	}
	return n
}
