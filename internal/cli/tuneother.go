package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"thru/internal/bus"
	"thru/internal/cause"
	"thru/internal/cause/advise"
	"thru/internal/control"
	"thru/internal/engine/worker"
	"thru/internal/fault"
	"thru/internal/library"
	"thru/internal/measure"
	"thru/internal/node"
	"thru/internal/plan"
	"thru/internal/tune"
	"thru/internal/unit"
)

// adviseFile prints the advice that follows from a stored result. It measures and changes nothing.
func (c *tuneCmd) adviseFile(ctx context.Context, e *env) error {
	r, err := c.request(0)
	if err != nil {
		return err
	}
	only, err := onlyKnobs(c.Only)
	if err != nil {
		return err
	}
	out, err := c.wanted()
	if err == nil {
		err = writable("--script", c.Script)
	}
	if err != nil {
		return err
	}
	sources, err := e.reader().Open(ctx, []string{c.What})
	if err != nil {
		return err
	}
	defer library.CloseSources(sources)
	found, err := e.reader().Results(ctx, sources[0], stated(r.Link))
	if err != nil {
		return err
	}
	if len(found) != 1 {
		return fault.Usagef("write it to its own file", "%s has %d results, and tune takes one", c.What, len(found))
	}
	doc := found[0].Doc
	if !library.Measured(doc) && len(doc.Findings) == 0 && len(doc.Gates) == 0 {
		return fault.Failf("measure first: thru test END POINT --json > result.json", "%s: it has no result for advice", fault.Named(c.What))
	}
	doc.Command, doc.Arguments, doc.Ended, doc.Error = "tune", e.Arguments(), "", nil
	doc.Tuning = adviceOf(doc, advise.Seen{Only: only})
	e.archive.Off = true // nothing was measured
	return c.outcome(e, doc, e.outcome(doc, out, nil))
}

// adviceOf returns a dry run on a document. For a tuned document it advises on the final state.
func adviceOf(doc *measure.Document, seen advise.Seen) *measure.Tuning {
	t := &measure.Tuning{DryRun: true, Only: seen.Only}
	if old := doc.Tuning; old != nil && len(old.Journey) > 0 {
		t.Journey = old.Journey[len(old.Journey)-1:]
		t.Journey[0].Attempt = nil
	}
	t.Advice = cause.Propose(doc, seen)
	return t
}

// script is a script file to write.
type script struct{ path, text string }

// scriptsOf returns the scripts of all hosts with something to change.
func scriptsOf(doc *measure.Document, path string) (all []script) {
	if doc.Tuning == nil {
		return nil
	}
	hosts := unit.Mapped(doc.EndPoints, func(p measure.EndPoint) string { return p.Name })
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

// Lengths of file names in bytes: most file systems take 255.
const (
	longestFile   = 255
	longestScript = 180 // of --script: leaves room for a host and a suffix
	scriptEnding  = len("-99.undo.ps1") + len(part)
)

// scriptNames returns the names of the hosts' scripts, without suffixes. It numbers a name that would equal
// another host's, also if only the case differs.
func scriptNames(path string, hosts []string) (names []string) {
	taken := map[string]bool{}
	for _, h := range hosts {
		word := fileName(h, '_')
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

// writeScripts writes the advice as scripts and prints their names.
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
		fmt.Fprintln(e.Out, "scripts: none, no advice can be carried out by a command")
	default:
		fmt.Fprintf(e.Out, "scripts: %s\n", strings.Join(names, " "))
	}
	return nil
}

// rollback undoes thru's changes at an end point, according to the journal there. On this host it works in
// this process, without an agent.
func (c *tuneCmd) rollback(ctx context.Context, e *env) error {
	doc := e.document()
	doc.Tuning = &measure.Tuning{Restored: []measure.Changed{}}
	point, changed, err := c.restore(ctx, e)
	if err != nil {
		return err
	}
	for i := range changed {
		changed[i].EndPoint = point.Name
	}
	doc.EndPoints = []measure.EndPoint{point}
	doc.Tuning.Restored = append(doc.Tuning.Restored, changed...)
	doc.ElapsedNs = int64(time.Since(doc.StartedAt))
	if err = notRestored(changed); err != nil {
		doc.Error = control.Describe(err)
	}
	return e.outcome(doc, forms{formFlags: c.formFlags}, err)
}

// restore restores the settings, here or at an end point.
func (c *tuneCmd) restore(ctx context.Context, e *env) (measure.EndPoint, []measure.Changed, error) {
	if c.What == "" || c.What == control.Local {
		changed, err := restoreHere(e, c.State)
		return measure.EndPoint{Name: control.Local, Thru: e.Version}, changed, err
	}
	if c.State != "" {
		return measure.EndPoint{}, nil, fault.Usagef("run it there: thru tune --rollback --state DIR", "--state is a folder of this host, and %s is another", c.What)
	}
	end, closeEnd, err := e.dial(plan.Request{}, c.Port, c.esxFlags).EndPoint(ctx, c.What)
	if err != nil {
		return measure.EndPoint{}, nil, err
	}
	defer closeEnd()
	if end.Foreign || end.Client == nil {
		return measure.EndPoint{}, nil, fault.Usagef("run thru there", "cli: thru does not run at %s, and has changed nothing there", c.What)
	}
	point := measure.EndPoint{Name: end.Name, Addr: end.Addr, Thru: end.Hello.Thru}
	reply, err := bus.Call(ctx, end.Client, bus.Rollback, bus.Empty{})
	if err != nil {
		return point, nil, fmt.Errorf("cli: rolling back %s: %w", end.Name, err)
	}
	return point, reply.Changed, nil
}

// restoreHere restores the settings of this host; it needs only the journal.
func restoreHere(e *env, state string) ([]measure.Changed, error) {
	prog, err := worker.Self()
	if err != nil {
		return nil, err
	}
	defer prog.Close()
	if state, err = stateFolder(state, ""); err != nil {
		return nil, err
	}
	tuner, err := node.OpenTuner(e.Version, prog, state, nil)
	if err != nil {
		return nil, err
	}
	changed, err := tuner.Rollback()
	if err == nil && len(changed) == 0 {
		e.Line(lookedAt(state))
	}
	return changed, err
}

// lookedAt words which journals were searched.
func lookedAt(state string) string {
	s := "looked for journals in " + filepath.Join(state, node.TuneFolder)
	if tune.Possible() != nil {
		s += "; root has its own: run it as root"
	}
	return s
}

// notRestored returns an error that names what is not restored; nil if all is.
func notRestored(changed []measure.Changed) error {
	if tune.Restored(changed) {
		return nil
	}
	var names, said []string
	settings, journals, failed := 0, 0, false
	for _, c := range changed {
		failed = failed || c.Outcome == measure.Failed
		if c.Knob == "" { // of a journal that is unreadable, in whole or in part
			journals++
			continue
		}
		if settings++; c.Outcome != measure.Undone && c.Outcome != measure.Settled {
			names = append(names, strings.TrimSpace(c.Knob+" "+c.Interface))
		}
	}
	if n := len(names); n > 0 {
		said = append(said, fmt.Sprintf("not as before: %s (%d of %s)", strings.Join(names, ", "), n, unit.Plural(settings, "setting")))
	}
	if journals > 0 {
		said = append(said, unit.Plural(journals, "journal")+" not read completely")
	}
	hint := "set the old value yourself if you want it: another program has changed it since, so thru leaves it"
	if failed {
		hint = "remove the cause, and run it again: what failed stays in the journal"
	}
	return fault.Failf(hint, "cli: %s", strings.Join(said, "; "))
}
