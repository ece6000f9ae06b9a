package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"thru/internal/bus"
	"thru/internal/cause/knob"
	"thru/internal/cli/console"
	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/node"
	"thru/internal/plan"
	"thru/internal/plan/option"
	"thru/internal/remote"
	"thru/internal/report"
	"thru/internal/report/tuning"
	"thru/internal/tune"
	"thru/internal/unit"
)

// mostAA limits the comparisons of a state with itself.
const mostAA = 1000

type tuneCmd struct {
	What     string        `arg:"" optional:"" name:"end-point|result.json" help:"An end point as for test, or a stored result, for advice only. Without it this machine against itself."`
	DryRun   bool          `group:"Tuning" name:"dry-run" help:"Change nothing: measure, and print what to change, why, the expected gain, the commands, and how to undo them."`
	Script   string        `group:"Tuning" name:"script" type:"newfile" placeholder:"FILE" help:"With --dry-run: also write the advice as FILE-ENDPOINT.sh, and FILE-ENDPOINT.undo.sh that undoes it."`
	Yes      bool          `group:"Tuning" name:"yes" help:"Do not ask before changes that may cut the connection to a host. They are reverted if it is lost."`
	Target   int64         `group:"Tuning" name:"target" type:"rate" like:"9G or 950M" none:"a target of 0 is always met" placeholder:"RATE" help:"Stop when each direction carries this rate, such as 9G (exit code 3 if it does not, 4 if a busy host prevents a verdict)."`
	Budget   time.Duration `group:"Tuning" name:"budget" type:"time" like:"5m or 600" none:"a budget of 0 s leaves no time" default:"10m" placeholder:"TIME" help:"Time for the whole tuning, such as 5m (default: 10m). No change starts that would exceed it; one under way at its end is reverted."`
	Only     []string      `group:"Tuning" name:"only" placeholder:"KNOB" list:"thru tune --list" help:"Change only these (thru tune --list)."`
	Try      []string      `group:"Tuning" name:"try" sep:"none" placeholder:"KNOB=VALUE" help:"Try this setting first: KNOB=VALUE[@END POINT][:INTERFACE], such as tcp-rmem='4096 131072 8388608'@esx2 or gro=on:eth0. Can be repeated."`
	AA       *int          `group:"Tuning" name:"aa" placeholder:"N" help:"Change nothing, and compare the state N times with itself: shows how reliable the comparisons are."`
	Rollback bool          `group:"Tuning" name:"rollback" help:"Undo what thru has changed at the end point (without one: here), from its journal, also after a crash or reboot."`
	State    string        `group:"Tuning" name:"state" type:"place" placeholder:"DIR" help:"With --rollback: the state folder of a thru serve with --state."`
	List     bool          `group:"Tuning" name:"list" help:"Print the knobs of both ends with their values, and which of them can be set."`
	flowFlags
	endFlags
}

// takes implements asks.
func (*tuneCmd) takes() (string, map[string]option.Flag) {
	return flowOptions + endOptions + "streams", nil
}

// Run tunes a path, or does what --rollback, --list or a file ask for.
func (c *tuneCmd) Run(ctx context.Context, e *env) error {
	if err := c.sensible(e); err != nil {
		return err
	}
	switch {
	case c.Rollback:
		return c.rollback(ctx, e)
	case c.List:
		return c.list(ctx, e)
	case e.isFile(c.What):
		return c.adviseFile(ctx, e)
	}
	return c.tunePath(ctx, e)
}

// sensible refuses flags that do not go together, before connecting anything.
func (c *tuneCmd) sensible(e *env) error {
	apart := unit.Trues(c.Rollback, c.List, c.DryRun, c.AA != nil)
	others := e.TypedBut(append(formNames(), "--dry-run", "--script", "--only", "--yes", "--link-rate", "--store", "--no-store", "--label")...)
	file := e.isFile(c.What)
	switch {
	case apart > 1:
		return fault.Clashing("run one after the other", "--dry-run --aa --list --rollback", "")
	case c.AA != nil && (*c.AA < 1 || *c.AA > mostAA):
		return fault.Usagef(fmt.Sprintf("--aa takes 1 to %d; 60 are enough", mostAA), "--aa %d is out of range", *c.AA)
	case c.AA != nil && (len(c.Try) > 0 || len(c.Only) > 0 || c.Target > 0):
		return fault.Clashing("leave it out: --aa changes nothing", "--try --only --target", "--aa")
	case c.State != "" && !c.Rollback:
		return fault.Usagef("thru tune --rollback --state DIR", "--state needs --rollback")
	case len(filepath.Base(c.Script)) > longestScript:
		return fault.Usagef("take a shorter name", "--script: the scripts' names would be too long for a file system")
	case c.Script != "" && !c.DryRun && !file:
		return fault.Usagef("thru tune --dry-run --script FILE", "--script needs --dry-run")
	case file && (c.Rollback || c.List || c.AA != nil):
		return fault.Usagef("thru tune END POINT", "%s not go with a file, which is only read", flagsDo(e.TypedOf("--rollback", "--list", "--aa")))
	case file && len(others) > 0:
		return fault.Usagef("with a file take only --only, --script, --link-rate and the flags of output", "%s not go with a file, which is only read", flagsDo(others))
	}
	return c.stateThere()
}

