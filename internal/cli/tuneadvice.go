package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"thru/internal/cause"
	"thru/internal/cause/advise"
	"thru/internal/fault"
	"thru/internal/library"
	"thru/internal/measure"
)

// adviseFile prints what a result that was kept speaks for. Nothing is measured,
// and nothing changed.
func (c *tuneCmd) adviseFile(ctx context.Context, e *env) error {
	link, err := linkRate(c.LinkRate)
	if err != nil {
		return err
	}
	only, err := onlyKnobs(c.Only)
	if err != nil {
		return err
	}
	if err := c.writable(); err != nil {
		return err
	}
	sources, err := e.reader().Open(ctx, []string{c.What})
	if err != nil {
		return err
	}
	defer library.CloseSources(sources)
	found, err := e.reader().Results(ctx, sources[0], link)
	if err != nil {
		return err
	}
	if len(found) != 1 {
		return fault.Usagef("keep it in a file of its own", "%s holds %d results, and one is advised on at a time", c.What, len(found))
	}
	doc := found[0].Doc
	if !library.Measured(doc) && len(doc.Findings) == 0 && len(doc.Gates) == 0 {
		return fault.Failf("measure first: thru test END POINT --json > result.json", "%s: there is nothing in it to give advice on", fault.Named(c.What))
	}
	doc.Command, doc.Arguments, doc.Ended, doc.Error = "tune", e.Arguments(), "", nil
	doc.Tuning = adviceOf(doc, advise.Seen{Only: only})
	e.archive.Off = true // nothing was measured
	return c.outcome(e, doc, nil)
}

// adviceOf is a dry run on what a document says. Of one that was tuned it is
// about the state that it has come to.
func adviceOf(doc *measure.Document, seen advise.Seen) *measure.Tuning {
	t := &measure.Tuning{DryRun: true, Only: seen.Only}
	if old := doc.Tuning; old != nil && len(old.Journey) > 0 {
		t.Journey = old.Journey[len(old.Journey)-1:]
		t.Journey[0].Attempt = nil
	}
	t.Advice = cause.Propose(doc, seen)
	return t
}

// script is one that is to be written.
type script struct{ path, text string }

// scriptsOf are those of all hosts for which there is anything to do.
func scriptsOf(doc *measure.Document, path string) (all []script) {
	if doc.Tuning == nil {
		return nil
	}
	var hosts []string
	for _, p := range doc.EndPoints {
		hosts = append(hosts, p.Name)
	}
	names := scriptNames(strings.TrimSuffix(path, ".sh"), hosts)
	for i, p := range doc.EndPoints {
		do, undo := advise.Script(doc.Tuning.Advice, p.Name)
		if do == "" {
			continue
		}
		ending := ".sh"
		if p.Facts != nil && p.Facts.OS != nil && *p.Facts.OS == "windows" {
			ending = ".ps1"
		}
		all = append(all, script{names[i] + ending, do}, script{names[i] + ".undo" + ending, undo})
	}
	return all
}

// Lengths of names of files in bytes: most file systems take 255.
const (
	longestFile   = 255
	longestScript = 180 // of --script, so that there is room for a host and an ending
	scriptEnding  = len("-99.undo.ps1") + len(part)
)

// scriptNames are the names of the scripts of hosts, without their endings. Names
// that would be those of another host's script, also where capitals do not count,
// get a number.
func scriptNames(path string, hosts []string) (names []string) {
	taken := map[string]bool{}
	for _, h := range hosts {
		word := fileWord(h)
		word = word[:min(len(word), longestFile-scriptEnding-len(filepath.Base(path))-1)]
		name := path + "-" + word
		for n := 2; taken[strings.ToLower(name)] || taken[strings.ToLower(name+".undo")]; n++ {
			name = fmt.Sprintf("%s-%s-%d", path, word, n)
		}
		taken[strings.ToLower(name)], taken[strings.ToLower(name+".undo")] = true, true
		names = append(names, name)
	}
	return names
}

// fileWord is the name of a host as part of a file's name.
func fileWord(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.', r == '_':
			return r
		}
		return '_'
	}, name)
}

// writeScripts writes the advice as scripts, and says which.
func (c *tuneCmd) writeScripts(e *env, doc *measure.Document) error {
	all := scriptsOf(doc, c.Script)
	var names []string
	for _, s := range all {
		if err := replaceFile("--script", s.path, []byte(s.text)); err != nil {
			return err
		}
		names = append(names, s.path)
	}
	switch {
	case c.JSON:
	case len(names) == 0:
		fmt.Fprintln(e.Out, "scripts: none, there is nothing that a command could change")
	default:
		fmt.Fprintf(e.Out, "scripts: %s\n", strings.Join(names, " "))
	}
	return nil
}
