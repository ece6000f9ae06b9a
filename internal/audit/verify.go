package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"thru/internal/bus"
)

// mostFaults bounds the faults that are reported.
const mostFaults = 100

// chain follows the lines of a log, and collects what does not fit.
type chain struct {
	seq   int64  // of the newest entry
	hash  string // of its line
	loose bool   // what is before is not known: the first entry is taken as it is

	torn   []byte // lines since the newest entry that are none, with their ends
	tornAt string
	place  string // of the line that is read
	before string // of the newest entry
	line   int    // in the file
	file   string

	watch   int64 // an entry of interest, and the hash of its line
	watched string

	faults []string
	tears  []string // incomplete lines that the next entry names: crashes
}

// Report is what Verify has found.
type Report struct {
	Entries  int64     `json:"entries"`
	First    int64     `json:"first_seq,omitzero"`
	Last     int64     `json:"last_seq,omitzero"`
	SHA256   string    `json:"sha256,omitempty"`    // of the last entry
	Signed   int64     `json:"signed_seq,omitzero"` // the newest entry that a head proves
	Torn     []string  `json:"torn,omitempty"`      // lines that a crash has cut off
	Faults   []string  `json:"faults,omitempty"`
	LastTime time.Time `json:"last_at,omitzero"`
}

// take reads a line without its end, and returns its entry.
func (c *chain) take(file string, line []byte) (Entry, bool) {
	if c.file != file {
		c.file, c.line = file, 0
	}
	c.line++
	c.place = fmt.Sprintf("line %d of %s", c.line, file)
	e, err := parse(line)
	if err != nil {
		if len(c.torn) == 0 {
			c.tornAt = c.place
		}
		c.torn = append(append(c.torn, line...), '\n')
		return Entry{}, false
	}
	c.gap(e)
	switch {
	case c.loose:
		c.loose = false
	case e.Seq > c.seq+1:
		c.fault("%s: entries %d to %d before it are missing", c.place, c.seq+1, e.Seq-1)
	case e.Seq <= c.seq:
		c.fault("%s: entry %d comes after entry %d: it was moved or repeated", c.place, e.Seq, c.seq)
	case e.Prev != c.hash && c.before == "":
		c.fault("%s: it is not the first entry: its hash of the one before is not that of none", c.place)
	case e.Prev != c.hash:
		c.fault("%s was changed, or the hash of it in %s", c.before, c.place)
	}
	c.seq, c.hash, c.before = e.Seq, hashOf(line), c.place
	if e.Seq == c.watch {
		c.watched = c.hash
	}
	return e, true
}

// gap judges lines that are no entries, by what the next entry says about them.
func (c *chain) gap(next Entry) {
	switch {
	case len(c.torn) == 0 && next.Torn != "":
		c.fault("%s: the incomplete line before it is missing", c.place)
	case len(c.torn) > 0 && hashOf(c.torn) == next.Torn:
		c.tears = append(c.tears, c.tornAt)
	case len(c.torn) > 0:
		c.fault("%s cannot be read, and was not left by a crash", c.tornAt)
	}
	c.torn = nil
}

// reaches judges whether the chain has the entry of a head.
func (c *chain) reaches(h head) {
	switch {
	case h.Seq > c.seq:
		c.fault("entries %d to %d are missing at the end", c.seq+1, h.Seq)
	case c.watched != "" && c.watched != h.SHA256:
		c.fault("entry %d is not the one of the signed head: it was changed", h.Seq)
	}
}

func (c *chain) fault(format string, args ...any) {
	if len(c.faults) < mostFaults {
		c.faults = append(c.faults, fmt.Sprintf(format, args...))
	}
}

// parse reads one line. It accepts only what the log writes.
func parse(line []byte) (Entry, error) {
	var e Entry
	if len(line) > lineBytes {
		return e, errors.New("audit: the line is too long")
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return e, fmt.Errorf("audit: reading a line: %w", err)
	}
	if d.InputOffset() != int64(len(line)) || e.Seq < 1 || len(e.Prev) != len(noHash) || e.At.IsZero() || e.Outcome != Allowed && e.Outcome != Denied {
		return e, errors.New("audit: the line is no entry")
	}
	return e, nil
}

