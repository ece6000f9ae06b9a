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

// Sink is where the bytes of one file go.
type Sink interface {
	io.Writer
	Keep() error // it has come whole
	Drop()       // what came of it is removed; after Keep it does nothing
}

// Nowhere takes everything and keeps nothing.
func Nowhere() Sink { return void{} }

type void struct{}

func (void) Write(p []byte) (int, error) { return len(p), nil }
func (void) Keep() error                 { return nil }
func (void) Drop()                       {}

// How much of a download lies in memory at a time, in bytes: of each file, and of all
// clients together. It is more than the caches of a CPU hold.
const (
	memoryBytes = 64 << 20
	memoryTotal = 256 << 20
)

// Memory copies everything into memory once, the newest over the oldest. It is one of
// as many as there are clients.
func Memory(clients int) Sink {
	return &memory{kept: make([]byte, min(memoryBytes, memoryTotal/clients))}
}

type memory struct {
	void
	kept []byte
	at   int
}

// Write goes round and round.
func (m *memory) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := copy(m.kept[m.at:], rest)
		m.at, rest = (m.at+n)%len(m.kept), rest[n:]
	}
	return len(p), nil
}

// PartEnding ends the name of a file that has not come whole: of TARGET it is
// .TARGET.thru-part in the same folder. It is locked while it is written, so that
// the next transfer to TARGET knows one that a killed run has left, and removes it.
const PartEnding = ".thru-part"

// longestPart is how much of a target's name its part's has room for, in bytes: NAME_MAX
// (limits.h) is 255.
const longestPart = 255 - len(".") - len(PartEnding) - len(transfer.FetchEnding)

// PartName is the name under which a target is written until it is whole. Of one that
// is too long for that it has the begin, and its checksum.
func PartName(target string) string {
	dir, name := filepath.Split(target)
	if len(name) > longestPart {
		sum := sha256.Sum256([]byte(name))
		end := "~" + hex.EncodeToString(sum[:8])
		name = strings.ToValidUTF8(name[:longestPart-len(end)], "") + end
	}
	return filepath.Join(dir, "."+name+PartEnding)
}

// CheckTarget finds out before a transfer whether a file may be written: that
// its folder is there, and that nothing else than a file has its name, without
// overwrite nothing at all (ErrExists).
func CheckTarget(target string, overwrite bool) error {
	if info, err := os.Stat(filepath.Dir(target)); err != nil {
		return fault.Failf("--to names a file in a folder that is there", "runner: looking for the folder of %s: %w", target, err)
	} else if !info.IsDir() {
		return fault.Failf("--to names a file in a folder that is there", "runner: %s is no folder", filepath.Dir(target))
	}
	info, err := os.Lstat(target)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("runner: looking for %s: %w", target, err)
	case info.IsDir():
		return fault.Failf("--to names a file", "runner: %s is a folder", target)
	case !info.Mode().IsRegular(): // a rename would put a file in the place of a device
		return fault.Failf("name a file, of a link the one that it leads to; --to nowhere keeps nothing", "runner: %s is a device, a pipe or a link, and is not replaced", target)
	case !overwrite:
		return fault.Failf("--overwrite replaces it", "runner: %s: %w", target, transfer.ErrExists)
	}
	return nil
}

// NewFile begins a file that gets its name when it has come whole. left tells of
// a part that a run that was killed had left behind, which is gone now. A
// target that is there is replaced with overwrite, else the error is ErrExists.
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
		return nil, left, fault.Failf("--to names a file in a folder that can be written to", "runner: making %s: %w", part, err)
	}
	if _, err := stage.Lock(out); err != nil {
		out.Close()
		return nil, left, fmt.Errorf("runner: making %s: %w", part, err)
	}
	if err := os.Remove(part + transfer.FetchEnding); err == nil { // nobody else may write it now
		left = true
	}
	return &File{out: out, target: target, overwrite: overwrite}, left, nil
}

// removeLeft removes a part that nobody is writing. What is there and is no
// file is nobody's to remove.
func removeLeft(part string) error {
	info, err := os.Lstat(part)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no file of thru's")
	}
	if err != nil {
		return fmt.Errorf("runner: looking for %s: %w", part, err)
	}
	f, err := os.OpenFile(part, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("runner: opening what an earlier transfer has left: %w", err)
	}
	defer f.Close()
	if _, err := stage.Lock(f); err != nil {
		return fault.Failf("wait until it ends, or name another file", "runner: %s: %w", part, err)
	}
	if err := os.Remove(part); err != nil {
		return fmt.Errorf("runner: removing what an earlier transfer has left: %w", err)
	}
	return nil
}

// File is a Sink with a name on a disk.
type File struct {
	out       *os.File
	target    string
	overwrite bool
	replaced  bool // a program has written the part anew, under its name
	done      bool
}

// Write appends. A full disk is ErrFull.
func (f *File) Write(p []byte) (int, error) {
	n, err := f.out.Write(p)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = fmt.Errorf("runner: writing %s: %w: %w", f.target, transfer.ErrFull, err)
	}
	return n, err
}

// Keep waits until it is on the disk with its name.
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

// sync waits until what has the part's name is on the disk.
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

// name gives the file its own. A link never replaces what has come there meanwhile.
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

// Drop removes it.
func (f *File) Drop() {
	if !f.done {
		f.done = true
		os.Remove(f.out.Name()) // before it is unlocked: nobody else takes it for their own
		f.out.Close()
	}
}

// Sum is the SHA-256 of a file of this end.
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
