package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"

	"thru/internal/bus"
	"thru/internal/disk"
	"thru/internal/fault"
	"thru/internal/transfer"
	"thru/internal/unit"
)

// target is a file that is written. Until it is whole and on the disk it has no
// name (nameless_linux.go), or where the file system has no such files a
// temporary one.
type target struct {
	dir       *os.Root
	name      string
	file      *os.File
	temp      string // "": it has no name yet
	bytes     int64
	overwrite bool
}

// openTarget begins a file, where there is room for it and nothing of its name.
func openTarget(dir *os.Root, name string, bytes int64, overwrite bool) (_ fileEnd, err error) {
	info, err := dir.Lstat(name)
	switch {
	case err == nil && info.IsDir():
		return nil, isFile(info)
	case err == nil && !overwrite:
		return nil, fs.ErrExist
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	t := &target{name: name, bytes: bytes, overwrite: overwrite}
	if t.dir, err = dir.OpenRoot("."); err != nil {
		return nil, err
	}
	if t.file, err = nameless(t.dir); errors.Is(err, errors.ErrUnsupported) {
		t.temp = transfer.TempName(name)
		t.file, err = t.dir.OpenFile(t.temp, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o666)
	}
	if err != nil {
		t.dir.Close()
		return nil, asWriting(err)
	}
	if free, err := disk.Free(t.file); err == nil && bytes > free {
		t.drop()
		return nil, bus.Because(bus.ReasonFull, fault.Failf("a smaller file, or more room there", "%s are to come, %s are free", unit.Size(bytes), unit.Size(free)))
	}
	return t, nil
}

func (t *target) size() int64 { return t.bytes }

// carry reads by splice(2), where the system has it.
func (t *target) carry(c *net.TCPConn, n int64) (int64, error) { return io.CopyN(t.file, c, n) }

// drop leaves nothing.
func (t *target) drop() {
	t.file.Close()
	if t.temp != "" {
		t.dir.Remove(t.temp)
	}
	t.dir.Close()
}

// keep waits until the file is on the disk, and gives it its name.
func (t *target) keep(ctx context.Context) error {
	defer t.drop()
	if err := t.file.Sync(); err != nil {
		return err
	}
	if ctx.Err() != nil { // the client is gone, or does not want it any more
		return context.Cause(ctx)
	}
	if t.temp == "" && !t.overwrite {
		return linkNameless(t.file, t.dir, t.name)
	}
	if t.temp == "" {
		temp := transfer.TempName(t.name)
		if err := linkNameless(t.file, t.dir, temp); err != nil {
			return err
		}
		t.temp = temp
	}
	if !t.overwrite {
		return t.link()
	}
	if err := t.dir.Rename(t.temp, t.name); err != nil {
		return asWriting(err)
	}
	t.temp = ""
	return nil
}

// link gives the name without replacing what has come there meanwhile.
func (t *target) link() error {
	err := t.dir.Link(t.temp, t.name)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err // drop removes the other name
	}
	if _, there := t.dir.Lstat(t.name); there == nil { // a file system without links
		return fs.ErrExist
	}
	if err := t.dir.Rename(t.temp, t.name); err != nil {
		return fmt.Errorf("naming it: %w", bare(err))
	}
	t.temp = ""
	return nil
}
