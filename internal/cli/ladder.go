package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"thru/internal/bus"
	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/hypervisor"
	"thru/internal/measure"
	"thru/internal/place"
	"thru/internal/plan"
	"thru/internal/plan/option"
	"thru/internal/plan/planfile"
	"thru/internal/remote"
	"thru/internal/runs"
)

type ladderCmd struct {
	What     string   `arg:"" optional:"" name:"end-point|plan" help:"An end point as for test (one rung), or a plan file with rungs. A joined name is an end point; else an existing file, or a name that ends in .yaml, is a plan. Without any: the rung of this machine against itself."`
	More     []string `arg:"" optional:"" name:"end-points" help:"More end points: --hypervisor finds where each is placed, and so which rung it forms with the first."`
	SameHost string   `group:"Rungs" name:"same-host" type:"once" placeholder:"A,B" help:"Two end points on one hypervisor: what its virtual switch carries."`
	SameLAN  string   `group:"Rungs" name:"same-lan" type:"once" placeholder:"A,C" help:"Two end points on different hypervisors of one LAN."`
	Across   string   `group:"Rungs" name:"across" type:"once" placeholder:"A,D" help:"Two end points in different data centers: what their interconnect carries. With any of these the first end point is also measured against itself."`
	VCPUs    bool     `group:"Rungs" name:"vcpus" help:"Measure how the rate scales with 1, 2, 4 and 8 CPUs (vCPU study), on this machine or with an end point."`
	trafficFlags
	hypervisorFlags
	Port   int  `group:"Ends and directions" short:"p" default:"5200" help:"Control port of the end point."`
	DryRun bool `group:"Run" name:"dry-run" help:"With rungs or a plan: print what would run, and for how long."`
	runFlags
}

// Run measures one rung, of this machine or of the path to an end point, or several rungs to compare.
func (c *ladderCmd) Run(ctx context.Context, e *env) error {
	switch {
	case len(c.rungs()) == 0 && !c.VCPUs && len(c.More) > 0:
		return c.filled(ctx, e)
	case len(c.rungs()) > 0 && c.What != "":
		return fault.Usagef("name it in --across HERE,THERE, or leave the flags out", "%s does not go with %s", c.What, fault.Few(e.TypedOf("--same-host", "--same-lan", "--across")))
	case c.VCPUs && len(c.More) > 0:
		return fault.Usagef("name one", "--vcpus takes one end point")
	case len(c.rungs()) > 0 && c.VCPUs:
		return fault.Clashing("run one, then the other", "--vcpus", "--same-host --same-lan --across")
	case len(c.rungs()) > 0, c.VCPUs:
		return c.compare(ctx, e)
	case c.Resume.Asked && c.What == "", e.isPlan(c.What):
		return c.planned(ctx, e)
	}
	if these := e.TypedOf(ofRuns...); len(these) > 0 {
		return fault.Usagef("leave it out, or name rungs: --across A,B", "%s not go with a single rung", flagsDo(these))
	}
	return c.single(ctx, e)
}

// rungFlag is a flag that names the two ends of a rung.
type rungFlag struct{ flag, rung, pair string }

// rungs returns the rungs that flags name, the lowest first.
func (c *ladderCmd) rungs() []rungFlag {
	return slices.DeleteFunc([]rungFlag{
		{"--same-host", plan.RungSwitch, c.SameHost}, {"--same-lan", plan.RungLAN, c.SameLAN}, {"--across", plan.RungInterconnect, c.Across},
	}, func(x rungFlag) bool { return x.pair == "" })
}

// isPlan distinguishes a plan file from an end point. A joined name is an end point even if this folder has a
// file of that name.
func (e *env) isPlan(name string) bool {
	if name == "" || name == control.Local || strings.Contains(name, "://") {
		return false
	}
	if name == "-" {
		return true
	}
	joined, exists := e.isJoined(name)
	return !joined && (exists || isYAML(name))
}

// isYAML reports whether a name has the extension of a plan file.
func isYAML(name string) bool {
	kind := strings.ToLower(filepath.Ext(name))
	return kind == ".yaml" || kind == ".yml"
}

