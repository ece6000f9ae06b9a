package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"thru/internal/bus"
	"thru/internal/fault"
	dataplane "thru/internal/transfer/own"
)

const (
	// fileSilence is the longest pause without a byte of the file.
	fileSilence = 30 * time.Second
	// fileChunk is how much the kernel moves per call, in bytes.
	fileChunk = 4 << 20
	// fileSlice is the time that one chunk takes at a limited rate.
	fileSlice = 100 * time.Millisecond
)

// fileEnd is the file of one transfer.
type fileEnd interface {
	size() int64
	// place returns the file system that the file is written to; false for a file that is read.
	place() (device uint64, written bool)
	// fits returns an error where there is no room beside the bytes promised to other files.
	fits(promised int64) error
	// carry moves at most n bytes between the file and the connection.
	carry(c *net.TCPConn, n int64) (int64, error)
	// keep finishes a complete file; drop removes an incomplete one without a trace.
	keep(ctx context.Context) error
	drop()
}

// move waits for the connection and moves the file over it. It keeps the file if complete and removes it otherwise.
func (x *fileMove) move(ctx context.Context, end fileEnd) error {
	conn, err := x.door.Await(ctx)
	if err == nil {
		err = x.stream(ctx, conn, end)
		conn.Close()
	}
	if err != nil {
		end.drop()
		return err
	}
	return end.keep(ctx)
}

// stream moves the bytes of a file. An error due to the end of the context has the context's cause.
func (x *fileMove) stream(ctx context.Context, conn *net.TCPConn, end fileEnd) error {
	if x.longest > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, x.longest, fault.Failf("transfer a smaller file", "it takes longer than the %v that this end point allows", x.longest))
		defer cancel()
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	err := x.chunks(ctx, conn, end)
	if errors.Is(err, net.ErrClosed) && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (x *fileMove) chunks(ctx context.Context, conn *net.TCPConn, end fileEnd) error {
	begin := time.Now()
	for at, size := int64(0), x.bytes.Load(); at < size; {
		conn.SetDeadline(time.Now().Add(x.silence))
		n, err := end.carry(conn, min(size-at, x.chunk()))
		at += n
		x.moved.Store(at)
		switch {
		case n > 0 && errors.Is(err, os.ErrDeadlineExceeded): // slow, not silent
		case errors.Is(err, os.ErrDeadlineExceeded):
			return fault.Because(bus.ReasonSilent, fmt.Errorf("no data for %v", x.silence))
		case errors.Is(err, io.EOF):
			return fault.Because(bus.ReasonShort, fmt.Errorf("it ended after %d of %d bytes", at, size))
		case err != nil:
			return err
		}
		if !x.pace(ctx, begin, at) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// chunk returns how many bytes to move at once.
func (x *fileMove) chunk() int64 {
	if x.rate <= 0 {
		return fileChunk
	}
	return min(fileChunk, max(1500, int64(float64(x.rate)/8*fileSlice.Seconds())))
}

// pace waits until the rate allows so many bytes; false where the context ended.
func (x *fileMove) pace(ctx context.Context, begin time.Time, bytes int64) bool {
	if x.rate <= 0 {
		return true
	}
	due := time.Duration(float64(bytes) * 8 / float64(x.rate) * float64(time.Second))
	select {
	case <-time.After(time.Until(begin.Add(due))):
		return true
	case <-ctx.Done():
		return false
	}
}

// source is a file to send: by sendfile(2), where the system has it.
type source struct {
	file  *os.File
	bytes int64
}

// openSource opens a regular file to read. Opening anything else could block or have side effects.
func openSource(dir *os.Root, name string) (fileEnd, error) {
	info, err := dir.Stat(name)
	if err == nil {
		err = isFile(info)
	}
	if err != nil {
		return nil, err
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = isFile(info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &source{f, info.Size()}, nil
}

func (s *source) size() int64 { return s.bytes }
func (s *source) drop()       { s.file.Close() }

func (s *source) place() (uint64, bool) { return 0, false }
func (s *source) fits(int64) error      { return nil }

func (s *source) keep(context.Context) error { return s.file.Close() }

func (s *source) carry(c *net.TCPConn, n int64) (int64, error) { return io.CopyN(c, s.file, n) }

// isFile returns an error for anything but a regular file.
func isFile(info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return fault.Failf("name a regular file", "it is not a regular file (%s)", info.Mode().Type())
}

// asWriting marks a missing permission as one for writing.
func asWriting(err error) error {
	if errors.Is(err, fs.ErrPermission) && fault.ReasonOf(err) == "" {
		return fault.Because(bus.ReasonReadOnly, err)
	}
	return err
}

// fileError adds the file name, a reason and a hint to an error.
func fileError(doing, path string, err error) error {
	hint, reason := "", fault.ReasonOf(err)
	switch {
	case reason != "" || fault.Hint(err) != "":
	case errors.Is(err, fs.ErrNotExist):
		hint, reason = "give the absolute path of the file at that host", bus.ReasonMissing
	case errors.Is(err, fs.ErrExist):
		reason = bus.ReasonExists
	case errors.Is(err, syscall.EROFS):
		reason = bus.ReasonReadOnly
	case errors.Is(err, fs.ErrPermission):
		hint, reason = "give access to the user that runs thru there", bus.ReasonDenied
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		hint, reason = "use a smaller file, or free space there", bus.ReasonFull
	case isEscape(err):
		hint, reason = "use a path without this symbolic link: it leads out of the folders that this end point allows", bus.ReasonDenied
	}
	return fault.Because(reason, fault.Failf(cmp.Or(hint, fault.Hint(err)), "agent: %s: %.200s: %w", doing, path, bare(err)))
}

// fileMove is one file transfer from or to a client.
type fileMove struct {
	job
	door         *dataplane.Door
	end          fileEnd
	bytes, moved atomic.Int64
	rate         int64         // bit/s at most; 0: no limit
	longest      time.Duration // 0: no limit
	silence      time.Duration // the longest pause without a byte
	err          error         // valid once it is over
}
