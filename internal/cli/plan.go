package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/plan/planfile"
	"thru/internal/report/fleet"
	"thru/internal/runs"
)

type planCmd struct {
	New   planNewCmd   `cmd:"" help:"Write a commented plan to start from."`
	Check planCheckCmd `cmd:"" help:"Check a plan file: print its errors with line and column, or what it would run."`
}

type planNewCmd struct {
	Kind string   `arg:"" help:"Kind of plan: ladder (what each layer costs), mesh (every host with every other), sweep (streams, windows, sizes), dci (a link between two data centers), or ab, lag, many-to-one, vms, latency, requests, udp, fleet, netqueue (a setting that takes a reboot, A/B)."`
	File string   `arg:"" optional:"" help:"Output file (default: stdout). An existing file is not overwritten."`
	Ends []string `arg:"" optional:"" name:"end-point" help:"For a ladder with --from: its end points, by the names or addresses of their virtual machines, the first one in every rung; without any, thru chooses some."`
	From []string `name:"from" sep:"none" placeholder:"URL" help:"Fill the rungs of a ladder from a hypervisor: vsphere://USER@HOST (vCenter or ESXi), ssh://root@HOST (ESXi), or an end point that runs QEMU. Can be repeated."`
	vsphereFlags
}

// Run writes a starter plan.
func (c *planNewCmd) Run(ctx context.Context, e *env) error {
	if len(c.From) > 0 {
		return c.fromHypervisors(ctx, e)
	}
	if len(c.Ends) > 0 {
		return fault.Usagef("leave them out, or name the hypervisor that knows them: --from vsphere://USER@HOST", "end points need --from")
	}
	text, err := planfile.Starter(c.Kind)
	if err != nil {
		return err
	}
	return c.write(e, c.File, text)
}

// write writes the text to the file, or to stdout.
func (c *planNewCmd) write(e *env, file string, text []byte) error {
	if file == "" || file == "-" {
		_, err := e.Out.Write(text)
		return err
	}
	if err := newFileOnly(file, text, 0o644); err != nil {
		return err
	}
	_, err := fmt.Fprintf(e.Out, "%s is written. Edit its end points, then: thru plan check %[1]s, and thru run %[1]s\n", file)
	return err
}

// newFileOnly writes a file that must not exist yet.
func newFileOnly(path string, text []byte, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if errors.Is(err, os.ErrExist) {
		return fault.Usagef("name another file, or remove it first", "%s exists already", path)
	}
	if err == nil {
		_, err = f.Write(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fault.Usagef("name a file in a writable folder", "writing the file: %w", err)
	}
	return nil
}

type planCheckCmd struct {
	File string `arg:"" help:"A plan file, or - for stdin."`
	JSON bool   `name:"json" help:"Print what it would run as JSON."`
}

// Run checks a plan file. It asks a controller for the hosts that the plan selects.
func (c *planCheckCmd) Run(ctx context.Context, e *env) error {
	r := &planRun{env: e, command: "run", forms: forms{formFlags: formFlags{JSON: c.JSON}}}
	if err := r.begin(ctx, c.File); err != nil {
		return err
	}
	p, err := r.expanded(unconnected)
	if err != nil {
		return err
	}
	if c.JSON {
		return r.list(p)
	}
	r.printWarnings(p)
	_, err = fmt.Fprintf(e.Out, "%s is valid\n%s\n", c.File, fleet.PlanLine(p))
	return err
}

// unconnected returns what is known of an end point before it is connected: nothing.
func unconnected(string) planfile.Found { return planfile.Found{} }

// printWarnings prints the warnings of a plan.
func (r *planRun) printWarnings(p plan.Plan) {
	for _, w := range p.Warnings {
		r.env.Line("warning: " + w)
	}
}

// listedPlan is what --dry-run --json prints.
type listedPlan struct {
	Thru      string        `json:"thru_version"`
	Name      string        `json:"name"`
	SHA256    string        `json:"sha256"` // of the file
	Order     string        `json:"order,omitempty"`
	Runs      int           `json:"runs"` // steps times repeats, at most
	Duration  int64         `json:"duration_ns"`
	EndPoints []listedEnd   `json:"end_points"`
	Steps     []listedStep  `json:"steps"`
	Warnings  []string      `json:"warnings,omitempty"`
	Error     *listedNoFail `json:"error"`
}

// listedNoFail is always null: a wrong plan gives a document with its error.
type listedNoFail struct{}

type listedEnd struct {
	Name   string            `json:"name"`
	At     string            `json:"at,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

type listedStep struct {
	Label    string         `json:"label"`
	Rung     string         `json:"rung,omitempty"`
	Axes     []measure.Axis `json:"axes,omitempty"`
	AtOnce   bool           `json:"at_once,omitempty"` // its pairs run at the same time
	Duration int64          `json:"duration_ns"`       // of one run
	Specs    []measure.Spec `json:"specs"`
}

// list prints what would run.
func (r *planRun) list(p plan.Plan) error {
	if !r.forms.JSON {
		r.printWarnings(p)
		return fleet.PlanList(r.env.Out, p, r.env.text())
	}
	l := listedPlan{
		Thru: r.env.Version, Name: p.Name, SHA256: runs.Checksum(r.text), Order: p.Order, Runs: p.Runs(), Duration: int64(p.Time()),
		EndPoints: []listedEnd{}, Steps: []listedStep{}, Warnings: p.Warnings,
	}
	for _, x := range p.EndPoints {
		l.EndPoints = append(l.EndPoints, listedEnd{x.Name, x.At, x.Labels})
	}
	for _, s := range p.Steps {
		l.Steps = append(l.Steps, listedStep{s.Label, s.Rung, s.Axes, s.Independent, int64(s.Time()), s.Specs})
	}
	return printJSON(r.env.Out, l)
}
