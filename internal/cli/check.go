package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"thru/internal/cause"
	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/library"
	"thru/internal/plan"
	"thru/internal/plan/option"
	"thru/internal/remote"
)

type checkCmd struct {
	EndPoint string `arg:"" optional:"" name:"end-point" help:"A joined name, HOST[:PORT], iperf3://HOST (one connection: it ends an iperf3 -s -1), or ssh://[USER@]HOST[:PORT] (Linux; only facts of ESXi, FreeBSD, illumos, macOS); without it only this machine."`
	gateFlags
	hypervisorFlags
	List bool `group:"Gates" name:"list" help:"List all gates and what they check, and exit."`
	Port int  `group:"Ends" short:"p" default:"5200" help:"Control port of the end point."`
	formFlags
	storeFlags
	asked
}

// takes implements asks.
func (*checkCmd) takes() (string, map[string]option.Flag) {
	return "streams version4 version6 bind bind-dev data-addr link-rate", map[string]option.Flag{
		"streams":   {Help: "Planned parallel connections."},
		"link-rate": {Group: "Gates", Help: "Rate that the path should carry, such as 10G (1G/l2: counted in frames, as shapers do)."},
	}
}

// gateFlags choose which gates to check.
type gateFlags struct {
	Only []string `group:"Gates" name:"only" placeholder:"GATE" list:"thru check --list" help:"Check only these gates (thru check --list)."`
	Skip []string `group:"Gates" name:"skip" placeholder:"GATE" list:"thru check --list" help:"Skip these gates."`
}

// gating converts the flags to control.Gating and refuses unknown ids.
func (f gateFlags) gating() (control.Gating, error) {
	g := control.Gating{Only: splitList(f.Only), Skip: splitList(f.Skip)}
	left := g.Only
	if len(left) == 0 {
		for _, r := range cause.Gates() {
			left = append(left, r.ID)
		}
	}
	if !slices.ContainsFunc(left, func(id string) bool { return !slices.Contains(g.Skip, id) }) {
		return g, fault.Usagef("leave --skip out", "--only and --skip leave no gate")
	}
	_, err := cause.Filter(nil, g.Only, g.Skip)
	return g, err
}

// splitList splits comma-separated lists.
func splitList(lists []string) []string {
	words := strings.Split(strings.ReplaceAll(strings.Join(lists, ","), " ", ""), ",")
	return slices.DeleteFunc(words, func(s string) bool { return s == "" })
}

// Run reads the facts of this host, of the end point and of the path between them, and judges them.
func (c *checkCmd) Run(ctx context.Context, e *env) error {
	if c.List {
		return c.list(e)
	}
	g, r, err := c.read(e)
	if err != nil {
		return err
	}
	d := e.dialer(r, c.Port)
	d.Checks = true
	s, err := e.open(ctx, d, c.EndPoint, &r, c.formFlags, c.hypervisorFlags)
	if other := (*remote.OtherSystem)(nil); errors.As(err, &other) {
		return c.bySSH(ctx, e, &control.Runner{Version: e.Version, Link: stated(r.Link), Gating: g})
	}
	if err != nil {
		return err
	}
	defer s.close()
	s.runner.Gating, s.runner.Watch = g, e.Board(false)
	doc, err := s.runner.Check(ctx, probing(r), r.Streams)
	return s.end(doc, err)
}

// read converts the flags to terms of plan and control, before connecting anything.
func (c *checkCmd) read(e *env) (*control.Gating, plan.Request, error) {
	g, err := c.gating()
	if err != nil {
		return nil, plan.Request{}, err
	}
	g.Costs, g.Paths = library.KnownCosts(), library.OpenPaths()
	r, err := c.request(0)
	if err == nil {
		_, err = remote.EngineOf(c.EndPoint)
	}
	return &g, r, err
}

// list prints the catalogue of gates.
func (c *checkCmd) list(e *env) error {
	rules := cause.Gates()
	if c.JSON {
		type entry struct {
			ID        string   `json:"id"`
			Title     string   `json:"title"`
			About     string   `json:"judges"`
			Warns     string   `json:"warns,omitempty"`
			Fails     string   `json:"fails,omitempty"`
			Why       string   `json:"why"`
			Cause     string   `json:"cause,omitempty"`
			Checklist []string `json:"checklist,omitempty"`
		}
		all := []entry{}
		for _, r := range rules {
			all = append(all, entry{r.ID, r.Title, r.About, r.Warns, r.Fails, r.Why, r.Cause, r.Checklist})
		}
		return printJSON(e.Out, all)
	}
	for _, r := range rules {
		if _, err := fmt.Fprintf(e.Out, "%-22s %s: %s\n", r.ID, r.Title, r.About); err != nil {
			return fmt.Errorf("cli: writing the gates: %w", err)
		}
	}
	return nil
}

// bySSH reads a host that runs no thru, such as an ESXi server, with its own commands over the system's ssh,
// and judges its facts. It changes nothing there.
func (c *checkCmd) bySSH(ctx context.Context, e *env, runner *control.Runner) error {
	begin := time.Now()
	out, err := c.wanted()
	if err != nil {
		return err
	}
	p := e.Board(false)
	defer p.Clear()
	facts, destination, err := factsByCommands(ctx, c.EndPoint, p.Checking)
	if err != nil {
		return err
	}
	doc, err := runner.CheckFacts(c.EndPoint, destination, facts, begin)
	return e.concluded(doc, out, p, err)
}
