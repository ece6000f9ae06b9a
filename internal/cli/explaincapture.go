package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"thru/internal/capture"
	"thru/internal/capture/trace"
	"thru/internal/cli/console"
	"thru/internal/fault"
	"thru/internal/library"
	"thru/internal/stat"
	"thru/internal/unit"
)

// captures reads files of packets and makes one result of them: of one place,
// or of two. It returns none where the files are no captures.
func (c *explainCmd) captures(ctx context.Context, e *env, sources []*library.Source, link stat.Link) ([]library.Result, error) {
	n := 0
	for _, s := range sources {
		if s.IsCapture() {
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
	for _, s := range sources {
		f, err := e.load(ctx, s)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	doc, err := capture.Document(ctx, files...)
	if err != nil {
		return nil, err
	}
	doc.Thru, doc.Arguments = e.Version, e.Arguments()
	library.Summarise(doc, link)
	for _, w := range doc.Warnings {
		if !c.JSON {
			e.Line("warning: " + w)
		}
	}
	return []library.Result{{Name: strings.Join(c.What, ", "), Doc: doc}}, nil
}

// load reads one capture, and tells on a terminal how far it is.
func (e *env) load(ctx context.Context, s *library.Source) (capture.File, error) {
	r := passing{in: s, name: s.Name, size: s.Size, begin: time.Now(), w: e.Board(false)}
	defer r.w.Clear()
	return fault.Until(ctx, s.Name, func() (capture.File, error) { return capture.Load(ctx, s.Name, &r, trace.Options{}, r.tell) })
}

// passing is a file that is read, of which a terminal shows how far.
type passing struct {
	in         io.Reader
	name       string
	bytes      int64
	size       int64 // 0: not known
	begin, was time.Time
	w          *console.Board
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
