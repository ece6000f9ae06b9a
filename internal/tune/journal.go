package tune

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"strconv"
	"syscall"
	"unicode/utf8"

	"thru/internal/fault"
	"thru/internal/measure"
)

// Kinds of lines in a journal. Each step is on the disk before it is taken,
// so that the journal suffices to undo it after a crash at any point.
const (
	lineBegin  = "begin"  // who tunes, on which machine, boot and network namespace
	lineChange = "change" // a knob is about to be set
	lineDone   = "done"   // the value read afterwards; again where another change of ours, or a failed undo, has moved it
	lineUndo   = "undo"   // the change is about to be undone
	lineUndone = "undone" // the outcome of the undo
	lineEnd    = "end"    // the tuning has ended; changes not undone stay
)

// Limits of a journal, in bytes. Changes may use half of it, so that their
// undo always has room.
const (
	maxJournal = 32 << 20
	maxChanges = maxJournal / 2
	maxValue   = 64 << 10 // of one value
)

// perJournal is the range of change numbers of one journal.
const perJournal = 100_000

// entry is a line of a journal.
type entry struct {
	Line string `json:"line"`
	At   string `json:"at,omitempty"` // RFC 3339

	Owner     string `json:"who,omitempty"`       // these six belong to begin; the owner
	Thru      string `json:"thru,omitempty"`      // thru's version
	Machine   string `json:"machine,omitempty"`   // machine id
	Boot      string `json:"boot,omitempty"`      // boot id
	Namespace uint64 `json:"namespace,omitempty"` // network namespace id
	First     bool   `json:"first,omitempty"`     // the namespace is the host's own

	Number    int64  `json:"number,omitempty"`
	Knob      string `json:"knob,omitempty"`
	Interface string `json:"interface,omitempty"`
	Value     string `json:"value,omitempty"`
	Before    string `json:"before,omitempty"`
	Found     string `json:"found,omitempty"`
	Outcome   string `json:"outcome,omitempty"`
	Why       string `json:"why,omitempty"`

	Stays []int64 `json:"stays,omitempty"` // of end: changes that were kept
}

// A checksum (CRC-32C) of all before it follows the fields of a line.
const sumBefore, sumAfter, sumDigits = `,"sum":"`, `"}`, 8

func sumOf(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// encode returns the line with its checksum and line end.
func (e entry) encode() ([]byte, error) {
	b, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	b = b[:len(b)-1]
	return fmt.Appendf(b, "%s%0*x%s\n", sumBefore, sumDigits, sumOf(b), sumAfter), nil
}

var errDamaged = errors.New("its content differs from what was written")

// decodeLine parses a line without its line end.
func decodeLine(line []byte) (entry, error) {
	var e entry
	const tail = len(sumBefore) + sumDigits + len(sumAfter)
	at := len(line) - tail
	if at < 0 || string(line[at:at+len(sumBefore)]) != sumBefore || string(line[len(line)-len(sumAfter):]) != sumAfter {
		return e, errDamaged
	}
	digits := string(line[at+len(sumBefore) : len(line)-len(sumAfter)])
	if sum, err := strconv.ParseUint(digits, 16, 32); err != nil || uint32(sum) != sumOf(line[:at]) {
		return e, errDamaged
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return entry{}, errDamaged
	}
	return e, nil
}

// change is one change of a journal, and its state.
type change struct {
	measure.Changed
	made    bool // Found is the value read afterwards
	undoing bool // its undo had begun and the value was not read since: whatever it is now is ours
	closed  bool // nothing is left to undo
}

// target is the knob and interface of a change.
type target struct{ knob, iface string }

func (c *change) target() target { return target{c.Knob, c.Interface} }

// record is the contents of a journal.
type record struct {
	begin   entry
	changes []*change
	ended   bool
	damaged []int // numbers of unreadable lines
}

// find returns the change of a number, or nil.
func (r *record) find(number int64) *change {
	for _, c := range r.changes {
		if c.Number == number {
			return c
		}
	}
	return nil
}

// open returns the changes that are not undone, the last first.
func (r *record) open() (all []*change) {
	for _, c := range slices.Backward(r.changes) {
		if !c.closed {
			all = append(all, c)
		}
	}
	return all
}

// apply adds a line to the record; it returns an error for a line that cannot
// occur at this point.
func (r *record) apply(e entry) error {
	switch e.Line {
	case lineBegin:
		if r.begin.Line != "" || len(r.changes) > 0 {
			return errDamaged
		}
		r.begin = e
		return nil
	case lineChange:
		if r.find(e.Number) != nil || e.Knob == "" {
			return errDamaged
		}
		r.changes = append(r.changes, &change{Changed: measure.Changed{
			Number: e.Number, Before: e.Before, Setting: measure.Setting{Knob: e.Knob, Interface: e.Interface, Value: e.Value},
		}})
		return nil
	case lineEnd:
		r.ended = true
		return nil
	}
	c := r.find(e.Number)
	switch {
	case c == nil:
		return errDamaged
	case e.Line == lineDone:
		c.made, c.undoing, c.Found = true, false, e.Found
	case e.Line == lineUndo:
		c.undoing = true
	case e.Line == lineUndone:
		c.closed, c.Outcome, c.Error = true, e.Outcome, e.Why
	default:
		return errDamaged
	}
	return nil
}

// readRecord reads a journal, and returns the length of its complete lines in
// bytes. A last line without a line end was cut off by a crash: its step was
// not taken. Other unreadable lines are listed in damaged, never guessed.
func readRecord(r io.Reader) (rec record, whole int64, err error) {
	b, err := io.ReadAll(io.LimitReader(r, maxJournal+1))
	switch {
	case err != nil:
		return rec, 0, err
	case len(b) > maxJournal:
		return rec, 0, fmt.Errorf("it is longer than %d bytes", maxJournal)
	}
	n := 0
	for line := range bytes.Lines(b) {
		text, complete := bytes.CutSuffix(line, []byte("\n"))
		if !complete {
			break
		}
		n++
		whole += int64(len(line))
		e, err := decodeLine(text)
		if err == nil {
			err = rec.apply(e)
		}
		if err != nil {
			rec.damaged = append(rec.damaged, n)
		}
	}
	return rec, whole, nil
}

// step is called before each action that a crash could precede: tests crash
// there.
type step func(what string)

// journal is a file that one process at a time writes.
type journal struct {
	record
	id   int64 // its number, which is the file's name
	path string
	file *os.File
	size int64
	step step

	sealed bool // its file system is read-only
}

// createJournal creates a journal. Its first line, and its name in the
// folder, are on the disk when it returns.
func createJournal(path string, id int64, first entry, step step) (*journal, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("tune: creating a journal: %w", err)
	}
	j := &journal{id: id, path: path, file: f, step: step}
	err = j.add(first)
	if err == nil {
		err = syncDir(path)
	}
	if err != nil {
		f.Close()
		os.Remove(path)
		return nil, err
	}
	return j, nil
}

