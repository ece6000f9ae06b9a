package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/alecthomas/kong"

	"thru/internal/bus"
	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/hypervisor"
	"thru/internal/library"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/plan/option"
	"thru/internal/plan/planfile"
	"thru/internal/remote"
	"thru/internal/report/fleet"
	"thru/internal/runs"
	"thru/internal/unit"
)

type runCmd struct {
	Plan     string   `arg:"" optional:"" name:"plan" help:"A plan file (thru help plan; thru plan new writes one to start from), - for stdin. With --resume it may be left out."`
	DryRun   bool     `group:"Run" name:"dry-run" help:"Print what would run, and for how long. Connects only to a controller, if the plan selects its hosts."`
	Time     string   `group:"Run" short:"t" placeholder:"SECONDS" help:"Try the plan out: limit each run to this time, without a ramp and with the fewest repeats."`
	LinkRate []string `group:"Output" name:"link-rate" sep:"," placeholder:"RATE" help:"Nominal rate of the path, such as 10G, instead of the plan's; RUNG=RATE for one rung of a ladder."`
	StandBy  string   `group:"Run" name:"stand-by" placeholder:"CONTROLLER" help:"Finish the runs of this controller's fleet whose command was killed or lost, one after the other, until Ctrl-C (NATS cluster with JetStream)."`
	Force    bool     `group:"Run" name:"force" help:"Measure although a gate fails (thru check), and note it in the result."`
	formFlags
	storeFlags
	runFlags
	hypervisorFlags
}

// runFlags are the flags of all commands that run a plan.
type runFlags struct {
	Only   []string   `group:"Run" name:"only" sep:"none" placeholder:"WORD" help:"Run only steps with the word in label or rung, or with the value, such as streams=4. Targets of other steps are left out. Can be repeated."`
	GoOn   bool       `group:"Run" name:"go-on" help:"If an end point cannot be reached at the start, measure the other pairs; the exit code is then 1."`
	Resume resumeFlag `group:"Run" name:"resume" help:"Continue the last interrupted run, of this plan if it is named; --resume=RUN continues that one."`
	esxFlags
	Keep string `group:"Output" name:"keep" type:"path" placeholder:"FOLDER" help:"Folder of plan and document during the run (default: in the state folder, which holds the last 20 runs)."`
}

// resumeFlag is a flag with an optional value: --resume, --resume=RUN.
type resumeFlag struct {
	Asked bool
	Run   string
}

// IsBool implements kong.BoolMapperValue: the value is not a separate argument.
func (resumeFlag) IsBool() bool { return true }

// Decode implements kong.MapperValue.
func (r *resumeFlag) Decode(ctx *kong.DecodeContext) error {
	r.Asked = true
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		return nil
	}
	if r.Run = ctx.Scan.Pop().String(); r.Run == "" {
		return errors.New("the name of the run is empty")
	}
	return nil
}

// Run runs a plan file, or resumes a run.
func (c *runCmd) Run(ctx context.Context, e *env) error {
	r := &planRun{
		env: e, command: "run", flags: c.runFlags, under: c.hypervisorFlags, dry: c.DryRun, forms: forms{formFlags: c.formFlags},
		options: runs.Options{Time: c.Time, LinkRate: c.LinkRate, Only: c.Only, Force: c.Force, Hypervisors: c.Hypervisor},
	}
	if c.StandBy != "" {
		return c.standBy(ctx, e)
	}
	if c.Plan == "" && !c.Resume.Asked {
		return fault.Usagef("thru plan new mesh my.yaml writes one; thru run my.yaml runs it", "run needs a plan file")
	}
	return r.whole(ctx, c.Plan)
}

// planRun is one run of a plan, from its text to its document.
type planRun struct {
	env      *env
	command  string
	dry      bool
	forms    forms
	flags    runFlags
	under    hypervisorFlags
	password func(owner string, none error) func() (string, error) // for the hypervisors of all blocks
	options  runs.Options

	name        string // of the plan, as given
	text        []byte
	plan        expander
	journal     *runs.Journal
	hypervisors []hypervisor.Source
	unbelow     func()               // closes them; nil: there are none
	manualSteps []measure.ManualStep // what the user was asked to do
	before      *measure.Document    // results so far: of the run that is resumed, or of the previous blocks

	fleets map[string][]planfile.Host // hosts of the controllers that the plan names; nil: not asked yet
	shared *bus.SharedRun             // nil: other processes do not know the run
	taken  *takenRun                  // nil: this process began the run

	concluded bool // the result was printed
}

