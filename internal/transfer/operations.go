package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
)

// Operations are the operations of one protocol's session on a file.
type Operations struct {
	Protocol string
	Check    func(path string) error // checks a name; nil: CheckName
	Size     func(ctx context.Context, path string) (int64, error)
	Get      func(ctx context.Context, path string, w io.Writer) (int64, error)
	Put      func(ctx context.Context, path string, r io.Reader, size int64, overwrite bool) error
	Remove   func(ctx context.Context, path string) error
}

// Operating has a Session's methods on files. Each refuses ambiguous names,
// ends with its context and where nothing moves, and names the operation and
// the file in its error.
type Operating struct {
	*Wires // nil: the session of a program
	Do     Operations
}

// Operate runs one of the operations, or another one of the protocol.
func (o *Operating) Operate(ctx context.Context, doing, path string, act func(context.Context) error) error {
	check := o.Do.Check
	if check == nil {
		check = CheckName
	}
	if err := check(path); err != nil {
		return err
	}
	explain := func(err error) error { return err }
	if o.Wires != nil {
		ctx, explain = o.Guard(ctx)
	}
	err := context.Cause(ctx)
	if err == nil {
		err = act(ctx)
	}
	if err = explain(err); err != nil {
		return fmt.Errorf("%s: %s %.200q: %w", o.Do.Protocol, doing, path, err)
	}
	return nil
}

// Size returns the size of a file.
func (o *Operating) Size(ctx context.Context, path string) (size int64, err error) {
	err = o.Operate(ctx, "size of", path, func(ctx context.Context) error {
		size, err = o.Do.Size(ctx, path)
		return err
	})
	return size, err
}

// Get writes a file's bytes to w.
func (o *Operating) Get(ctx context.Context, path string, w io.Writer) (n int64, err error) {
	err = o.Operate(ctx, "getting", path, func(ctx context.Context) error {
		n, err = o.Do.Get(ctx, path, w)
		return err
	})
	return n, err
}

// Put creates a file from size bytes of r.
func (o *Operating) Put(ctx context.Context, path string, r io.Reader, size int64, overwrite bool) error {
	return o.Operate(ctx, "putting", path, func(ctx context.Context) error { return o.Do.Put(ctx, path, r, size, overwrite) })
}

// Remove removes a file.
func (o *Operating) Remove(ctx context.Context, path string) error {
	return o.Operate(ctx, "removing", path, func(ctx context.Context) error { return o.Do.Remove(ctx, path) })
}

// Noting is a writer that counts, and remembers whether it failed: libraries
// wrap the errors of both ends in the same form.
type Noting struct {
	W   io.Writer
	N   int64 // bytes accepted
	Err error // of the last Write
}

// Write passes on.
func (n *Noting) Write(b []byte) (int, error) {
	k, err := n.W.Write(b)
	n.N, n.Err = n.N+int64(k), err
	return k, err
}

// Ended returns why a file of size bytes, negative where the server has not
// reported it, is not complete at the writer; nil where it is. err is the end
// of the copy.
func (n *Noting) Ended(ctx context.Context, size int64, err error) error {
	switch {
	case n.Err != nil:
		return n.Err
	case ctx.Err() != nil:
		return cmp.Or(err, context.Cause(ctx))
	case n.N < size:
		return fmt.Errorf("%w: %d of %d (%w)", ErrShort, n.N, size, cmp.Or(err, io.ErrUnexpectedEOF))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: after %d bytes (%w)", ErrShort, n.N, err)
	}
	return err
}
