package probing

import (
	"encoding/json"
	"fmt"
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
	mostMemory  = 4096     // samples that are in no page
	mostBytes   = 64 << 20 // of all pages: a week of 100 pairs
)

// Names in the folder of a spool.
const (
	openPage   = "open" + pageEnding // the samples that do not fill a page yet
	pageEnding = ".json.zst"         // after the number of its last sample
)

// spool keeps samples until they are fetched: in memory, and with save in a folder. Its samples have numbers that grow, also from process to process.
type spool struct {
	dir     string         // empty: there is none
	pages   []page         // full ones, oldest first
	read    []bus.Numbered // the samples of the oldest page, once it was read
	open    []bus.Numbered // those after the pages
	isSaved bool           // openPage has them
	last    int64          // highest number
	shown   int64          // highest number that a client has seen
	stored  int64          // highest number that a client has stored
	dropped int64
}

// page is a file of samples.
type page struct {
	last  int64
	bytes int64
}

// openSpool takes over what an earlier process left.
func openSpool(dir string) *spool {
	s := &spool{dir: dir}
	if dir == "" {
		return s
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries { // sorted by name, and so by number
		var p page
		text, ours := strings.CutSuffix(e.Name(), pageEnding)
		if _, err := fmt.Sscanf(text, "%d", &p.last); ours && err == nil {
			if info, err := e.Info(); err == nil {
				p.bytes = info.Size()
			}
			s.pages, s.last = append(s.pages, p), max(s.last, p.last)
		}
	}
	s.open = after(s.last, readPage(filepath.Join(dir, openPage))) // else a crash came between a page and openPage
	if n := len(s.open); n > 0 {
		s.last = s.open[n-1].Number
	}
	return s
}

// after returns the samples with higher numbers.
func after(number int64, all []bus.Numbered) []bus.Numbered {
	return slices.DeleteFunc(all, func(x bus.Numbered) bool { return x.Number <= number })
}

// add keeps a sample.
func (s *spool) add(x record.Sample) {
	s.last = max(s.last+1, time.Now().UnixNano()) // the clock makes numbers of two processes differ, where there is no folder
	s.open, s.isSaved = append(s.open, bus.Numbered{Number: s.last, Sample: x}), false
	if more := len(s.open) - mostMemory; more > 0 {
		s.open, s.dropped = slices.Delete(s.open, 0, more), s.dropped+int64(more)
	}
}

// save writes what is new into the folder. What the disk does not take stays in memory, and the next call tries again.
func (s *spool) save() {
	if s.dir == "" || s.isSaved {
		return
	}
	for len(s.open) >= pageSamples {
		p := page{last: s.open[pageSamples-1].Number}
		var err error
		if p.bytes, err = writePage(s.nameOf(p), s.open[:pageSamples]); err != nil {
			return
		}
		s.pages, s.open = append(s.pages, p), slices.Clone(s.open[pageSamples:])
	}
	total := int64(0)
	for _, p := range s.pages {
		total += p.bytes
	}
	for ; total > mostBytes; s.lose() {
		total -= s.pages[0].bytes
	}
	_, err := writePage(filepath.Join(s.dir, openPage), s.open)
	s.isSaved = err == nil
}

func (s *spool) nameOf(p page) string {
	return filepath.Join(s.dir, fmt.Sprintf("%020d%s", p.last, pageEnding))
}

// writePage writes samples, and returns the size of the file. Without samples there is none.
func writePage(name string, samples []bus.Numbered) (int64, error) {
	if len(samples) == 0 {
		os.Remove(name)
		return 0, nil
	}
	text, err := json.Marshal(samples)
	if err != nil {
		return 0, err
	}
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(1<<18)) // so small that it is cheap to make anew
	if err != nil {
		return 0, err
	}
	zipped := z.EncodeAll(text, nil)
	return int64(len(zipped)), bus.WritePrivate(name, zipped, true)
}

// readPage returns the samples of a file; none where it cannot be read.
func readPage(name string) (all []bus.Numbered) {
	zipped, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	return unzip(zipped)
}

func unzip(zipped []byte) (all []bus.Numbered) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostBytes))
	if err != nil {
		return nil
	}
	defer z.Close()
	text, err := z.DecodeAll(zipped, nil)
	if err != nil || json.Unmarshal(text, &all) != nil {
		return nil
	}
	return all
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
	if stored > s.shown || stored <= s.stored {
		return
	}
	s.stored = stored
	for len(s.pages) > 0 && s.pages[0].last <= stored {
		s.forget()
	}
	n := len(s.open)
	s.read, s.open = after(stored, s.read), after(stored, s.open)
	s.isSaved = s.isSaved && len(s.open) == n
}

// first returns the oldest samples, and whether there are more.
func (s *spool) first() ([]bus.Numbered, bool) {
	for len(s.pages) > 0 && len(s.read) == 0 {
		if s.read = after(s.stored, readPage(s.nameOf(s.pages[0]))); len(s.read) == 0 { // it can never be fetched
			s.lose()
		}
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
