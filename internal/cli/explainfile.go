package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"thru/internal/bus"
	"thru/internal/cause"
	"thru/internal/cli/console"
	"thru/internal/fault"
	"thru/internal/library"
	"thru/internal/measure"
	"thru/internal/stat"
)

// stored tells whether files are to be explained, all that were named.
func (c *explainCmd) stored(e *env) (bool, error) {
	files := 0
	for _, name := range c.What {
		if e.isFile(name) {
			files++
		}
	}
	switch {
	case files == 0 && len(c.What) > 1:
		return false, fault.Usagef("one after the other", "%d end points are named, and one is explained at a time", len(c.What))
	case files > 0 && files < len(c.What):
		return false, fault.Usagef("thru explain END POINT, or thru explain FILE...", "end points and files do not go together")
	}
	if others := e.TypedBut(append(formNames(), "--link-rate", "--no-store", "--store")...); files > 0 && len(others) > 0 {
		return false, fault.Usagef("with files go --link-rate and the forms of output", "%s not go with a file, which is only read", flagsDo(others))
	}
	return files > 0, nil
}

// isFile tells a result that was kept from an end point. A name that was
// joined is an end point, whatever lies in this folder.
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

// isJoined tells whether a name is that of an end point that was joined, and
// whether there is a file of that name.
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
		e.Line(name + " is the end point of that name; the file here is ./" + name)
	}
	return true, exists
}

// kept reads the files: captures are of one test, all others hold one or more.
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

// explainFiles prints what the evidence that was kept says, and judges rungs of
// a ladder by each other.
func (c *explainCmd) explainFiles(ctx context.Context, e *env) error {
	link, err := linkRate(c.LinkRate)
	if err != nil {
		return err
	}
	out, err := c.wanted()
	if err != nil {
		return err
	}
	all, err := c.kept(ctx, e, link)
	if err != nil {
		return err
	}
	if len(all) > 1 && (c.JSON || c.HTML != "") {
		return fault.Usagef("name them one at a time: without --json and --html all are printed", "--json and --html take one result, and here are %d", len(all))
	}
	docs := make([]*measure.Document, len(all))
	for i, r := range all {
		docs[i] = r.Doc
	}
	cause.Rungs(docs)
	unexplained := 0
	var below *measure.Verdict
	for i, r := range all {
		if len(all) > 1 {
			fmt.Fprintf(e.Out, "%s%s\n", strings.Repeat("\n", min(i, 1)), r.Name)
		}
		if err := e.printKept(r.Doc, out); err != nil {
			return err
		}
		if len(r.Doc.Findings) == 0 {
			unexplained++
		}
		if v := r.Doc.Verdict; c.LinkRate != "" && v != nil && !v.Pass {
			below = v
		}
	}
	switch {
	case unexplained > 0:
		err := fault.Failf("", "%d of the results hold no traffic that could be explained", unexplained)
		e.ErrorLines(err)
		return console.Printed(err)
	case below != nil:
		return console.VerdictError(below)
	}
	return nil
}
