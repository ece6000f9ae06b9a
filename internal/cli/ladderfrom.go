package cli

import (
	"context"
	"fmt"
	"strings"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/hypervisor"
	"thru/internal/measure"
	"thru/internal/place"
	"thru/internal/plan/planfile"
	"thru/internal/remote"
)

// rungsFrom fills the rungs of a ladder by what hypervisors tell: with the end
// points that are named, or with machines that it chooses.
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

// leadsThere tells of a name that is an end point by itself: one that was joined,
// or one of a controller.
func (e *env) leadsThere(name string) bool {
	joined, _ := e.isJoined(name)
	return joined || strings.Contains(name, "/")
}

// filled measures the rungs that the end points fill by what hypervisors tell of them.
func (c *ladderCmd) filled(ctx context.Context, e *env) error {
	switch {
	case len(c.Hypervisor) == 0:
		return fault.Usagef("say who knows how they lie: --hypervisor vsphere://USER@HOST; or say it yourself: --same-host A,B --same-lan A,C --across A,D",
			"%s are several end points", strings.Join(append([]string{c.What}, c.More...), " "))
	case c.Resume.Asked:
		return fault.Usagef("thru ladder --resume goes on with the last ladder", "--resume goes without end points")
	}
	if others := e.TypedBut(ofPlans...); len(others) > 0 {
		return fault.Usagef("thru plan new ladder --from URL writes the plan, into which it goes (docs/plan.md)", "%s not go with several end points", flagsDo(others))
	}
	request, err := c.read()
	if err != nil {
		return err
	}
	r := c.run(e)
	d := remote.Dialer{Network: e.network, Port: bus.DefaultPort}
	if err := r.connectBelow(ctx, d, nil); err != nil {
		return err
	}
	l, err := e.rungsFrom(ctx, r.below, append([]string{c.What}, c.More...))
	if err != nil {
		r.closeBelow()
		return err
	}
	e.sayRungs(l)
	r.name, r.text, r.options.Hypervisors = "ladder", planfile.LadderFrom(l, c.Hypervisor, request.Duration), nil
	if err := r.read(ctx); err != nil {
		r.closeBelow()
		return err
	}
	return r.run(ctx)
}

// sayRungs tells which rungs were found, and why others were not.
func (e *env) sayRungs(l place.Ladder) {
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

// fromHypervisors writes a ladder of what hypervisors tell.
func (c *planNewCmd) fromHypervisors(ctx context.Context, e *env) error {
	if c.Kind != "ladder" {
		return fault.Usagef("thru plan new ladder --from URL", "--from is of a ladder, not of the plan %s", c.Kind)
	}
	ends, file := c.Ends, c.File
	if file != "" && file != "-" && !isYAML(file) {
		ends, file = append([]string{file}, ends...), ""
	}
	f := belowFlags{Hypervisor: c.From, vsphereFlags: c.vsphereFlags}
	sources, closeAll, err := f.onto(e, remote.Dialer{Network: e.network, Port: bus.DefaultPort}).Below(ctx, c.From)
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