// whole reads the plan and runs it.
func (r *planRun) whole(ctx context.Context, file string) error {
	if err := r.begin(ctx, file); err != nil {
		r.closeHypervisors()
		return err
	}
	return r.run(ctx)
}

// expander builds the plan from what found returns about the end points.
type expander func(found func(endPoint string) planfile.Found) (plan.Plan, error)

// begin reads the plan of a file, or of the run to resume.
func (r *planRun) begin(ctx context.Context, file string) error {
	if _, err := r.forms.wanted(); err != nil {
		return err
	}
	if r.flags.Resume.Asked {
		dir, err := r.folder(ctx, file)
		if err != nil {
			return err
		}
		return r.open(ctx, dir)
	}
	r.name = file
	if err := r.readText(ctx, file); err != nil {
		return err
	}
	return r.read(ctx)
}

// readText reads the text of the plan, unless flags have given it.
func (r *planRun) readText(ctx context.Context, file string) (err error) {
	if r.text == nil {
		r.text, err = r.env.readPlan(ctx, file)
	}
	return err
}

// open reopens the run of a folder with its original options.
func (r *planRun) open(ctx context.Context, dir string) (err error) {
	if r.journal, r.text, err = runs.Resume(dir); err != nil {
		return err
	}
	h := r.journal.Head
	r.before = r.journal.Before
	if !h.Unfinished() {
		r.journal.Close()
		return fault.Usagef("thru report "+filepath.Join(dir, runs.DocumentName)+" shows it", "the run %s is complete", h.Run)
	}
	if !r.options.Empty() && !r.options.SameSteps(h.Options) {
		r.journal.Close()
		return fault.Usagef("leave -t, --only and --link-rate out: it continues as it began", "the run %s began with other flags", h.Run)
	}
	h.Options.Hypervisors = append(h.Options.Hypervisors, r.options.Hypervisors...)
	h.Options.Force = h.Options.Force || r.options.Force // a failed gate may have ended the run
	r.journal.Head.Options = h.Options
	r.name, r.options, r.command = h.Plan, h.Options, h.Command
	if len(r.env.archive.Labels) == 0 {
		r.env.archive.Labels = h.Labels
	}
	if err := r.read(ctx); err != nil {
		r.journal.Close()
		return err
	}
	return nil
}

// read parses the text of the plan.
func (r *planRun) read(ctx context.Context) error {
	if rungs, ok := runs.ReadRungs(r.text); ok {
		r.plan = rungs.Plan
		return nil
	}
	file, err := planfile.Parse(r.name, r.text)
	if err != nil {
		return err
	}
	if text := r.options.Time; text != "" {
		d, err := option.Positive(unit.ParseDuration)(text)
		if err != nil {
			return option.Misread("-t", text, "-t takes a value such as 10, 0.5 or 1m", err)
		}
		file.Hasten(d)
	}
	if r.fleets == nil {
		if r.fleets, err = r.env.network.FleetHosts(ctx, file.Controllers()); err != nil {
			return err
		}
	}
	r.plan = func(found func(string) planfile.Found) (plan.Plan, error) { return file.Expand(r.fleets, found) }
	return nil
}

// folder returns the folder of the run to resume: the one that --keep or --resume=RUN names, or the last one
// of the plan, or of any plan.
func (r *planRun) folder(ctx context.Context, file string) (string, error) {
	kept, err := runs.Folder()
	if err != nil {
		return "", err
	}
	name := r.flags.Resume.Run
	if _, err := os.Stat(filepath.Join(kept, filepath.Base(file), runs.HeadName)); err == nil && name == "" && file != "" {
		name, file = file, "" // `thru run --resume RUN` parses RUN as the plan
	}
	var sum string
	if file != "" {
		if err := r.readText(ctx, file); err != nil {
			return "", err
		}
		sum = runs.Checksum(r.text)
	}
	return runs.Find(kept, r.flags.Keep, name, file, sum)
}

// maxPlan limits the text that is read, in bytes.
const maxPlan = planfile.MaxBytes

