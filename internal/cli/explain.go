package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"thru/internal/cli/console"
	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/plan/option"
	"thru/internal/remote"
	"thru/internal/report"
	"thru/internal/unit"
)

// explainTime is the time to measure each direction before the experiments.
const explainTime = 5 * time.Second

type explainCmd struct {
	What   []string      `arg:"" optional:"" name:"end-point|file" help:"An end point as for test, or files: captures (pcap or pcapng: one, or one of each end), results of thru (--json) and of iperf3 (-J), - for stdin; of a ladder, the lowest rung first. A joined name is an end point; else an existing file, or a name that ends in .json, is a file. Without any: this machine against itself."`
	Budget time.Duration `group:"How much" name:"budget" type:"time" like:"60 or 2m" none:"a budget of 0 s leaves no time" default:"60s" placeholder:"SECONDS" help:"Time for all tests together, such as 30 or 2m (default: 60)."`
	flowFlags
	captureFlags
	hypervisorFlags
	endFlags
}

// takes implements asks.
func (*explainCmd) takes() (string, map[string]option.Flag) {
	return flowOptions + endOptions + "udp bitrate streams capture capture-packets " + farOptions, map[string]option.Flag{
		"udp": {Help: "Explain UDP; 1 Mb/s per stream unless -b is given."}, "streams": {Help: "Parallel connections (default 1, which shows the limit best)."},
	}
}

// Run explains an end point by experiments, or stored results.
func (c *explainCmd) Run(ctx context.Context, e *env) error {
	stored, err := c.stored(e)
	if err != nil {
		return err
	}
	if stored {
		return c.explainFiles(ctx, e)
	}
	return c.explainPath(ctx, e, append(c.What, "")[0])
}

// explainPath measures and runs experiments.
func (c *explainCmd) explainPath(ctx context.Context, e *env, endPoint string) error {
	r, err := c.read(e, endPoint)
	if err != nil {
		return err
	}
	s, err := e.open(ctx, e.dial(r, c.Port, c.esxFlags), endPoint, &r, c.formFlags, c.hypervisorFlags)
	if err != nil {
		return err
	}
	defer s.close()
	p, err := plan.Explain(r)
	if err != nil {
		return err
	}
	if err := s.capture(c.captureFlags, p); err != nil {
		return err
	}
	s.runner.Watch = newTrials(e, p, s.ends, c.Budget)
	doc, err := s.runner.Explain(ctx, p, probing(r), c.Budget)
	return s.end(doc, err)
}

// read converts the flags to a plan.Request. It checks the request before connecting anything, so usage
// errors come at once.
func (c *explainCmd) read(e *env, endPoint string) (r plan.Request, err error) {
	if r, err = c.request(explainTime); err != nil {
		return r, err
	}
	if err := c.packets(&r, c.has("capture")); err != nil {
		return r, err
	}
	if r.Engine, err = remote.EngineOf(endPoint); err != nil {
		return r, err
	}
	r.Local, r.Peer = control.Local, cmp.Or(endPoint, control.Local)
	p, err := plan.Explain(r)
	if err == nil && p.Time() > c.Budget {
		err = fault.Usagef("take a longer --budget, a shorter -t, or one direction: -R or --one-way",
			"a budget of %s is too short: the traffic to explain takes %s", unit.Duration(int64(c.Budget)), unit.Duration(int64(p.Time())))
	}
	return r, err
}

// trials shows on a terminal which experiment runs. It implements control.Observer.
type trials struct {
	*console.Board
	until time.Time
}

func newTrials(e *env, p plan.Plan, ends remote.Pair, budget time.Duration) *trials {
	v := &trials{Board: e.Board(false), until: time.Now().Add(budget)}
	directions := "both directions"
	if len(p.Steps) == 1 {
		directions = p.Steps[0].Label
	}
	v.Line("%s: %s, then experiments to find the cause; at most %s", theEnds(ends), directions, unit.Duration(int64(budget)))
	return v
}

// Hear implements control.Observer.
func (v *trials) Hear(e control.Event) {
	switch e := e.(type) {
	case control.StepBegun:
		v.step(e.Label, e.Specs[0])
	case control.Explained:
		v.Line("%s", report.StepLine(e.Step, v.Width))
	default:
		v.Board.Hear(e)
	}
}

// step shows the experiment and the time left.
func (v *trials) step(label string, s measure.Spec) {
	left := max(time.Until(v.until), 0).Round(time.Second)
	v.Checking(fmt.Sprintf("%s, %s -> %s; %s left", label, s.From, s.To, unit.Duration(int64(left))))
}
