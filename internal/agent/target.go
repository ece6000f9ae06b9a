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

// target is a file to write. Until it is complete and on the disk it has no name
// (nameless_linux.go), or a temporary one where the file system has no such files.
type target struct {
	dir       *os.Root
	name      string
	file      *os.File
	temp      string // "": no name yet
	bytes     int64
	device    uint64 // id of its file system
	overwrite bool
}

// openTarget creates a file, if there is room for it and the name is free.
func openTarget(dir *os.Root, name string, bytes int64, overwrite bool) (_ fileEnd, err error) {
	info, err := dir.Lstat(name)
	switch {
	case err == nil && (overwrite || info.IsDir()) && !info.Mode().IsRegular(): // a rename would replace a device by a file
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
	if err := t.fits(0); err != nil {
		t.drop()
		return nil, err
	}
	if info, err := t.file.Stat(); err == nil {
		t.device = deviceOf(info)
	}
	return t, nil
}

// fits returns an error where the free space is less than the file and the promised bytes need.
func (t *target) fits(promised int64) error {
	free, err := disk.Free(t.file)
	if err != nil || t.bytes <= free-promised {
		return nil // an unknown shortage shows when it is written
	}
	text := fmt.Sprintf("the file needs %s, %s are free", unit.Size(t.bytes), unit.Size(free))
	if promised > 0 {
		text += fmt.Sprintf(", %s of them reserved for running transfers", unit.Size(promised))
	}
	return fault.Because(bus.ReasonFull, fault.Failf("use a smaller file, or free space there", "%s", text))
}

func (t *target) place() (uint64, bool) { return t.device, true }

func (t *target) size() int64 { return t.bytes }

// carry reads by splice(2), where the system has it.
func (t *target) carry(c *net.TCPConn, n int64) (int64, error) { return io.CopyN(t.file, c, n) }

// drop removes the file.
func (t *target) drop() {
	t.file.Close()
	if t.temp != "" {
		t.dir.Remove(t.temp)
	}
	t.dir.Close()
}

// keep waits until the file is on the disk under its name.
func (t *target) keep(ctx context.Context) error {
	defer t.drop()
	err := t.publish(ctx)
	if err == nil {
		t.syncFolder()
	}
	return err
}

// syncFolder makes the name durable; not every system can sync a folder.
func (t *target) syncFolder() {
	if d, err := t.dir.Open("."); err == nil {
		d.Sync()
		d.Close()
	}
}

// publish names the file once its bytes are on the disk.
func (t *target) publish(ctx context.Context) error {
	if err := t.file.Sync(); err != nil {
		return err
	}
	if ctx.Err() != nil { // the client is gone, or no longer wants it
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
	if info, err := t.dir.Lstat(t.name); err == nil && !info.Mode().IsRegular() { // created meanwhile
		return isFile(info)
	}
	if err := t.dir.Rename(t.temp, t.name); err != nil {
		return asWriting(err)
	}
	t.temp = ""
	return nil
}

// link names the file without replacing one that was created meanwhile.
func (t *target) link() error {
	err := t.dir.Link(t.temp, t.name)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err // drop removes the temporary name
	}
	if _, there := t.dir.Lstat(t.name); there == nil { // a file system without links
		return fs.ErrExist
	}
	if err := t.dir.Rename(t.temp, t.name); err != nil {
		return fmt.Errorf("renaming it: %w", bare(err))
	}
	t.temp = ""
	return nil
}
