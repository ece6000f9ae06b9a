package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"thru/internal/cli/console"
	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/hypervisor"
	"thru/internal/library"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/plan/option"
	"thru/internal/plan/planfile"
	"thru/internal/remote"
	words "thru/internal/report/watch"
	"thru/internal/unit"
	"thru/internal/watch"
	"thru/internal/watch/alert"
	"thru/internal/watch/judge"
	"thru/internal/watch/metrics"
	"thru/internal/watch/record"
	"thru/internal/watch/schedule"
)

// watchTime is how long a TCP turn measures, without its ramp.
const watchTime = 3 * time.Second

// watchOptions are the options of a test that a watch takes.
const watchOptions = "link-rate time streams window congestion version4 version6 dscp"

type watchCmd struct {
	What    []string      `arg:"" optional:"" name:"end-point|plan" help:"A plan file (thru help plan, key watch), or end points as for test: each is watched from this machine, in both directions. Without any: this machine against itself."`
	Budget  int64         `group:"How much" name:"budget" type:"size" like:"10G" placeholder:"SIZE" help:"Bytes that the watch may put on a host's link a day (default: 0.1% of what the link carries)."`
	TCP     int           `group:"How much" name:"tcp" default:"-1" placeholder:"N" help:"TCP tests of each direction a day; 0: none (default: what the budget allows, at most 24)."`
	For     time.Duration `group:"How much" name:"for" type:"time" like:"2h" placeholder:"TIME" help:"End after this time (default: with Ctrl-C)."`
	DryRun  bool          `group:"How much" name:"dry-run" help:"Print what would be measured, and the bytes a day."`
	Metrics string        `group:"Output" name:"metrics" placeholder:"ADDRESS:PORT" help:"Offer the figures to Prometheus (OpenMetrics) at http://ADDRESS:PORT/metrics."`
	OTLP    string        `group:"Output" name:"otlp" placeholder:"URL" help:"Push the figures to an OpenTelemetry collector (OTLP/HTTP, JSON)."`
	JSON    bool          `group:"Output" name:"json" help:"Print a JSON document for each sample and event, in a line of its own (schema thru.watch/1)."`
	State   string        `group:"Output" name:"state" type:"path" placeholder:"DIR" help:"Folder for what the next run goes on with (default: thru in the user's state folder)."`
	Port    int           `group:"Ends and directions" short:"p" default:"5200" help:"Control port of the end points."`
	hypervisorFlags
	storeFlags
	asked
}

// takes implements asks.
func (*watchCmd) takes() (string, map[string]option.Flag) {
	return watchOptions, map[string]option.Flag{
		"time": {Help: "Seconds that each TCP test measures (default 3)."}, "link-rate": {Group: "How much", Help: "Nominal rate of the paths, such as 10G: the budget and the size of TCP tests follow from it."},
	}
}

// Run watches the pairs until it is ended.
func (c *watchCmd) Run(ctx context.Context, e *env) error {
	c.JSON = logFlags{LogLevel: "info"}.begin(e, c.JSON)
	what, err := c.what(ctx, e)
	if err != nil {
		return err
	}
	tasks, needs, err := schedule.Fit(what.wish)
	if err != nil {
		return err
	}
	switch {
	case c.JSON && c.DryRun:
		return json.NewEncoder(e.Out).Encode(struct {
			Schema string          `json:"schema"`
			TCP    int             `json:"tcp_tests"` // a day, of all paths
			Needs  []schedule.Need `json:"needs"`
		}{record.Schema, turns(tasks), needs})
	case !c.JSON:
		if _, err := fmt.Fprintln(e.Out, words.Begun(what.wish, tasks, needs)); err != nil || c.DryRun {
			return err
		}
	}
	folder, err := stateFolder(c.State, "")
	if err != nil {
		return err
	}
	x, err := openWatching(ctx, &watchView{env: e, json: c.JSON, samples: c.JSON}, what, folder)
	if err != nil {
		return err
	}
	defer x.close()
	return c.watch(ctx, x)
}