// stateThere fails if the folder of --state does not exist: a mistyped one would look like a host with
// nothing to undo.
func (c *tuneCmd) stateThere() error {
	if c.State == "" || c.What != "" && c.What != control.Local {
		return nil
	}
	if info, err := os.Stat(c.State); err != nil {
		return fault.Failf("give the folder of `thru serve --state`", "cli: reading --state: %w", err)
	} else if !info.IsDir() {
		return fault.Usagef("give the folder of `thru serve --state`", "--state %s: not a folder", c.State)
	}
	return nil
}

// tunePath measures, changes settings, and keeps the changes that help.
func (c *tuneCmd) tunePath(ctx context.Context, e *env) error {
	r, t, err := c.read(e)
	if err != nil {
		return err
	}
	if err := writable("--script", c.Script); err != nil {
		return err
	}
	d := e.dial(r, c.Port, c.esxFlags)
	d.Tunes = !c.DryRun
	s, err := e.open(ctx, d, c.What, &r, c.formFlags, hypervisorFlags{})
	if err != nil {
		return err
	}
	defer s.close()
	p, err := plan.Tune(withCPUs(r, s.ends.Local.Hello.CPUs, s.ends.PeerCPUs()))
	if err != nil {
		return err
	}
	if t.Try, err = readSettings(c.Try, []string{control.Local, s.ends.Peer.Name}); err != nil {
		return err
	}
	view := newTuneView(ctx, e, s.ends, t, c.Yes)
	view.begin(p.Time())
	s.runner.Watch, t.Accept = view, view.accept
	doc, err := s.runner.Tune(ctx, p, probing(r), t)
	return c.outcome(e, doc, s.end(doc, err))
}

// outcome writes the scripts of the printed advice, and checks the target.
func (c *tuneCmd) outcome(e *env, doc *measure.Document, err error) error {
	if err != nil && (fault.Code(err) != fault.Verdict && fault.Code(err) != fault.Inconclusive || c.has("link_rate")) { // a link rate is no target
		return err
	}
	if c.Script != "" {
		if err := c.writeScripts(e, doc); err != nil {
			return err
		}
	}
	if t := doc.Tuning; t != nil && t.TargetBps > 0 && !t.DryRun && !tuning.MeetsTarget(doc) {
		code := fault.Verdict
		if tuning.BusyForTarget(doc) != "" {
			code = fault.Inconclusive
		}
		return console.Printed(fault.New(code, "", "the target of %s is not met", unit.Rate(t.TargetBps)))
	}
	return nil
}

// read converts the flags to terms of plan and control. It checks them before connecting anything, so usage
// errors come at once.
func (c *tuneCmd) read(e *env) (r plan.Request, t control.Tuning, err error) {
	if r, err = c.request(plan.TuneTime); err != nil {
		return r, t, err
	}
	if r.Engine, err = remote.EngineOf(c.What); err != nil {
		return r, t, err
	}
	t = control.Tuning{Budget: c.Budget, TargetBps: float64(c.Target), DryRun: c.DryRun, Seed: uint64(time.Now().UnixNano()), Owner: "thru tune at " + node.Hostname()}
	if c.AA != nil {
		t.AA = *c.AA
	}
	if t.Only, err = onlyKnobs(c.Only); err != nil {
		return r, t, err
	}
	if _, err = readSettings(c.Try, []string{control.Local, cmp.Or(c.What, control.Local)}); err != nil {
		return r, t, err
	}
	r.Local, r.Peer = control.Local, cmp.Or(c.What, control.Local)
	p, err := plan.Tune(withCPUs(r, 2, 2))
	if err == nil && p.Time() > t.Budget {
		err = fault.Usagef("take a longer --budget, a shorter -t, or one direction: -R or --one-way",
			"a budget of %s is too short: measuring the state before the tuning takes %s", unit.Duration(int64(t.Budget)), unit.Duration(int64(p.Time())))
	}
	return r, t, err
}

