package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"thru/internal/capture"
	"thru/internal/capture/trace"
	"thru/internal/fault"
	"thru/internal/stat"
	"thru/internal/unit"
)

// captures reads files of packets and makes one result of them: of one place,
// or of two. It returns none where the files are no captures.
func (c *explainCmd) captures(ctx context.Context, e *env, link stat.Link) ([]named, error) {
	n := 0
	for _, path := range c.What {
		is, err := e.isCapture(ctx, path)
		if err != nil {
			return nil, err
		}
		if is {
			n++
		}
	}
	switch {
	case n == 0:
		return nil, nil
	case n < len(c.What):
		return nil, fault.Usagef("explain them one after the other", "captures and results do not go together")
	case n > 2:
		return nil, fault.Usagef("one capture, or two of one test that were made at both ends", "%d captures are named", n)
	}
	var files []capture.File
	for _, path := range c.What {
		f, err := e.load(ctx, path)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	doc, err := capture.Document(ctx, files...)
	if err != nil {
		return nil, err
	}
	doc.Thru, doc.Arguments = e.version, e.args
	summarise(doc, link)
	for _, w := range doc.Warnings {
		if !c.JSON {
			fmt.Fprintf(e.err, "warning: %s\n", w)
		}
	}
	return []named{{strings.Join(c.What, ", "), doc}}, nil
}

// Names of captures; a compressed one has a suffix more.
var captureSuffixes = []string{".pcap", ".pcapng", ".cap"}

// isCaptureName tells by the name whether packets are in a file.
func isCaptureName(path string) bool {
	name := strings.ToLower(path)
	for _, packed := range []string{".gz", ".zst"} {
		name = strings.TrimSuffix(name, packed)
	}
	return slices.Contains(captureSuffixes, filepath.Ext(name))
}

// isCapture tells captures from results by their beginning, or by their name.
// What it reads of stdin stays to be read.
func (e *env) isCapture(ctx context.Context, path string) (bool, error) {
	const enough = 4 // bytes that say what a file is
	in := e.in
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return false, notOpened(path, err)
		}
		defer f.Close()
		in = f
	}
	buffered := bufio.NewReader(in)
	if path == "-" {
		e.in = buffered
	}
	begin, err := until(ctx, path, func() ([]byte, error) { return buffered.Peek(enough) })
	if err != nil && !errors.Is(err, io.EOF) {
		return false, notOpened(path, err)
	}
	isPacked := bytes.HasPrefix(begin, []byte("\x1f\x8b")) || bytes.HasPrefix(begin, []byte("\x28\xb5\x2f\xfd")) // gzip, zstd
	return isCaptureName(path) || isCapture(begin) || isPacked, nil
}

// notOpened says which file it was: the path is said in front.
func notOpened(path string, err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return fault.Usagef("thru explain FILE, or - for stdin", "%s: %w", path, err)
}

// load reads one capture, and tells on a terminal how far it is.
func (e *env) load(ctx context.Context, path string) (capture.File, error) {
	r := passing{in: e.in, name: path, begin: time.Now(), w: &watch{}}
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return capture.File{}, notOpened(path, err)
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			r.size = info.Size()
		}
		r.in = f
	}
	if _, ok := terminalSize(e.err); ok {
		r.w.w = e.err
	}
	defer r.w.clear()
	return until(ctx, path, func() (capture.File, error) { return capture.Load(ctx, path, &r, trace.Options{}, r.tell) })
}

// passing is a file that is read, of which a terminal shows how far.
type passing struct {
	in         io.Reader
	name       string
	bytes      int64
	size       int64 // 0: not known
	begin, was time.Time
	w          *watch
}

// Read implements io.Reader.
func (p *passing) Read(to []byte) (int, error) {
	n, err := p.in.Read(to)
	p.bytes += int64(n)
	return n, err
}

// tell shows the bytes that were read and the pace, a few times a second.
func (p *passing) tell(packets int64) {
	now := time.Now()
	if now.Sub(p.was) < 250*time.Millisecond {
		return
	}
	p.was = now
	of := ""
	if p.size > 0 {
		of = " of " + unit.Size(p.size)
	}
	pace := float64(packets) / now.Sub(p.begin).Seconds()
	p.w.Checking(fmt.Sprintf("%s: %s%s, %s packets, %.1f M/s", p.name, unit.Size(p.bytes), of, unit.Count(packets), pace/1e6))
}

// until does what may wait for a pipe that nobody writes to; an interrupt ends it.
func until[T any](ctx context.Context, path string, do func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := do()
		done <- outcome{value, err}
	}()
	select {
	case x := <-done:
		return x.value, x.err
	case <-ctx.Done():
		var none T
		return none, fault.Failf("", "%s: interrupted", path)
	}
}