// watch runs a watch as a command, and as a service: reload, signs of life.
func (c *watchCmd) watch(ctx context.Context, x *watching) error {
	stop, err := offer(c.Metrics, x.view.metrics.Families)
	if err != nil {
		return err
	}
	defer stop()
	if c.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.For)
		defer cancel()
	}
	if err := x.hosts.Check(ctx, x.now.check); err != nil {
		return err
	}
	wait := x.view.supervise(ctx, "watches "+unit.Plural(len(x.now.wish.Paths), "path"), func() { x.Alive(ctx) }, func(now command) error {
		what, err := now.(*watchCmd).what(ctx, x.view.env) // the same line names the same command
		if err != nil {
			return err
		}
		return x.again(ctx, what)
	})
	x.run(ctx, c.OTLP)
	wait()
	return x.view.end(x.Watch)
}

// turns returns the number of turns a day.
func turns(tasks []schedule.Task) (n int) {
	for _, t := range tasks {
		n += t.PerDay
	}
	return n
}

// toWatch is what a plan or the end points of the command line ask for.
type toWatch struct {
	wish    schedule.Wish
	judge   judge.Config
	keys    planfile.Watch
	traffic plan.Request // of TCP tests
	seed    uint64       // names the watch: of the same plan file, or the same end points
	check   []string     // names that no plan has checked
	at      map[string]string
	connect func(ctx context.Context, name string) (*control.EndPoint, func(), error)

	hypervisors func(ctx context.Context) ([]hypervisor.Source, func(), error) // nil: there are none
}

// what reads what to watch.
func (c *watchCmd) what(ctx context.Context, e *env) (t toWatch, err error) {
	if len(c.What) == 1 && e.isPlan(c.What[0]) {
		file, err := e.watchPlan(ctx, c.What[0])
		if err != nil {
			return t, err
		}
		return c.planned(ctx, e, file, "")
	}
	if t.traffic, err = c.request(watchTime); err != nil {
		return t, err
	}
	d := remote.Dialer{Network: e.network, Port: c.Port, Family: t.traffic.Family}
	t.check, t.hypervisors = c.What, c.connects(e, d, c.Hypervisor)
	t.keys = planfile.Watch{Probes: time.Second, TCP: c.TCP, Time: t.traffic.Duration, Budget: c.Budget, Load: planfile.DefaultLoad}
	if t.traffic.Link.RateBps == 0 && c.TCP == planfile.Auto {
		t.keys.TCP = 0
	}
	p, names := plan.Plan{Link: t.traffic.Link}, c.What
	if len(names) == 0 {
		names = []string{control.Local}
	}
	for _, name := range names {
		p.Steps = append(p.Steps, plan.Step{Specs: []measure.Spec{{From: control.Local, To: name}, {From: name, To: control.Local}}})
	}
	t.wish, t.judge = watch.OfPlan(p, t.keys, time.Local)
	t.seed = hashOf(strings.Join(c.What, "\n"))
	t.connect = func(ctx context.Context, name string) (*control.EndPoint, func(), error) {
		if name == control.Local {
			return d.Local(ctx, len(c.What) == 0)
		}
		return d.EndPoint(ctx, name)
	}
	return t, nil
}

// watchPlan reads a plan file.
func (e *env) watchPlan(ctx context.Context, name string) (*planfile.File, error) {
	text, err := e.readPlan(ctx, name)
	if err != nil {
		return nil, err
	}
	return planfile.Parse(name, text)
}