// onlyKnobs returns the knobs of comma-separated lists.
func onlyKnobs(lists []string) ([]string, error) {
	ids := splitList(lists)
	for _, id := range ids {
		if _, err := findKnob("--only", id); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// findKnob returns the knob with that id; the error for an unknown one has a hint.
func findKnob(flag, id string) (knob.Knob, error) {
	k, ok := knob.Find(id)
	if ok {
		return k, nil
	}
	ids := unit.Mapped(knob.Table(), func(x knob.Knob) string { return x.ID })
	hint := "`thru tune --list` lists those of a host"
	if near := fault.Nearest(strings.ToLower(id), ids); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return k, fault.Usagef(hint, "%s: there is no knob %q", flag, id)
}

// readSettings parses the settings to try first: KNOB=VALUE[@END POINT][:INTERFACE].
func readSettings(texts, ends []string) (all []measure.Setting, err error) {
	for _, text := range texts {
		id, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fault.Usagef("--try takes KNOB=VALUE[@END POINT][:INTERFACE], such as gro=on@esx2:eth0", "--try %s: no value", text)
		}
		k, err := findKnob("--try", strings.TrimSpace(id))
		if err != nil {
			return nil, err
		}
		if k.Scope == knob.OfTest {
			return nil, fault.Usagef("give it as an option: -P, -w, -l, --lean, -C or -A", "--try %s: it is an option of the test, not a setting of a host", text)
		}
		s := measure.Setting{Knob: k.ID}
		if err := locate(&s, value, ends); err != nil {
			return nil, fault.Usagef("--try takes KNOB=VALUE[@END POINT][:INTERFACE]; the end points are "+strings.Join(compactSame(ends), " and "), "--try %s: %w", text, err)
		}
		if s.Value == "" && k.ID != knob.RouteCongestion { // "" removes this setting
			return nil, fault.Usagef("--try takes KNOB=VALUE[@END POINT][:INTERFACE]", "--try %s: no value", text)
		}
		if err := tune.CheckValue(s.Knob, s.Value); err != nil {
			return nil, fault.Usagef("see the present value in `thru tune --list`, in the same form", "--try %s: %w", text, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// locate splits a value from its end point and interface. Names of end points may contain @ and colons, so it
// compares with the whole names.
func locate(s *measure.Setting, text string, ends []string) error {
	value, where, located := strings.Cut(text, "@")
	if !located {
		s.Value, s.Interface, _ = strings.Cut(text, ":")
		s.Value = strings.TrimSpace(s.Value)
		return nil
	}
	s.Value = strings.TrimSpace(value)
	longest := slices.Clone(ends)
	slices.SortFunc(longest, func(a, b string) int { return len(b) - len(a) })
	for _, name := range longest {
		rest, ok := strings.CutPrefix(where, name)
		if ok && (rest == "" || rest[0] == ':') {
			s.EndPoint, s.Interface = name, strings.TrimPrefix(rest, ":")
			return nil
		}
	}
	return fmt.Errorf("there is no end point %s here", where)
}

// compactSame names this machine once if it is both ends.
func compactSame(ends []string) []string { return slices.Compact(slices.Clone(ends)) }

// list prints the knobs of both ends.
func (c *tuneCmd) list(ctx context.Context, e *env) error {
	r, err := c.request(plan.TuneTime)
	if err != nil {
		return err
	}
	d := e.dial(r, c.Port, c.esxFlags)
	d.VMkernel = false // iperf3 has no settings
	ends, closeAll, err := d.Pair(ctx, c.What)
	if err != nil {
		return err
	}
	defer closeAll()
	doc := e.document()
	both := []*control.EndPoint{ends.Local}
	if ends.Peer != ends.Local {
		both = append(both, ends.Peer)
	}
	for _, end := range both {
		point, err := knobsOf(ctx, end, len(both) == 1)
		if err != nil {
			return err
		}
		doc.EndPoints = append(doc.EndPoints, point)
	}
	doc.ElapsedNs = int64(time.Since(doc.StartedAt))
	if c.JSON {
		return report.JSON(e.Out, doc)
	}
	return tuning.Knobs(e.Out, doc.EndPoints, e.text())
}

// knobsOf asks an end point for the knobs of the host and of its interfaces that are up; of loopback if it is
// tuned against itself.
func knobsOf(ctx context.Context, end *control.EndPoint, alone bool) (measure.EndPoint, error) {
	point := measure.EndPoint{Name: end.Name, Addr: end.Addr, Thru: end.Hello.Thru}
	if end.Foreign || end.Client == nil {
		point.NoTune = "thru does not run there"
		return point, nil
	}
	facts, err := bus.Call(ctx, end.Client, bus.Facts, bus.FactsRequest{})
	if err != nil {
		return point, fmt.Errorf("cli: reading the facts of %s: %w", end.Name, err)
	}
	var names []string
	for _, x := range facts.Facts.Interfaces {
		loopback := x.Kind != nil && *x.Kind == "loopback"
		if x.Up != nil && *x.Up && (alone || !loopback) {
			names = append(names, x.Name)
		}
	}
	reply, err := bus.Call(ctx, end.Client, bus.Knobs, bus.KnobsRequest{Interfaces: names})
	if err != nil {
		return point, fmt.Errorf("cli: reading the knobs of %s: %w", end.Name, err)
	}
	point.Knobs, point.NoTune = reply.Knobs, reply.NoTune
	return point, nil
}
