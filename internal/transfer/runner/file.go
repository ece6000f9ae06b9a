package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"thru/internal/fault"
	"thru/internal/transfer"
	"thru/internal/transfer/stage"
)

// Sink receives the bytes of one file.
type Sink interface {
	io.Writer
	Keep() error // the file is complete
	Drop()       // removes an incomplete file; after Keep it does nothing
}

// Nowhere returns a sink that discards everything.
func Nowhere() Sink { return void{} }

type void struct{}

func (void) Write(p []byte) (int, error) { return len(p), nil }
func (void) Keep() error                 { return nil }
func (void) Drop()                       {}

// Memory of a download, in bytes: of each file, and of all clients together.
// It exceeds a CPU's caches.
const (
	memoryBytes = 64 << 20
	memoryTotal = 256 << 20
)

// Memory returns a sink that copies everything into memory once, the newest
// over the oldest. It is one of as many as there are clients.
func Memory(clients int) Sink {
	return &memory{kept: make([]byte, min(memoryBytes, memoryTotal/clients))}
}

type memory struct {
	void
	kept []byte
	at   int
}

// Write writes to the ring.
func (m *memory) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := copy(m.kept[m.at:], rest)
		m.at, rest = (m.at+n)%len(m.kept), rest[n:]
	}
	return len(p), nil
}

// PartEnding is the suffix of an incomplete file: for TARGET it is
// .TARGET.thru-part in the same folder. It is locked while it is written, so
// that the next transfer to TARGET recognises and removes one that a killed
// run has left.
const PartEnding = ".thru-part"

// longestPart is the room for a target's name in its part's name, in bytes:
// NAME_MAX (limits.h) is 255.
const longestPart = 255 - len(".") - len(PartEnding) - len(transfer.FetchEnding)

// PartName returns the name under which a target is written until it is
// complete. Of a target that is too long it has the beginning, and a
// checksum.
func PartName(target string) string {
	dir, name := filepath.Split(target)
	if len(name) > longestPart {
		sum := sha256.Sum256([]byte(name))
		end := "~" + hex.EncodeToString(sum[:8])
		name = strings.ToValidUTF8(name[:longestPart-len(end)], "") + end
	}
	return filepath.Join(dir, "."+name+PartEnding)
}

// CheckTarget checks before a transfer whether a file may be written: its
// folder must exist, and its name may only belong to a file, without
// overwrite to nothing (ErrExists).
func CheckTarget(target string, overwrite bool) error {
	if info, err := os.Stat(filepath.Dir(target)); err != nil {
		return fault.Failf("name a file in an existing folder with --to", "runner: looking for the folder of %s: %w", target, err)
	} else if !info.IsDir() {
		return fault.Failf("name a file in an existing folder with --to", "runner: %s is not a folder", filepath.Dir(target))
	}
	info, err := os.Lstat(target)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("runner: looking for %s: %w", target, err)
	case info.IsDir():
		return fault.Failf("name a file with --to", "runner: %s is a folder", target)
	case !info.Mode().IsRegular(): // a rename would replace a device by a file
		return fault.Failf("name a file (for a link, its target), or discard the data with --to nowhere", "runner: %s is a device, a pipe or a link, and is not replaced", target)
	case !overwrite:
		return fault.Failf("replace it with --overwrite", "runner: %s: %w", target, transfer.ErrExists)
	}
	return nil
}

// NewFile begins a file that gets its name when it is complete. left reports
// that it removed the part of a killed run. With overwrite it replaces an
// existing target; otherwise the error is ErrExists.
func NewFile(target string, overwrite bool) (f *File, left bool, err error) {
	if err := CheckTarget(target, overwrite); err != nil {
		return nil, false, err
	}
	part := PartName(target)
	_, serr := os.Lstat(part)
	left = serr == nil
	if err := removeLeft(part); err != nil {
		return nil, false, err
	}
	out, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o666)
	if err != nil {
		return nil, left, fault.Failf("name a file in a writable folder with --to", "runner: making %s: %w", part, err)
	}
	if _, err := stage.Lock(out); err != nil {
		out.Close()
		return nil, left, fmt.Errorf("runner: making %s: %w", part, err)
	}
	if err := os.Remove(part + transfer.FetchEnding); err == nil { // no other process may write it now
		left = true
	}
	return &File{out: out, target: target, overwrite: overwrite}, left, nil
}

// removeLeft removes a part that no process is writing. It does not remove
// anything but files.
func removeLeft(part string) error {
	info, err := os.Lstat(part)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a file of thru")
	}
	if err != nil {
		return fmt.Errorf("runner: looking for %s: %w", part, err)
	}
	f, err := os.OpenFile(part, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("runner: opening the file of an aborted transfer: %w", err)
	}
	defer f.Close()
	if _, err := stage.Lock(f); err != nil {
		return fault.Failf("wait until it ends, or name another file", "runner: %s: %w", part, err)
	}
	if err := os.Remove(part); err != nil {
		return fmt.Errorf("runner: removing the file of an aborted transfer: %w", err)
	}
	return nil
}

// File is a Sink for a file on a disk.
type File struct {
	out       *os.File
	target    string
	overwrite bool
	replaced  bool // a program has written the part anew, under its name
	done      bool
}

// Write appends. On a full disk the error is ErrFull.
func (f *File) Write(p []byte) (int, error) {
	n, err := f.out.Write(p)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = fmt.Errorf("runner: writing %s: %w: %w", f.target, transfer.ErrFull, err)
	}
	return n, err
}

// Keep waits until the file is on the disk with its name.
func (f *File) Keep() error {
	err := f.sync()
	if err == nil {
		err = f.name()
	}
	if err == nil {
		f.syncFolder()
	}
	if err != nil {
		f.Drop()
		return fmt.Errorf("runner: keeping %s: %w", f.target, err)
	}
	f.done = true
	return f.out.Close()
}

// sync waits until the file of the part's name is on the disk.
func (f *File) sync() error {
	if !f.replaced {
		return f.out.Sync()
	}
	now, err := os.OpenFile(f.out.Name(), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(now.Sync(), now.Close())
}

// syncFolder makes the name durable; not every system can sync a folder.
func (f *File) syncFolder() {
	if d, err := os.Open(filepath.Dir(f.target)); err == nil {
		d.Sync()
		d.Close()
	}
}

// name renames the file. A link never replaces a file that was created
// meanwhile.
func (f *File) name() error {
	if f.overwrite {
		if err := CheckTarget(f.target, true); err != nil {
			return err
		}
		return os.Rename(f.out.Name(), f.target)
	}
	err := os.Link(f.out.Name(), f.target)
	switch {
	case errors.Is(err, os.ErrExist):
		return transfer.ErrExists
	case err != nil: // a file system without links
		if _, serr := os.Lstat(f.target); serr == nil {
			return transfer.ErrExists
		}
		return os.Rename(f.out.Name(), f.target)
	}
	return os.Remove(f.out.Name())
}

// Drop removes the file.
func (f *File) Drop() {
	if !f.done {
		f.done = true
		os.Remove(f.out.Name()) // before it is unlocked: no other process takes it for its own
		f.out.Close()
	}
}

// Sum returns the SHA-256 of a local file.
func Sum(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("runner: summing %s: %w", name, err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("runner: summing %s: %w", name, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