// planned returns what a plan asks for; flags go before its keys. End points without an address are hosts of the fleet, if there is one.
func (c *watchCmd) planned(ctx context.Context, e *env, file *planfile.File, fleet string) (t toWatch, err error) {
	keys := file.Watch()
	if t.traffic, err = c.request(keys.Time); err != nil {
		return t, err
	}
	keys.Time = t.traffic.Duration
	hosts, err := e.network.FleetHosts(ctx, file.Controllers())
	if err != nil {
		return t, err
	}
	p, err := file.Expand(hosts, nil)
	if err != nil {
		return t, err
	}
	if t.traffic.Link.RateBps != 0 {
		p.Link = t.traffic.Link
	}
	t.traffic.Link = p.Link
	keys.Budget = cmp.Or(c.Budget, keys.Budget)
	if c.TCP != planfile.Auto {
		keys.TCP = c.TCP
	}
	path, err := filepath.Abs(c.What[0])
	if err != nil {
		return t, fmt.Errorf("cli: naming the plan %s: %w", c.What[0], err)
	}
	t.keys, t.seed, t.at = keys, hashOf(path), map[string]string{}
	t.wish, t.judge = watch.OfPlan(p, keys, time.Local)
	for i, x := range p.EndPoints {
		if fleet != "" && x.At == x.Name && x.Name != control.Local {
			p.EndPoints[i].At = fleet + "/" + x.Name // as its hosts are selected
		}
		t.at[x.Name] = p.EndPoints[i].At + " " + x.DataAddr
	}
	d := remote.Dialer{Network: e.network, Port: c.Port, Family: t.traffic.Family}
	t.hypervisors = c.connects(e, d, slices.Concat(c.Hypervisor, p.Hypervisors))
	t.connect = func(ctx context.Context, name string) (*control.EndPoint, func(), error) {
		i := slices.IndexFunc(p.EndPoints, func(x plan.EndPoint) bool { return x.Name == name })
		if i < 0 { // local
			return d.Local(ctx, false)
		}
		ends, missing, closeAll := d.ConnectAll(ctx, p.EndPoints[i:i+1])
		if len(missing) > 0 {
			closeAll()
			return nil, nil, missing[0].Err
		}
		return ends[name], closeAll, nil
	}
	return t, nil
}

// hashOf returns a hash of a text.
func hashOf(text string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, text) // a hash takes everything
	return h.Sum64()
}

// watchView prints what a watch finds out.
type watchView struct {
	*env
	json    bool
	samples bool // print them, as JSON
	metrics *metrics.Set
	out     *alert.Outbox
	log     *library.WatchLog
	errors  map[record.Pair]string // the last of each pair
	said    map[string]string      // of each alarm that is not over, by its ID
	err     error                  // of printing
}

// keep stores samples, and prints them as JSON.
func (v *watchView) keep(samples []record.Sample) error {
	for _, s := range samples {
		v.metrics.Take(s)
		if s.Error != v.errors[s.Pair] && s.Error != "" {
			v.Line(fmt.Sprintf("warning: %s -> %s: %s", s.From, s.To, s.Error))
		}
		if s.Error != "" || s.State.Judges() {
			v.errors[s.Pair] = s.Error
		}
	}
	err := v.log.Keep(samples)
	if !v.samples {
		return err
	}
	for _, s := range samples {
		v.line(struct {
			Schema string        `json:"schema"`
			Sample record.Sample `json:"sample"`
		}{record.Schema, s})
	}
	return err
}

// report stores, sends and prints an event.
func (v *watchView) report(x record.Event) {
	if err := v.log.Take(x); err != nil {
		v.warn(err)
	}
	said := false // before
	if x.Alarm != nil && x.Kind != record.Suspected {
		m := message(*x.Alarm, x.At)
		if err := v.out.Put(m); err != nil {
			v.warn(err)
		}
		said = v.said[x.Alarm.ID] == m.Text
		if v.said[x.Alarm.ID] = m.Text; m.Over() {
			delete(v.said, x.Alarm.ID)
		}
	}
	line := words.Line(x, time.Local)
	switch {
	case v.json:
		v.line(struct {
			Schema string `json:"schema"`
			record.Event
		}{record.Schema, x})
	case line == "", x.Kind == record.AlarmUpdated && said:
	case v.Log.Journal: // it knows the time
		v.Say(map[bool]console.Level{true: console.Warning, false: console.Info}[x.Kind == record.AlarmRaised], v.Out, line)
	default:
		_, err := fmt.Fprintln(v.Out, x.At.Format("15:04:05 ")+line)
		v.err = cmp.Or(v.err, err)
	}
}

// line prints a value as JSON in a line.
func (v *watchView) line(x any) {
	v.err = cmp.Or(v.err, json.NewEncoder(v.Out).Encode(x))
}

// warn prints what is wrong with the watch itself.
func (v *watchView) warn(err error) { v.Line("warning: " + fault.WithHint(err)) }

// end prints how the pairs are.
func (v *watchView) end(w *watch.Watch) error {
	if v.json {
		return v.err
	}
	for _, s := range w.Standings() {
		_, err := fmt.Fprintln(v.Out, words.Standing(s, time.Now(), time.Local))
		v.err = cmp.Or(v.err, err)
	}
	return v.err
}