// single measures one rung between this process and an end point.
func (c *ladderCmd) single(ctx context.Context, e *env) error {
	r, err := c.read()
	if err != nil {
		return err
	}
	if r.Engine, err = remote.EngineOf(c.What); err != nil {
		return err
	}
	r.Local, r.Peer = control.Local, cmp.Or(c.What, control.Local)
	if _, err := plan.Ladder(r); err != nil { // before connecting anything
		return err
	}
	s, err := e.open(ctx, e.dial(r, c.Port, c.esxFlags), c.What, &r, c.formFlags, c.hypervisorFlags)
	if err != nil {
		return err
	}
	defer s.close()
	s.runner.Gating.Force = c.Force
	p, err := plan.Ladder(r)
	if err != nil {
		return err
	}
	view := newRunView(e, p, s.ends.All(), c.silent)
	view.Line("%s", describePlan(p, s.ends))
	s.runner.Watch = view
	doc, err := s.runner.Run(ctx, p)
	view.stepOver()
	return s.end(doc, err)
}

// takes implements asks.
func (*ladderCmd) takes() (string, map[string]option.Flag) {
	return flowOptions + "repeat precision reverse interval " + farOptions, map[string]option.Flag{"reverse": {Help: "From the end point to here; in a rung, from the second to the first."}}
}

// read converts the flags to a plan.Request.
func (c *ladderCmd) read() (plan.Request, error) {
	if c.has("window") {
		return plan.Request{}, fault.Usagef("a ladder measures the default window and 800K; for one window: thru test -w SIZE", "-w does not go with ladder")
	}
	return c.request(plan.LadderTime)
}

// planned runs a plan file with rungs, or resumes a run.
func (c *ladderCmd) planned(ctx context.Context, e *env) error {
	if others := e.TypedBut(ofPlans...); len(others) > 0 {
		return fault.Usagef("write it into the plan (`thru help plan`); "+withPlan, "%s not go with a plan", flagsDo(others))
	}
	r := c.run(e)
	r.options.Time = c.take("time")
	return r.whole(ctx, c.What)
}

// ofRuns are the flags for plans and for several rungs only. ofPlans are all flags that a plan allows; the
// plan itself sets the rest.
var (
	ofRuns  = []string{"--only", "--go-on", "--resume", "--keep", "--dry-run"}
	ofPlans = slices.Concat([]string{"-t", "--link-rate", "--force", "--hypervisor", "-i", "--store", "--no-store", "--label"}, formNames(), ofRuns)
)

const withPlan = "with a plan take only -t, --link-rate, --force, --hypervisor, the flags of output and of a run"

// run returns the run of a plan with the flags that every plan allows.
func (c *ladderCmd) run(e *env) *planRun {
	r := &planRun{
		env: e, command: "ladder", flags: c.runFlags, under: c.hypervisorFlags, dry: c.DryRun, forms: forms{formFlags: c.formFlags},
		options: runs.Options{Only: c.Only, Force: c.Force, Hypervisors: c.Hypervisor},
	}
	if rates := c.take("link_rate"); rates != "" {
		r.options.LinkRate = strings.Split(rates, ",")
	}
	return r
}

// compare measures several rungs, or one with a growing number of CPUs.
func (c *ladderCmd) compare(ctx context.Context, e *env) error {
	r := c.run(e)
	request, err := c.read()
	if err != nil {
		return err
	}
	a := runs.Rungs{VCPUs: c.VCPUs, Request: request}
	if c.VCPUs {
		a.Request.Local, a.Request.Peer = control.Local, cmp.Or(c.What, control.Local)
	} else if a.Rungs, err = c.pairs(); err != nil {
		return err
	}
	text, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("cli: keeping the ladder: %w", err)
	}
	r.text = append(text, '\n')
	return r.whole(ctx, "ladder")
}

// pairs returns the rungs that flags name, the lowest first.
func (c *ladderCmd) pairs() ([]plan.Rung, error) {
	var rungs []plan.Rung
	for _, x := range c.rungs() {
		from, to, ok := strings.Cut(x.pair, ",")
		if from, to = strings.TrimSpace(from), strings.TrimSpace(to); !ok || from == "" || to == "" || strings.Contains(to, ",") || from == to {
			return nil, fault.Usagef(x.flag+" takes two end points, such as "+x.flag+" vm1,vm2", "%s %s: not two end points", x.flag, x.pair)
		}
		if len(rungs) == 0 {
			rungs = append(rungs, plan.Rung{Name: plan.RungLocalhost, Pair: between(from, from)})
		}
		rungs = append(rungs, plan.Rung{Name: x.rung, Pair: between(from, to)})
	}
	return rungs, nil
}

