package native

import (
	"context"
	"errors"
	"time"

	"thru/internal/measure"
)

// drain lets what is under way arrive, in bounded time, and takes the last sample.
func (w *worker) drain(ctx context.Context) error {
	f := w.flow
	limit := time.NewTimer(drainWait)
	defer limit.Stop()
	if w.cmd.connectionless() {
		w.drainDatagrams(limit.C)
	}
	all := make(chan struct{})
	go func() {
		defer close(all)
		for _, s := range f.streams {
			<-s.drained
		}
	}()
	select {
	case <-all:
	case <-limit.C: // a slow path still holds data; the totals will differ and say so
		if err := w.stalled(drainWait); err != nil {
			return errors.Join(err, w.last())
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return w.last()
}

// connectionless tells whether the streams have no end of their own, so that
// the connection beside them says it: datagrams, and connections that come and go.
func (c openCommand) connectionless() bool {
	return c.Spec.Protocol == measure.UDP || c.Spec.Traffic == measure.CRR
}

// quiet is how long no datagram comes before a receiver takes it that none is under way.
const quiet = 100 * time.Millisecond

// drainDatagrams tells the peer that the last datagram has left, or waits to be
// told and then until no more come.
func (w *worker) drainDatagrams(limit <-chan time.Time) {
	f := w.flow
	if w.cmd.Sends {
		for _, s := range f.streams {
			<-s.done
		}
		f.side.conn.CloseWrite()
		select {
		case <-f.side.gone: // the receiver has all
		case <-limit:
		}
		return
	}
	select {
	case <-f.side.gone:
	case <-limit:
	}
	w.awaitQuiet()
	f.ending.Store(true)
	for _, s := range f.streams {
		w.path.io.interrupt(s)
	}
	for _, s := range f.streams {
		<-s.done
	}
	f.side.conn.CloseWrite()
}

// awaitQuiet waits until no datagram has come for a while.
func (w *worker) awaitQuiet() {
	for {
		before := w.received()
		sleepThread(quiet)
		if w.received() == before {
			return
		}
	}
}

// received sums the bytes of all streams.
func (w *worker) received() (n int64) {
	for _, s := range w.flow.streams {
		n += s.bytes.Load()
	}
	return n
}