// openJournal opens a journal that another process has left, and cuts off an
// incomplete last line. On a file system that is now read-only the changes
// can still be undone, but the journal is not written.
func openJournal(path string, id int64, step step) (*journal, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	sealed := errors.Is(err, syscall.EROFS)
	if sealed {
		f, err = os.Open(path)
	}
	if err != nil {
		return nil, fmt.Errorf("tune: opening a journal: %w", err)
	}
	j := &journal{id: id, path: path, file: f, step: step, sealed: sealed}
	if err = ownedFile(f); err == nil {
		j.record, j.size, err = readRecord(f)
	}
	if err == nil && !sealed {
		err = f.Truncate(j.size)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("tune: reading the journal %s: %w", path, err)
	}
	return j, nil
}

// ownedFile refuses a journal that another user may have written, since a
// journal decides what is restored.
func ownedFile(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !ownedAlone(info) {
		return fault.Failf("check its owner: if it is yours, chown it and chmod 600; if not, remove it", "it belongs to another user or is writable by others (mode %04o): thru does not use it", info.Mode().Perm())
	}
	return nil
}

// add writes a line; it is on the disk when add returns.
func (j *journal) add(e entry) error {
	b, err := e.encode()
	if err != nil {
		return fmt.Errorf("tune: writing the journal: %w", err)
	}
	room := int64(maxJournal)
	if e.Line == lineChange {
		room = maxChanges
	}
	if j.size+int64(len(b)) > room {
		return fault.Failf("end this tuning, and begin another", "tune: the journal %s is full", j.path)
	}
	if err := j.write(b); err != nil {
		j.file.Truncate(j.size) // remove a partial line, so that the next one does not follow it
		return fault.Failf("check whether the disk is full or read-only: thru changes nothing without a journal", "tune: writing the journal %s: %w", j.path, err)
	}
	j.size += int64(len(b))
	return j.apply(e)
}

// takeBack removes the line that announces the undo of a change, since its
// outcome cannot be written, as on a full disk. Truncating needs no room.
func (j *journal) takeBack(c *change, size int64) {
	if err := j.file.Truncate(size); err == nil {
		j.size, c.undoing = size, false
	}
}

func (j *journal) write(b []byte) error {
	if j.sealed {
		return syscall.EROFS
	}
	j.step("write")
	if _, err := j.file.WriteAt(b, j.size); err != nil {
		return err
	}
	j.step("sync")
	return j.file.Sync()
}

// next returns the number of the next change.
func (j *journal) next() int64 { return j.id*perJournal + int64(len(j.changes)) + 1 }

func (j *journal) close() { j.file.Close() }

// checkValue refuses values that a journal could not return byte for byte.
func checkValue(v string) error {
	switch {
	case len(v) > maxValue:
		return fmt.Errorf("a value of %d bytes is too long", len(v))
	case !utf8.ValidString(v):
		return errors.New("a value is not text")
	}
	return nil
}
