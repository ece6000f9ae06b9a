package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"thru/internal/bus"
	"thru/internal/capture"
	"thru/internal/capture/trace"
	"thru/internal/cause"
	"thru/internal/cli/console"
	"thru/internal/fault"
	"thru/internal/library"
	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// stored reports whether all arguments are files to explain.
func (c *explainCmd) stored(e *env) (bool, error) {
	files := unit.CountFunc(c.What, e.isFile)
	switch {
	case files == 0 && len(c.What) > 1:
		return false, fault.Usagef("explain one after the other", "%d end points are named, and explain takes one", len(c.What))
	case files > 0 && files < len(c.What):
		return false, fault.Usagef("thru explain END POINT, or thru explain FILE...", "end points and files do not go together")
	}
	if others := e.TypedBut(append(formNames(), "--link-rate", "--no-store", "--store")...); files > 0 && len(others) > 0 {
		return false, fault.Usagef("take only --link-rate and the flags of output with files", "%s not go with a file, which is only read", flagsDo(others))
	}
	return files > 0, nil
}

// isFile distinguishes a stored result from an end point. A joined name is an end point even if this folder
// has a file of that name.
func (e *env) isFile(name string) bool {
	if name == "-" || name == "" || strings.Contains(name, "://") {
		return name == "-"
	}
	joined, exists := e.isJoined(name)
	if joined {
		return false
	}
	isLike := e.reader().IsStored(name) || strings.EqualFold(filepath.Ext(name), ".json") || library.IsCaptureName(name)
	return exists || isLike || strings.ContainsRune(name, filepath.Separator)
}

// isJoined reports whether a name is that of a joined end point, and whether a file of that name exists.
func (e *env) isJoined(name string) (joined, exists bool) {
	info, err := os.Stat(name)
	exists = err == nil && !info.IsDir()
	keys, err := bus.DefaultKeyring()
	if err != nil {
		return false, exists
	}
	if _, err := keys.Load(name); err != nil {
		return false, exists
	}
	if exists {
		e.Line(name + " is taken as the end point of that name; for the file say ./" + name)
	}
	return true, exists
}

// kept reads the files: several captures are one test; any other file holds one or more results.
func (c *explainCmd) kept(ctx context.Context, e *env, link stat.Link) ([]library.Result, error) {
	sources, err := e.reader().Open(ctx, c.What)
	if err != nil {
		return nil, err
	}
	defer library.CloseSources(sources)
	all, err := c.captures(ctx, e, sources, link)
	if err != nil || len(all) > 0 {
		return all, err
	}
	for _, s := range sources {
		found, err := e.reader().Results(ctx, s, link)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// explainFiles prints what the stored evidence shows, and judges the rungs of a ladder against each other.
func (c *explainCmd) explainFiles(ctx context.Context, e *env) error {
	r, err := c.request(0)
	if err != nil {
		return err
	}
	out, err := c.wanted()
	if err != nil {
		return err
	}
	all, err := c.kept(ctx, e, stated(r.Link))
	if err != nil {
		return err
	}
	if len(all) > 1 && (c.JSON || c.HTML != "") {
		return fault.Usagef("name them one at a time: without --json and --html all are printed", "--json and --html take one result, and there are %d", len(all))
	}
	docs := unit.Mapped(all, func(x library.Result) *measure.Document { return x.Doc })
	cause.Rungs(docs)
	failed, err := e.printEach(all, len(all) > 1, c.has("link_rate"), func(d *measure.Document) error { return e.printKept(d, out) },
		func(d *measure.Document) bool { return len(d.Findings) == 0 })
	if failed == 0 {
		return err
	}
	err = fault.Failf("", "%d of the results have no traffic to explain", failed)
	e.ErrorLines(err)
	return console.Printed(err)
}

// printEach prints stored results and counts those without the data asked for. With a stated rate, the
// returned error is the verdict that is not met.
func (e *env) printEach(all []library.Result, names, stated bool, show func(*measure.Document) error, fails func(*measure.Document) bool) (failed int, err error) {
	for i, x := range all {
		if names {
			fmt.Fprintf(e.Out, "%s%s\n", strings.Repeat("\n", min(i, 1)), x.Name)
		}
		if err := show(x.Doc); err != nil {
			return 0, err
		}
		if fails(x.Doc) {
			failed++
		}
		if v := x.Doc.Verdict; stated && v != nil && !v.Pass {
			err = console.VerdictError(v)
		}
	}
	return failed, err
}

// captures reads capture files, of one capture point or of two, and makes one result of them. It returns none
// if the files are no captures.
func (c *explainCmd) captures(ctx context.Context, e *env, sources []*library.Source, link stat.Link) ([]library.Result, error) {
	n := unit.CountFunc(sources, (*library.Source).IsCapture)
	switch {
	case n == 0:
		return nil, nil
	case n < len(c.What):
		return nil, fault.Usagef("explain them one after the other", "captures and results do not go together")
	case n > 2:
		return nil, fault.Usagef("name one capture, or two of one test, one from each end", "%d captures are named", n)
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

// load reads one capture and shows the progress on a terminal.
func (e *env) load(ctx context.Context, s *library.Source) (capture.File, error) {
	r := passing{in: s, name: s.Name, size: s.Size, begin: time.Now(), w: e.Board(false)}
	defer r.w.Clear()
	return fault.Until(ctx, s.Name, func() (capture.File, error) { return capture.Load(ctx, s.Name, &r, trace.Options{}, r.showProgress) })
}

// passing is a file that shows on a terminal how much of it was read.
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

// showProgress shows the bytes read and the rate, a few times a second.
func (p *passing) showProgress(packets int64) {
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
