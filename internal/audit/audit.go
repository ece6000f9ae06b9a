// Package audit keeps the log of who did what: append-only files of JSON lines, each with the hash of the line before
// (SHA-256, FIPS 180-4), so that a changed, removed or moved line breaks the chain. A signed file has the number and the
// hash of the newest line, so that missing lines at the end are found. Who can write the folder and read the key of the
// signature can forge all of it, except for a head that was noted elsewhere; docs/access.md says what is proved.
package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"thru/internal/access"
	"thru/internal/bus"
	"thru/internal/fault"
)

// Names and bounds of the files.
const (
	headFile    = "head.json"
	fileBytes   = 16 << 20 // of a file, after which a new one begins
	lineBytes   = 64 << 10
	mostHosts   = 256             // in one line
	mostText    = 1024            // bytes of a text: with all escapes, a line stays below lineBytes
	headEvery   = time.Second     // between two heads: a crash leaves the lines of that time without one
	mostWaiting = 4096            // entries that wait to be written; more wait in their callers
	shutTime    = 5 * time.Second // for the last head
)

// Outcomes of an action.
const (
	Allowed = "allowed"
	Denied  = "denied"
)

// Entry is one line of the log.
type Entry struct {
	Seq     int64     `json:"seq"` // from 1, without gaps, over all files
	At      time.Time `json:"at"`
	Who     string    `json:"who"`
	Role    string    `json:"role,omitempty"`
	Labels  string    `json:"labels,omitempty"` // to which the user is limited
	How     string    `json:"how"`              // the user has logged in
	From    string    `json:"from,omitempty"`   // address
	Verb    string    `json:"verb"`
	Hosts   []string  `json:"hosts,omitempty"`
	Outcome string    `json:"outcome"`
	Why     string    `json:"why,omitempty"`
	Torn    string    `json:"torn_sha256,omitempty"` // hash of an incomplete line that a crash has left before this one
	Prev    string    `json:"prev_sha256"`           // hash of the entry before; of the first: 64 zeros
}

// head is the newest entry, signed.
type head struct {
	Seq       int64     `json:"seq"`
	SHA256    string    `json:"sha256"`
	At        time.Time `json:"at"`
	Key       string    `json:"key"`
	Signature string    `json:"signature"`
}

// text returns what is signed.
func (h head) text() []byte {
	return fmt.Appendf(nil, "thru audit head 1\n%d %s %d\n", h.Seq, h.SHA256, h.At.UnixNano())
}

// Log is a log that is open for writing, by one process at a time.
type Log struct {
	dir    string
	signer *bus.Signer
	now    func() time.Time
	most   int64 // bytes of a file

	queue chan waiting
	done  chan struct{}
	once  sync.Once
	mu    sync.RWMutex // queue is closed under it
	ended bool

	file   *os.File // nil: after an error, until it is opened again
	size   int64
	last   chain
	headed head // as written
}

// waiting is an entry that is to be written.
type waiting struct {
	entry Entry
	wrote chan error
}

// Open opens the log in a folder, and makes what is missing. It reads the newest file, and refuses one that does not
// reach to the signed head: a new head would hide that. The key of the head must be the signer's, or was its before.
func Open(dir string, signer *bus.Signer, before ...string) (*Log, error) {
	l := &Log{dir: dir, signer: signer, now: time.Now, most: fileBytes, queue: make(chan waiting, mostWaiting), done: make(chan struct{})}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("audit: making the folder: %w", err)
	}
	names, err := files(dir)
	if err != nil {
		return nil, fmt.Errorf("audit: opening the log: %w", err)
	}
	h, err := readHead(dir, append(before, signer.Key))
	switch isNew := errors.Is(err, fs.ErrNotExist) && len(names) == 0; {
	case isNew:
		l.last.hash = noHash
		if err := l.anchor(); err != nil {
			return nil, fault.Failf("make room there, or name another folder with --state", "audit: making the log: %w", err)
		}
	case err != nil:
		return nil, broken(err)
	default:
		l.headed = h
	}
	if err := l.reopen(); err != nil {
		return nil, err
	}
	if l.headed.Key != signer.Key {
		l.headed = head{}
	}
	go l.run()
	return l, nil
}