// readPlan reads the text of a plan file.
func (e *env) readPlan(ctx context.Context, file string) ([]byte, error) {
	if file == "" {
		return nil, fault.Usagef("name a plan file, or - for stdin", "the name of the plan is empty")
	}
	return fault.Until(ctx, file, func() ([]byte, error) {
		var in io.Reader = e.In
		if file != "-" {
			f, err := library.OpenFile(file)
			if err != nil {
				return nil, e.noPlan(file, err)
			}
			defer f.Close()
			in = f
		}
		if _, err := library.FileSize(in, file); err != nil {
			return nil, err
		}
		text, err := io.ReadAll(io.LimitReader(in, maxPlan+1))
		if err != nil {
			return nil, e.noPlan(file, err)
		}
		return text, nil
	})
}

// noPlan returns the error of a file that cannot be read, and how to get one.
func (e *env) noPlan(file string, err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	if !errors.Is(err, os.ErrNotExist) {
		return fault.Usagef("name a plan file, or - for stdin", "%s: %w", fault.Named(file), err)
	}
	return fault.Usagef("thru plan new mesh "+filepath.Base(file)+" writes one to start from", "%s: %w", fault.Named(file), err)
}

// expanded returns the plan as it will run, with the options of the command line.
func (r *planRun) expanded(found func(string) planfile.Found) (plan.Plan, error) {
	p, err := r.plan(found)
	if err != nil {
		return p, err
	}
	p.Command = r.command
	if r.options.Force {
		p.Gates = plan.GatesForce
	}
	if err := runs.Only(&p, r.options.Only); err != nil {
		return p, err
	}
	return p, runs.SetLinks(&p, r.options.LinkRate) // only of the remaining rungs: a rate for another rung is an error
}

// run connects the end points, measures, and prints the result.
func (r *planRun) run(ctx context.Context) error {
	defer func() { r.journal.Close(); r.closeHypervisors() }()
	p, err := r.expanded(unconnected)
	if err != nil {
		return err
	}
	if r.dry {
		return r.list(p)
	}
	if len(p.ManualSteps) > 0 {
		return r.runBlocks(ctx, p)
	}
	ends, closeAll, err := r.connect(ctx, p)
	if err != nil {
		return err
	}
	defer closeAll()
	if p, err = r.sized(ends); err != nil {
		return err
	}
	if err := r.keep(p); err != nil {
		return err
	}
	owned, release := r.share(ctx, p, ends)
	defer release()
	doc, err := r.measure(owned, p, ends, 0)
	return r.conclude(ctx, doc, r.disowned(doc, err))
}

// sized returns the plan for the connected end points.
func (r *planRun) sized(ends map[string]*control.EndPoint) (plan.Plan, error) {
	return r.expanded(func(name string) planfile.Found {
		if r.taken != nil {
			return r.taken.Found[name] // else the steps could differ from those that were run
		}
		return foundAt(ends[name])
	})
}

// foundAt returns what a plan depends on at an end point.
func foundAt(e *control.EndPoint) planfile.Found {
	if e == nil {
		return planfile.Found{}
	}
	return planfile.Found{CPUs: e.Hello.CPUs, Engine: e.Engine}
}

// connect connects all end points. With --go-on the pairs of an unreachable end point fail, and the others
// are measured.
func (r *planRun) connect(ctx context.Context, p plan.Plan) (map[string]*control.EndPoint, func(), error) {
	v := newRunView(r.env, p, nil, false)
	if len(r.manualSteps) < 2 { // between blocks it was printed already
		v.Line("%s", fleet.PlanLine(p))
	}
	d := remote.Dialer{Network: r.env.network, Family: family(p), Port: bus.DefaultPort, VMkernel: true, Firewall: r.flags.Firewall}
	if err := r.connectHypervisors(ctx, d, p.Hypervisors); err != nil {
		return nil, nil, err
	}
	ends, missing, closeAll := d.ConnectAll(ctx, p.EndPoints)
	err := ctx.Err()
	if err == nil && len(missing) > 0 && (!r.flags.GoOn || len(ends) == 0) {
		err = remote.UnreachedError(missing, len(p.EndPoints))
	}
	if err == nil {
		err = remote.SameAgent(ends)
	}
	if err != nil {
		closeAll()
		r.closeHypervisors()
		return nil, nil, err
	}
	for _, m := range missing {
		ends[m.Name] = &control.EndPoint{Name: m.Name, Down: m.Err}
	}
	return ends, closeAll, nil
}