// between returns a pair. If one end is this machine, it opens the connections, since nobody can connect to
// it; of two other ends either may.
func between(from, to string) plan.Pair {
	local := from == control.Local || to == control.Local
	return plan.Pair{From: from, To: to, DialTo: to == control.Local && from != to, Either: !local && from != to}
}

// rungsFrom fills the rungs of a ladder from the inventories of hypervisors: with the named end points, or
// with machines that it chooses.
func (e *env) rungsFrom(ctx context.Context, sources []hypervisor.Source, ends []string) (place.Ladder, error) {
	p := e.Board(false)
	defer p.Clear()
	var all []measure.Inventory
	for _, s := range sources {
		p.Checking("reading " + s.Name())
		v, err := s.Inventory(ctx, nil, nil)
		if err != nil {
			return place.Ladder{}, fault.New(fault.Code(err), fault.Hint(err), "reading %s: %w", s.Name(), err)
		}
		all = append(all, v)
	}
	if len(ends) == 0 {
		return place.Propose(all)
	}
	return place.Fill(ends, all, e.leadsThere)
}

// leadsThere reports whether a name is an end point by itself: a joined one, or one of a controller.
func (e *env) leadsThere(name string) bool {
	joined, _ := e.isJoined(name)
	return joined || strings.Contains(name, "/")
}

// filled measures the rungs that hypervisors report for the end points.
func (c *ladderCmd) filled(ctx context.Context, e *env) error {
	switch {
	case len(c.Hypervisor) == 0:
		return fault.Usagef("name the hypervisor that knows their placement: --hypervisor vsphere://USER@HOST; or state it: --same-host A,B --same-lan A,C --across A,D",
			"%s are several end points", strings.Join(append([]string{c.What}, c.More...), " "))
	case c.Resume.Asked:
		return fault.Usagef("thru ladder --resume continues the last ladder", "--resume takes no end points")
	}
	if others := e.TypedBut(ofPlans...); len(others) > 0 {
		return fault.Usagef("write a plan by thru plan new ladder --from URL, and put it there (`thru help plan`)", "%s not go with several end points", flagsDo(others))
	}
	r := c.run(e)
	request, err := c.read()
	if err != nil {
		return err
	}
	d := remote.Dialer{Network: e.network, Port: bus.DefaultPort}
	if err := r.connectHypervisors(ctx, d, nil); err != nil {
		return err
	}
	l, err := e.rungsFrom(ctx, r.hypervisors, append([]string{c.What}, c.More...))
	if err != nil {
		r.closeHypervisors()
		return err
	}
	e.printRungs(l)
	r.text, r.options.Hypervisors = planfile.LadderFrom(l, c.Hypervisor, request.Duration), nil
	return r.whole(ctx, "ladder")
}

// printRungs prints which rungs were found, and why others were not.
func (e *env) printRungs(l place.Ladder) {
	for _, r := range l.Rungs {
		switch {
		case !r.Filled():
			e.Line(fmt.Sprintf("no rung %s: %s", planfile.RungName(r.Kind), r.Why))
		case r.From != r.To:
			e.Line(fmt.Sprintf("%s: %s and %s, %s: %s", planfile.RungName(r.Kind), r.From, r.To, r.Kind, r.Why))
		}
	}
	for _, s := range l.Spare {
		e.Line(fmt.Sprintf("%s is in no rung: %s", s.Name, s.What))
	}
}

// fromHypervisors writes a ladder plan from the inventories of hypervisors.
func (c *planNewCmd) fromHypervisors(ctx context.Context, e *env) error {
	if c.Kind != "ladder" {
		return fault.Usagef("thru plan new ladder --from URL", "--from is for a ladder, not for the plan %s", c.Kind)
	}
	ends, file := c.Ends, c.File
	if file != "" && file != "-" && !isYAML(file) {
		ends, file = append([]string{file}, ends...), ""
	}
	f := hypervisorFlags{Hypervisor: c.From, vsphereFlags: c.vsphereFlags}
	sources, closeAll, err := f.onto(e, remote.Dialer{Network: e.network, Port: bus.DefaultPort}).Hypervisors(ctx, c.From)
	if err != nil {
		return err
	}
	defer closeAll()
	l, err := e.rungsFrom(ctx, sources, ends)
	if err != nil {
		return err
	}
	return c.write(e, file, planfile.LadderFrom(l, c.From, 0))
}