// broken is the error of a log that must not go on.
func broken(err error) error {
	return fault.Failf("find out what happened: thru audit --verify; then move the folder of the log away, and a new one begins", "audit: the log was changed: %w", err)
}

// Append writes an event. It returns when the line is on the disk; the action must wait for that.
func (l *Log) Append(e access.Event) error {
	x := waiting{l.entry(e), make(chan error, 1)}
	l.mu.RLock()
	if l.ended {
		l.mu.RUnlock()
		return errors.New("audit: the log is closed")
	}
	l.queue <- x
	l.mu.RUnlock()
	return <-x.wrote
}

// entry returns the line of an event.
func (l *Log) entry(e access.Event) Entry {
	x := Entry{
		At: l.now().UTC(), Who: e.Who.Name, Role: string(e.Who.Role), Labels: e.Who.Labels.String(), How: string(e.Who.Via), From: e.From,
		Verb: e.Verb, Hosts: e.Hosts[:min(len(e.Hosts), mostHosts)], Outcome: Allowed, Why: e.Why,
	}
	if !e.Allowed {
		x.Outcome = Denied
	}
	for _, text := range []*string{&x.Who, &x.Labels, &x.Why, &x.Verb} {
		*text = (*text)[:min(len(*text), mostText)]
	}
	return x
}

// Close writes the head, and ends the log.
func (l *Log) Close() error {
	l.once.Do(func() {
		l.mu.Lock()
		l.ended = true
		close(l.queue)
		l.mu.Unlock()
	})
	select {
	case <-l.done:
		return nil
	case <-time.After(shutTime):
		return errors.New("audit: the disk does not answer")
	}
}

// run writes what waits, all at once: one fsync for many entries.
func (l *Log) run() {
	defer close(l.done)
	tick := time.NewTicker(headEvery)
	defer tick.Stop()
	for {
		select {
		case x, open := <-l.queue:
			if !open {
				_ = l.anchor()
				if l.file != nil {
					l.file.Close()
				}
				return
			}
			l.commit(l.gather(x))
		case <-tick.C:
			_ = l.anchor() // a full disk leaves the earlier head: Verify says how many entries have none
		}
	}
}

// gather returns an entry and those that wait behind it.
func (l *Log) gather(x waiting) []waiting {
	all := []waiting{x}
	for len(all) < mostWaiting {
		select {
		case x, open := <-l.queue:
			if !open {
				return all
			}
			all = append(all, x)
		default:
			return all
		}
	}
	return all
}

// commit writes entries, and reports to their callers.
func (l *Log) commit(all []waiting) {
	err := l.write(all)
	if err != nil {
		err = fault.Failf("check the disk of the controller's state folder; until then nothing is allowed that must be logged", "audit: writing the log: %w", err)
	}
	for _, x := range all {
		x.wrote <- err
	}
}