// family returns the IP version of the traffic.
func family(p plan.Plan) int {
	for _, s := range p.Steps {
		for _, x := range s.Specs {
			return x.Family
		}
	}
	return 0
}

// keep opens the journal of a new run. Without --keep a journal that cannot be created does not stop the
// measurement.
func (r *planRun) keep(p plan.Plan) error {
	if r.journal != nil {
		text := fmt.Sprintf("continues %s: %d of %d steps are done", r.journal.Head.Run, r.journal.Head.Done, r.journal.Head.Steps)
		if d := r.journal.Before; d != nil && slices.ContainsFunc(d.Cells, hasFailed) {
			text += "; failed steps run again"
		}
		r.env.Line(text)
		return nil
	}
	j, err := runs.Begin(r.flags.Keep, r.text, runs.Head{Command: r.command, Plan: r.name, Options: r.options, Labels: r.env.archive.Labels, Steps: p.Runs()})
	switch {
	case err == nil:
		r.journal = j
	case r.flags.Keep != "":
		return fault.New(fault.Code(err), fault.Hint(err), "--keep: %w", err)
	default:
		r.env.Line("warning: this run cannot be continued if it is interrupted: " + fault.Plain(err.Error()))
	}
	return nil
}

// hasFailed reports whether a cell has a run with an error.
func hasFailed(c measure.Cell) bool {
	return slices.ContainsFunc(c.Runs, func(x measure.Run) bool { return x.Error != nil && !x.Error.Interrupted })
}

// measure runs the plan until the given number of turns is done; 0: all.
func (r *planRun) measure(ctx context.Context, p plan.Plan, ends map[string]*control.EndPoint, until int) (*measure.Document, error) {
	view := newRunView(r.env, p, ends, false)
	runner := control.Runner{Version: r.env.Version, Ends: ends, Watch: view, Until: until, Hypervisors: r.hypervisors, Link: stated(p.Link)}
	if p.Gates != plan.GatesOff {
		runner.Gating = library.QuickGates(p.Gates == plan.GatesForce)
	}
	runner.Before = r.before
	if r.journal != nil {
		r.journal.Warn = func(text string) { view.Clear(); r.env.Line(text) }
		runner.Saved, runner.Planned = r.journal.Step, r.journal.Planned(p)
	} else if r.manualSteps != nil {
		runner.Planned = &measure.Planned{Name: p.Name, Order: p.Order, ManualSteps: r.manualSteps}
	}
	if r.shared != nil {
		runner.Record = r.record
	}
	doc, err := runner.Run(ctx, p)
	view.stepOver()
	view.Clear()
	doc.Arguments = r.env.Arguments()
	doc.Warnings = append(append(doc.Warnings, p.Warnings...), remote.SameHost(ends)...)
	library.KeepCosts(doc)
	return doc, err
}

// conclude stores and prints the result.
func (r *planRun) conclude(ctx context.Context, doc *measure.Document, err error) error {
	r.concluded = true
	r.journal.End(doc, err)
	if err = r.continued(ctx, err); err != nil {
		doc.Error = control.Describe(err)
	}
	r.forms.kept = r.journal.Kept()
	r.env.archive.Instead = r.journal.Stored()
	err = r.env.outcome(doc, r.forms, err)
	r.journal.SetStored(r.env.archive.ID)
	r.endShared(ctx.Err() != nil)
	return err
}

// continued adds to an error the hint how to resume the run.
func (r *planRun) continued(ctx context.Context, err error) error {
	if hint := r.howToGoOn(ctx.Err() != nil || r.waits()); fault.Code(err) == fault.Failed && hint != "" {
		return fault.New(fault.Code(err), fault.Joined(fault.Hint(err), hint), "%w", err)
	}
	return err
}

// howToGoOn returns the command that resumes the run, "" if there is none.
func (r *planRun) howToGoOn(interrupted bool) string {
	does := "continues"
	if !interrupted {
		does = "repeats the failed steps"
	}
	switch j := r.journal; {
	case j.Kept() == "" || !j.Head.Unfinished():
		return ""
	case r.flags.Keep != "":
		return fmt.Sprintf("thru %s --resume --keep %s %s", r.command, r.flags.Keep, does)
	default:
		return fmt.Sprintf("thru %s --resume=%s %s", r.command, j.Head.Run, does)
	}
}
