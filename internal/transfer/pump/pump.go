// Package pump moves the blocks of one file with several requests in flight,
// for protocols with a request for each block: with one request at a time a
// path carries one block per round trip, whatever its rate.
package pump

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"thru/internal/transfer"
)

// At reads or writes one block at an offset, and returns the number of bytes
// done, which may be fewer than p has. It ends soon after ctx.
type At func(ctx context.Context, p []byte, off int64) (int, error)

// Shape is how a file is split.
type Shape struct {
	Block int // bytes of a request
	Depth int // requests in flight
}

// Most returns how many bytes of a large file are in flight at once.
func (s Shape) Most() int64 { return int64(s.Block) * int64(s.Depth) }

// pump is one transfer: its buffers circulate, and an error ends all.
type pump struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	free   chan []byte // as many as may be in flight
	work   sync.WaitGroup
}

// of returns the shape for a file of size bytes: a small file needs one small
// buffer.
func (s Shape) of(size int64) Shape {
	s.Block = int(max(1, min(int64(s.Block), size)))
	s.Depth = int(max(1, min(int64(s.Depth), (size+int64(s.Block)-1)/int64(s.Block))))
	return s
}

func start(ctx context.Context, s Shape) *pump {
	p := &pump{free: make(chan []byte, s.Depth)}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	for range s.Depth {
		p.free <- make([]byte, s.Block)
	}
	return p
}

// end waits for what is in flight and returns the first error.
func (p *pump) end() error {
	p.work.Wait()
	err := context.Cause(p.ctx)
	p.cancel(nil)
	return err
}

// buffer returns the next free buffer; nil when the transfer has ended.
func (p *pump) buffer() []byte {
	if p.ctx.Err() != nil {
		return nil
	}
	select {
	case b := <-p.free:
		return b
	case <-p.ctx.Done():
		return nil
	}
}

// whole repeats at until all of b is done.
func (p *pump) whole(at At, b []byte, off int64) error {
	for done := 0; done < len(b); {
		n, err := at(p.ctx, b[done:], off+int64(done))
		switch {
		case err != nil:
			return err
		case n <= 0 || n > len(b)-done:
			return fmt.Errorf("%w: %d of %d at %d", transfer.ErrShort, n, len(b)-done, off+int64(done))
		}
		done += n
	}
	return nil
}

// block is a block in flight.
type block struct {
	b    []byte
	done chan struct{}
}

// Read writes size bytes to w, in order, and returns how many were written.
func Read(ctx context.Context, w io.Writer, size int64, s Shape, at At) (int64, error) {
	s = s.of(size)
	p := start(ctx, s)
	inOrder := make(chan block, s.Depth)
	p.work.Go(func() {
		defer close(inOrder)
		for off := int64(0); off < size; off += int64(s.Block) {
			b := p.buffer()
			if b == nil {
				return
			}
			n := block{b[:min(int64(s.Block), size-off)], make(chan struct{})}
			inOrder <- n // never waits: it has room for every buffer
			p.work.Go(func() {
				defer close(n.done)
				if err := p.whole(at, n.b, off); err != nil {
					p.cancel(err)
				}
			})
		}
	})
	written := p.deliver(w, inOrder)
	return written, p.end()
}

// deliver writes the blocks in order of the requests. After an error it
// writes none.
func (p *pump) deliver(w io.Writer, inOrder <-chan block) (written int64) {
	for n := range inOrder {
		<-n.done
		if p.ctx.Err() != nil {
			continue
		}
		m, err := w.Write(n.b) // in order: one at a time
		written += int64(m)
		if err != nil {
			p.cancel(err)
		}
		p.free <- n.b[:cap(n.b)]
	}
	return written
}

// Write writes size bytes of r. It fails with ErrSource where r has fewer.
func Write(ctx context.Context, r io.Reader, size int64, s Shape, at At) error {
	s = s.of(size)
	p := start(ctx, s)
	source := transfer.Source(p.ctx, r, size)
	for off := int64(0); off < size; off += int64(s.Block) {
		b := p.buffer()
		if b == nil {
			break
		}
		b = b[:min(int64(s.Block), size-off)]
		if _, err := io.ReadFull(source, b); err != nil {
			p.cancel(err)
			break
		}
		p.work.Go(func() {
			if err := p.whole(at, b, off); err != nil {
				p.cancel(err)
			}
			p.free <- b[:cap(b)]
		})
	}
	return p.end()
}

// Bytes in flight, whatever the block. The most fills 1 Gb/s over 128 ms. The
// least is enough for a server on the same network: with more, the data leaves
// the CPU's caches before it is used, and the requests wait for each other at
// the server.
const (
	mostBytes  = 16 << 20
	leastBytes = 4 << 20
	fastest    = 5e9 // bytes in a second that requests should carry
)

// Fit returns the shape with blocks of so many bytes, and as many in flight
// as a fast path with a round trip carries; 0: it is not known.
func Fit(block int, rtt time.Duration) Shape {
	bytes := mostBytes
	if rtt > 0 {
		bytes = int(min(max(fastest*rtt.Seconds(), leastBytes), mostBytes))
	}
	return Shape{Block: block, Depth: min(max(bytes/block, 4), 64)}
}