// write appends entries to the chain. After an error the file is opened again: the chain goes on after what is there.
func (l *Log) write(all []waiting) (err error) {
	if l.file == nil {
		if err := l.reopen(); err != nil {
			return err
		}
	}
	defer func() {
		if err != nil {
			l.file.Close()
			l.file = nil
		}
	}()
	next, text := l.last, bytes.Buffer{}
	for _, x := range all {
		line, err := next.extend(x.entry)
		if err != nil {
			return err
		}
		text.Write(line)
	}
	if l.size > 0 && l.size+int64(text.Len()) > l.most {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	n, err := l.file.Write(text.Bytes())
	if l.size += int64(n); err != nil {
		return err
	}
	if err := l.file.Sync(); err != nil {
		return err
	}
	l.last = next
	return nil
}

// extend returns the line of an entry that follows the chain, and takes it into the chain.
func (c *chain) extend(e Entry) ([]byte, error) {
	e.Seq, e.Prev, e.Torn = c.seq+1, c.hash, ""
	if len(c.torn) > 0 {
		e.Torn = hashOf(c.torn)
	}
	line, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	c.seq, c.hash, c.torn = e.Seq, hashOf(line), nil
	return append(line, '\n'), nil
}

// rotate begins a new file, whose first line continues the chain.
func (l *Log) rotate() error {
	f, err := os.OpenFile(filepath.Join(l.dir, fileOf(l.last.seq+1)), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	l.file.Close()
	l.file, l.size = f, 0
	return syncDir(l.dir)
}

// reopen opens the newest file, and reads where its chain ends. An incomplete line at its end stays, and the next
// entry has its hash.
func (l *Log) reopen() error {
	names, err := files(l.dir)
	if err != nil {
		return err
	}
	first := len(names) == 0
	name := fileOf(1)
	if !first {
		name = names[len(names)-1]
	}
	f, err := os.OpenFile(filepath.Join(l.dir, name), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("audit: opening the log: %w", err)
	}
	c, err := l.tail(f, name)
	if err == nil && first {
		err = syncDir(l.dir)
	}
	if err == nil {
		l.size, err = f.Seek(0, io.SeekEnd)
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("audit: opening the log: %w", err)
	}
	l.file, l.last = f, c
	return nil
}

// tail reads the newest file to its end, and completes its last line.
func (l *Log) tail(f *os.File, name string) (chain, error) {
	b, err := io.ReadAll(io.LimitReader(f, 64*fileBytes))
	if err != nil {
		return chain{}, err
	}
	if len(b) > 0 && b[len(b)-1] != '\n' {
		b = append(b, '\n')
		if _, err := f.Write([]byte{'\n'}); err != nil {
			return chain{}, err
		}
	}
	c := chain{hash: noHash, watch: l.headed.Seq}
	if first := firstOf(name); first > 1 { // its first entry says what is before
		c = chain{seq: first - 1, loose: true, watch: l.headed.Seq}
	}
	for line := range bytes.Lines(b) {
		c.take(name, bytes.TrimSuffix(line, []byte("\n")))
	}
	if c.loose { // a crash right after the rotation: the file has no entry yet
		return l.before(c, name)
	}
	if c.reaches(l.headed); len(c.faults) > 0 {
		return c, broken(errors.New(c.faults[0]))
	}
	return c, nil
}

// before finds the end of the chain in the file before an empty one.
func (l *Log) before(empty chain, name string) (chain, error) {
	names, err := files(l.dir)
	if err != nil || len(names) < 2 {
		return chain{}, errors.Join(err, errors.New("the file before "+name+" is missing"))
	}
	f, err := os.Open(filepath.Join(l.dir, names[len(names)-2]))
	if err != nil {
		return chain{}, err
	}
	defer f.Close()
	c, err := l.tail(f, names[len(names)-2])
	c.torn = append(c.torn, empty.torn...)
	return c, err
}

// anchor writes the head, unless it is written.
func (l *Log) anchor() error {
	if l.headed.SHA256 == l.last.hash {
		return nil
	}
	h := head{Seq: l.last.seq, SHA256: l.last.hash, At: l.now().UTC(), Key: l.signer.Key}
	var err error
	if h.Signature, err = l.signer.Sign(h.text()); err != nil {
		return err
	}
	b, err := json.Marshal(h)
	if err == nil {
		err = bus.WritePrivate(filepath.Join(l.dir, headFile), append(b, '\n'), true)
	}
	if err == nil {
		l.headed = h
	}
	return err
}

// noHash is in place of the hash before the first entry.
var noHash = strings.Repeat("0", 2*sha256.Size)

func hashOf(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}

// fileOf returns the name of the file that begins with an entry.
func fileOf(seq int64) string { return fmt.Sprintf("audit-%012d.jsonl", seq) }

// firstOf returns the number of the first entry of a file; 0: it is no file of a log.
func firstOf(name string) (seq int64) {
	if n, err := fmt.Sscanf(name, "audit-%d.jsonl", &seq); n != 1 || err != nil || fileOf(seq) != name {
		return 0
	}
	return seq
}

// files returns the files of a log, the oldest first.
func files(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir) // sorted, as the numbers are
	for _, e := range entries {
		if firstOf(e.Name()) > 0 {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// syncDir makes the name of a new file durable, where the system can.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	d.Sync()
	return d.Close()
}