// Verify reads the whole log of a folder. One of the keys must have signed its head.
func Verify(dir string, keys ...string) (Report, error) {
	names, err := files(dir)
	if err != nil {
		return Report{}, fmt.Errorf("audit: reading the log: %w", err)
	}
	h, herr := readHead(dir, keys)
	c, r := &chain{hash: noHash, watch: h.Seq}, Report{Signed: h.Seq}
	for _, name := range names {
		if err := c.read(filepath.Join(dir, name), name, r.count); err != nil {
			return r, err
		}
	}
	if herr == nil {
		c.reaches(h)
	} else {
		c.fault("the signed head cannot be used, so missing entries at the end are not found: %v", herr)
	}
	return r.of(c), nil
}

// VerifyFile reads exported lines. Their first entry is taken as it is.
func VerifyFile(path string) (Report, error) {
	c, r := &chain{loose: true}, Report{}
	err := c.read(path, filepath.Base(path), r.count)
	return r.of(c), err
}

func (r *Report) count(e Entry, _ []byte) error {
	if r.Entries++; r.Entries == 1 {
		r.First = e.Seq
	}
	r.Last, r.LastTime = e.Seq, e.At
	return nil
}

// of adds what the chain has found.
func (r Report) of(c *chain) Report {
	r.Faults, r.Torn, r.SHA256 = c.faults, c.tears, c.hash
	if len(c.torn) > 0 {
		r.Torn = append(r.Torn, c.tornAt)
	}
	return r
}

// Noted reports whether the log still has an entry with a hash that was noted before.
func Noted(dir string, seq int64, sha256 string) (bool, error) {
	found := false
	err := Read(dir, time.Time{}, func(e Entry, line []byte) error {
		found = found || e.Seq == seq && hashOf(line) == sha256
		return nil
	})
	return found, err
}

// Read passes on the entries from a time on, with their lines. It checks nothing, and leaves out what is no entry.
func Read(dir string, since time.Time, pass func(e Entry, line []byte) error) error {
	names, err := files(dir)
	if err != nil {
		return fmt.Errorf("audit: reading the log: %w", err)
	}
	for _, name := range names {
		c := &chain{loose: true}
		if err := c.read(filepath.Join(dir, name), name, func(e Entry, line []byte) error {
			if e.At.Before(since) {
				return nil
			}
			return pass(e, line)
		}); err != nil {
			return err
		}
	}
	return nil
}

// read follows one file.
func (c *chain) read(path, name string, pass func(Entry, []byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("audit: reading the log: %w", err)
	}
	defer f.Close()
	return c.follow(f, name, pass)
}

// follow follows the lines of a file.
func (c *chain) follow(f io.Reader, name string, pass func(Entry, []byte) error) error {
	in := bufio.NewReaderSize(f, lineBytes)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			line = bytes.TrimSuffix(line, []byte("\n"))
			if e, ok := c.take(name, line); ok {
				if err := pass(e, line); err != nil {
					return err
				}
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("audit: reading the log: %w", err)
		}
	}
}

// readHead reads the head; one of the keys must have signed it.
func readHead(dir string, keys []string) (head, error) {
	var h head
	b, err := os.ReadFile(filepath.Join(dir, headFile))
	if err != nil {
		return h, err
	}
	if err := json.Unmarshal(b, &h); err != nil {
		return head{}, fmt.Errorf("audit: reading %s: %w", headFile, err)
	}
	if ok, err := bus.Verify(h.text(), h.Key, h.Signature); !ok || !slices.Contains(keys, h.Key) {
		return head{}, errors.Join(fmt.Errorf("audit: the signature in %s is not valid", headFile), err)
	}
	return h, nil
}
