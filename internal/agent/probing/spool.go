package probing

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"thru/internal/bus"
	"thru/internal/watch/record"
)

// Bounds of a spool.
const (
	pageSamples = 1000     // of one file, and of one reply
	mostMemory  = 4096     // samples without a folder
	mostBytes   = 64 << 20 // of all files: a week of 100 pairs
)

// Names in the folder of a spool.
const (
	openPage   = "open.jsonl" // is being written
	pageEnding = ".jsonl.zst" // after the number of its last sample
)

// spool keeps samples until they are fetched: in a folder, or without one in memory. Its samples have numbers that grow, also from process to process.
type spool struct {
	dir     string
	file    *os.File       // the open page; nil without a folder, and after an error
	open    []bus.Numbered // its samples
	pages   []page         // full ones, oldest first
	read    []bus.Numbered // the samples of the oldest page, once it was read
	last    int64          // highest number
	shown   int64          // highest number that a client has seen
	dropped int64
}

// page is a file of samples.
type page struct {
	last  int64
	bytes int64
}

// openSpool takes over what an earlier process left.
func openSpool(dir string) (*spool, error) {
	s := &spool{dir: dir}
	if dir == "" {
		return s, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("agent: making the folder of a watch: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("agent: reading the folder of a watch: %w", err)
	}
	for _, e := range entries { // sorted by name, and so by number
		var p page
		if text, ours := strings.CutSuffix(e.Name(), pageEnding); ours {
			if _, err := fmt.Sscanf(text, "%d", &p.last); err == nil {
				if info, err := e.Info(); err == nil {
					p.bytes = info.Size()
				}
				s.pages, s.last = append(s.pages, p), max(s.last, p.last)
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, openPage))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("agent: reading stored samples: %w", err)
	}
	for _, x := range parsePage(text) {
		if x.Number > s.last { // else a crash came between the page and its removal here
			s.open, s.last = append(s.open, x), x.Number
		}
	}
	s.file, err = os.OpenFile(filepath.Join(dir, openPage), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("agent: storing samples: %w", err)
	}
	return s, nil
}

// parsePage reads lines of samples. The last line may be cut by a crash.
func parsePage(text []byte) (all []bus.Numbered) {
	for line := range bytes.Lines(text) {
		var x bus.Numbered
		if json.Unmarshal(line, &x) == nil {
			all = append(all, x)
		}
	}
	return all
}

// add keeps a sample. What the disk does not take stays in memory.
func (s *spool) add(x record.Sample) {
	s.last = max(s.last+1, time.Now().UnixNano()) // the clock makes numbers of two processes differ, where there is no folder
	n := bus.Numbered{Number: s.last, Sample: x}
	s.open = append(s.open, n)
	if s.file == nil {
		if more := len(s.open) - mostMemory; more > 0 {
			s.open, s.dropped = slices.Delete(s.open, 0, more), s.dropped+int64(more)
		}
		return
	}
	if line, err := json.Marshal(n); err == nil {
		_, _ = s.file.Write(append(line, '\n'))
	}
	if len(s.open) >= pageSamples {
		s.turn()
	}
}

// turn compresses the open page and begins a new one.
func (s *spool) turn() {
	bytes, err := s.writePage()
	if err != nil { // a full disk: the samples stay in memory, within its bound
		s.file.Close()
		s.file = nil
		return
	}
	s.pages = append(s.pages, page{s.last, bytes})
	s.open = nil
	_ = s.file.Truncate(0)
	total := int64(0)
	for _, p := range s.pages {
		total += p.bytes
	}
	for total > mostBytes {
		total -= s.pages[0].bytes
		s.lose()
	}
}

func (s *spool) nameOf(p page) string {
	return filepath.Join(s.dir, fmt.Sprintf("%020d%s", p.last, pageEnding))
}

// writePage writes the samples of the open page, and returns the size of the file.
func (s *spool) writePage() (int64, error) {
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return 0, err
	}
	lines := json.NewEncoder(z)
	for _, x := range s.open {
		err = errors.Join(err, lines.Encode(x))
	}
	if err = errors.Join(err, z.Close()); err != nil {
		return 0, err
	}
	name := s.nameOf(page{last: s.last})
	if err := os.WriteFile(name+".part", out.Bytes(), 0o600); err != nil {
		return 0, err
	}
	return int64(out.Len()), os.Rename(name+".part", name)
}

// lose removes the oldest page before anybody has fetched it.
func (s *spool) lose() {
	s.dropped += pageSamples
	s.forget()
}

// forget removes the oldest page.
func (s *spool) forget() {
	os.Remove(s.nameOf(s.pages[0]))
	s.pages, s.read = slices.Delete(s.pages, 0, 1), nil
}

// drop removes samples that a client has stored. A number that this process has shown nobody is of another one.
func (s *spool) drop(stored int64) {
	if stored > s.shown {
		return
	}
	for len(s.pages) > 0 && s.pages[0].last <= stored {
		s.forget()
	}
	isStored := func(x bus.Numbered) bool { return x.Number <= stored }
	s.read = slices.DeleteFunc(s.read, isStored)
	if s.open = slices.DeleteFunc(s.open, isStored); len(s.open) == 0 && s.file != nil {
		_ = s.file.Truncate(0)
	}
}

// first returns the oldest samples, and whether there are more.
func (s *spool) first() ([]bus.Numbered, bool) {
	for len(s.pages) > 0 && s.read == nil {
		read, err := readPage(s.nameOf(s.pages[0]))
		if err != nil { // it can never be fetched
			s.lose()
			continue
		}
		s.read = read
	}
	all, more := s.open, false
	if len(s.pages) > 0 {
		all, more = s.read, true
	}
	if len(all) > pageSamples {
		all, more = all[:pageSamples], true
	}
	if len(all) > 0 {
		s.shown = max(s.shown, all[len(all)-1].Number)
	}
	return slices.Clone(all), more
}

func readPage(name string) ([]bus.Numbered, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := zstd.NewReader(bufio.NewReader(f), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostBytes))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(z); err != nil {
		return nil, err
	}
	return parsePage(text.Bytes()), nil
}

func (s *spool) close() {
	if s.file != nil {
		s.file.Close()
		s.file = nil
	}
}
