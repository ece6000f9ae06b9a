package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"thru/internal/transfer"
	"thru/internal/transfer/stage"
)

// A program moves files of this machine, not bytes of this process. So
// generated data is written to a file before its clock begins, and its time
// starts with the call of the program.

// outside returns the session of a program; false where bytes pass through
// this process, or have to.
func (r *run) outside(s transfer.Session) (transfer.Outside, bool) {
	o, ok := s.(transfer.Outside)
	return o, ok && !r.job.Through
}

// stage gives a client's first file a name on this machine, which all its
// files share. It returns the name, and a function that removes it.
func (r *run) stage(client int) (name string, remove func(), err error) {
	from, err := r.job.Source(client, 0)
	if err != nil {
		return "", nil, err
	}
	defer from.Close()
	if f, ok := from.(*os.File); ok {
		return f.Name(), func() {}, nil
	}
	folder, err := stage.New(r.job.Bytes)
	if err != nil {
		return "", nil, fmt.Errorf("runner: making a file to send: %w", err)
	}
	remove = func() { folder.Close() }
	name = folder.File("file")
	out, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = io.Copy(out, from)
		err = errors.Join(err, out.Close())
	}
	if err != nil {
		remove()
		return "", nil, fmt.Errorf("runner: making a file to send: %w", err)
	}
	return name, remove, nil
}

// progress returns a function that counts what a program reports of one file.
// The clock begins when the program is started.
func (r *run) progress() (hear func(int64), heard *int64) {
	heard = new(int64)
	return func(bytes int64) {
		r.start()
		r.moved.Add(bytes - *heard)
		*heard = bytes
	}, heard
}

// fetch downloads by a program: to the part of a file, or to nowhere.
func (r *run) fetch(ctx context.Context, s transfer.Outside, sink Sink, name string) error {
	local := ""
	f, isFile := sink.(*File)
	if isFile {
		local = f.out.Name()
		f.replaced = true
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	hear, heard := r.progress()
	n, err := s.Fetch(ctx, name, local, func(bytes int64) {
		if hear(bytes); bytes > r.job.Bytes {
			cancel(transfer.ErrLong)
		}
	})
	switch {
	case err == nil && n < r.job.Bytes:
		err = fmt.Errorf("runner: %d of %d bytes arrived: %w", n, r.job.Bytes, transfer.ErrShort)
	case err == nil && n > r.job.Bytes:
		err = fmt.Errorf("runner: %d bytes arrived of %d: %w", n, r.job.Bytes, transfer.ErrLong)
	}
	if err != nil {
		return err
	}
	r.moved.Add(n - *heard)
	return r.keep(sink)
}

// send uploads by a program.
func (r *run) send(ctx context.Context, s transfer.Outside, local, name string) error {
	hear, heard := r.progress()
	if err := s.Send(ctx, local, name, r.job.Overwrite, hear); err != nil {
		return err
	}
	r.moved.Add(r.job.Bytes - *heard)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcome.Made = append(r.outcome.Made, name)
	return nil
}
