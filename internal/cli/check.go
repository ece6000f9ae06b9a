package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"thru/internal/cause"
	"thru/internal/cli/console"
	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/host/platform"
	"thru/internal/library"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/remote"
)

type checkCmd struct {
	EndPoint string `arg:"" optional:"" name:"end-point" help:"A name that was joined, HOST[:PORT], iperf3://HOST (one connection, which an iperf3 -s -1 takes for its client), or ssh://[USER@]HOST[:PORT] (Linux; ESXi, FreeBSD, illumos, macOS: facts alone); without it this machine alone."`
	gateFlags
	belowFlags
	LinkRate string `group:"Gates" name:"link-rate" type:"once" placeholder:"RATE" help:"Rate that the path is wanted to carry, such as 10G (1G/l2: counted in frames, as shapers do)."`
	List     bool   `group:"Gates" name:"list" help:"Print all gates with what they judge, and end."`
	Port     int    `group:"Ends" short:"p" default:"5200" help:"Control port of the end point."`
	formFlags
	storeFlags
	asked
}

// takes implements asks.
func (*checkCmd) takes() (names string, help map[string]string) {
	return "streams version4 version6 bind bind-dev data-addr", map[string]string{"streams": "Parallel connections that are planned."}
}

// gateFlags choose gates.
type gateFlags struct {
	Only []string `group:"Gates" name:"only" placeholder:"GATE" help:"Only these gates (thru check --list)."`
	Skip []string `group:"Gates" name:"skip" placeholder:"GATE" help:"All but these gates."`
}

// gating turns the flags into control's terms; the ids are known to exist.
func (f gateFlags) gating() (control.Gating, error) {
	g := control.Gating{Only: splitList(f.Only), Skip: splitList(f.Skip)}
	for _, x := range []struct {
		flag        string
		given, kept []string
	}{{"--only", f.Only, g.Only}, {"--skip", f.Skip, g.Skip}} {
		if len(x.given) > 0 && len(x.kept) == 0 {
			return g, fault.Usagef("`thru check --list` names all", "%s names no gate", x.flag)
		}
	}
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

// splitList reads lists with commas.
func splitList(lists []string) []string {
	words := strings.Split(strings.ReplaceAll(strings.Join(lists, ","), " ", ""), ",")
	return slices.DeleteFunc(words, func(s string) bool { return s == "" })
}

// Run reads the facts of this host, of the end point and of the path between
// them, and judges them.
func (c *checkCmd) Run(ctx context.Context, e *env) error {
	if c.List {
		return c.list(e)
	}
	runner, r, err := c.runner(e)
	if err != nil {
		return err
	}
	out, err := c.wanted()
	if err != nil {
		return err
	}
	var doc *measure.Document
	doc, err = c.byAgents(ctx, e, runner, r)
	var other *remote.OtherSystem
	if errors.As(err, &other) {
		doc, err = c.bySSH(ctx, e, runner)
	}
	if doc == nil {
		return err
	}
	doc.Arguments, doc.Labels = e.Arguments(), e.archive.Labels
	perr := e.print(doc, out)
	e.store(doc, c.JSON)
	if perr != nil && err == nil {
		return perr
	}
	if err == nil {
		return nil
	}
	if !c.JSON && fault.Code(err) != fault.Verdict { // the gates have said it
		e.ErrorLines(err)
	}
	return console.Printed(err)
}

// runner is what judges, before anything is connected.
func (c *checkCmd) runner(e *env) (_ *control.Runner, r plan.Request, err error) {
	g, err := c.gating()
	if err != nil {
		return nil, r, err
	}
	link, err := linkRate(c.LinkRate)
	if err != nil {
		return nil, r, err
	}
	if r, err = c.request(0); err != nil {
		return nil, r, err
	}
	if c.EndPoint == "" && slices.Contains(e.Args, "") {
		return nil, r, fault.Usagef("leave it out to check this machine, or say `local`", "the end point is empty")
	}
	g.Costs, g.Paths = library.KnownCosts(), library.OpenPaths()
	return &control.Runner{Version: e.Version, Link: link, Gating: &g}, r, nil
}

// byAgents checks this machine, and a peer and the path to it.
func (c *checkCmd) byAgents(ctx context.Context, e *env, runner *control.Runner, r plan.Request) (*measure.Document, error) {
	if _, err := remote.EngineOf(c.EndPoint); err != nil {
		return nil, err
	}
	how := control.Probing{Source: r.BindAddr, Device: r.BindDev, DataAddr: r.DataAddr, Family: r.Family}
	d := remote.Dialer{Network: e.network, Family: how.Family, Port: c.Port, Device: r.BindDev, Source: r.BindAddr, DataAddr: r.DataAddr, Checks: true}
	ends, closeAll, err := c.above(ctx, e, d, c.EndPoint)
	if err != nil {
		return nil, err
	}
	defer closeAll()
	runner.Ends, runner.Below = ends.All(), ends.Below
	p := e.Board(false)
	defer p.Clear()
	runner.Watch = p
	return runner.Check(ctx, how, r.Streams)
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
		b, err := json.MarshalIndent(all, "", "  ")
		if err != nil {
			return fmt.Errorf("cli: writing the gates: %w", err)
		}
		_, err = fmt.Fprintf(e.Out, "%s\n", b)
		return err
	}
	for _, r := range rules {
		if _, err := fmt.Fprintf(e.Out, "%-22s %s: %s\n", r.ID, r.Title, r.About); err != nil {
			return fmt.Errorf("cli: writing the gates: %w", err)
		}
	}
	return nil
}

// bySSH reads a host on which no thru runs, such as an ESXi server, by its own
// commands over the system's ssh, and judges its facts. It changes nothing there.
func (c *checkCmd) bySSH(ctx context.Context, e *env, runner runnerOfFacts) (*measure.Document, error) {
	begin := time.Now()
	destination, port, err := remote.SSHTarget(c.EndPoint)
	if err != nil {
		return nil, err
	}
	p := e.Board(false)
	defer p.Clear()
	p.Checking("logging in at " + destination)
	r := platform.SSH(destination, port)
	defer r.Close()
	system, err := platform.Detect(ctx, r)
	if err != nil {
		return nil, err
	}
	p.Checking("reading " + destination + " (" + system + ")")
	facts, err := platform.Read(ctx, system, r)
	if err != nil {
		return nil, err
	}
	return runner.CheckFacts(c.EndPoint, destination, facts, begin)
}

// runnerOfFacts is the part of control.Runner that bySSH needs.
type runnerOfFacts interface {
	CheckFacts(name, addr string, facts measure.Facts, begin time.Time) (*measure.Document, error)
}
