package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"iter"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"thru/internal/cli/console"
	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/library"
	"thru/internal/plan"
	"thru/internal/plan/option"
	"thru/internal/plan/planfile"
	"thru/internal/remote"
	words "thru/internal/report/watch"
	"thru/internal/sock"
	"thru/internal/store"
	"thru/internal/watch"
	"thru/internal/watch/judge"
	"thru/internal/watch/metrics"
	"thru/internal/watch/record"
	"thru/internal/watch/schedule"
)

// watchTime is how long a TCP turn measures, without its ramp.
const watchTime = 3 * time.Second

type watchCmd struct {
	What    []string      `arg:"" optional:"" name:"end-point|plan" help:"A plan file (thru help plan, key watch), or end points as for test: each is watched from this machine, in both directions. Without any: this machine against itself."`
	Budget  int64         `group:"How much" name:"budget" type:"size" like:"10G" placeholder:"SIZE" help:"Bytes that the watch may put on a host's link a day (default: 0.1% of what the link carries)."`
	TCP     int           `group:"How much" name:"tcp" default:"-1" placeholder:"N" help:"TCP tests of each direction a day; 0: none (default: what the budget allows, at most 24)."`
	For     time.Duration `group:"How much" name:"for" type:"time" like:"2h" placeholder:"TIME" help:"End after this time (default: with Ctrl-C)."`
	DryRun  bool          `group:"How much" name:"dry-run" help:"Print what would be measured, and the bytes a day."`
	Metrics string        `group:"Output" name:"metrics" placeholder:"ADDRESS:PORT" help:"Offer the figures to Prometheus (OpenMetrics) at http://ADDRESS:PORT/metrics."`
	OTLP    string        `group:"Output" name:"otlp" placeholder:"URL" help:"Push the figures to an OpenTelemetry collector (OTLP/HTTP, JSON)."`
	JSON    bool          `group:"Output" name:"json" help:"Print a JSON document for each sample and event, in a line of its own (schema thru.watch/1)."`
	Port    int           `group:"Ends and directions" short:"p" default:"5200" help:"Control port of the end points."`
	storeFlags
	asked
}

// takes implements asks.
func (*watchCmd) takes() (string, map[string]option.Flag) {
	return "link-rate time streams window congestion version4 version6 dscp", map[string]option.Flag{
		"time": {Help: "Seconds that each TCP test measures (default 3)."}, "link-rate": {Group: "How much", Help: "Nominal rate of the paths, such as 10G: the budget and the size of TCP tests follow from it."},
	}
}

// Run watches the pairs until it is ended.
func (c *watchCmd) Run(ctx context.Context, e *env) error {
	r, err := c.request(watchTime)
	if err != nil {
		return err
	}
	what, err := c.what(ctx, e, r)
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
	r.Link, r.Duration = what.link, what.time
	return c.watch(ctx, e, r, what)
}

// turns returns the number of turns a day.
func turns(tasks []schedule.Task) (n int) {
	for _, t := range tasks {
		n += t.PerDay
	}
	return n
}

// watch connects the parts of a watch, and runs them.
func (c *watchCmd) watch(ctx context.Context, e *env, r plan.Request, what toWatch) error {
	seed := seedOf(what.wish)
	state, err := openWatch(seed)
	if err != nil {
		return err
	}
	defer state.unlock()
	stored, err := e.archive.WatchLog(state.name())
	if err != nil {
		return err
	}
	view := &watchView{env: e, json: c.JSON, metrics: metrics.NewSet(), log: stored, errors: map[record.Pair]string{}}
	defer func() {
		if err := stored.Close(); err != nil {
			view.warn(err)
		}
	}()
	if view.alarms, err = state.openAlarms(what.sinks, view); err != nil {
		return err
	}
	hosts := watch.Hosts{Version: e.Version, Traffic: r, Link: r.Link, Bar: what.load, Archive: e.archive.Keep, Connect: what.connect, Paths: what.wish.Paths, ProbeEvery: what.wish.ProbeEvery, Watch: state.Watch, Seed: seed, Warn: view.warn}.Open(nil)
	defer hosts.Close()
	var w *watch.Watch
	w, err = watch.New(watch.Config{
		Wish: what.wish, Judge: what.judge, Seed: seed, Fleet: hosts, State: state.Judge, Past: past(ctx, stored, what.wish.Paths), Keep: view.keep, Report: view.report, Warn: view.warn,
		Save: func(judge []byte) {
			if err := state.save(judge); err != nil {
				view.warn(err)
			}
			view.stand(w)
		},
	})
	if err != nil {
		return err
	}
	view.goOn(w)
	stop, err := c.beside(ctx, view)
	if err != nil {
		return err
	}
	defer stop()
	if c.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.For)
		defer cancel()
	}
	if err := hosts.Check(ctx, what.check); err != nil {
		return err
	}
	w.Run(ctx)
	if !c.goesOn(ctx) {
		hosts.End()
	}
	return view.end(w)
}

// goesOn reports whether the watch is to go on with the next run: a service manager that stops it begins it again. Then the agents keep probing.
func (c *watchCmd) goesOn(ctx context.Context) bool {
	var by console.Signalled
	return errors.As(context.Cause(ctx), &by) && by.Signal != os.Interrupt
}

// longAgo is as far back as samples are stored.
const longAgo = 14 * 24 * time.Hour

// past returns the stored samples from which a watch goes on, those of a pair and layer in order. Of probes there are many, so that it takes days of them.
func past(ctx context.Context, log *library.WatchLog, paths []schedule.Path) iter.Seq2[record.Sample, error] {
	return func(yield func(record.Sample, error) bool) {
		for _, p := range paths {
			for layer, age := range map[record.Layer]time.Duration{record.Probe: 3 * 24 * time.Hour, record.Train: longAgo, record.TCP: longAgo} {
				for s, err := range log.Past(ctx, store.SampleFilter{Pair: p.Pair, Layer: layer, From: time.Now().Add(-age)}) {
					if !yield(s, err) {
						return
					}
				}
			}
		}
	}
}

// toWatch is what a plan or the end points of the command line ask for.
type toWatch struct {
	wish    schedule.Wish
	judge   judge.Config
	link    plan.Link
	load    float64       // bar for other traffic
	time    time.Duration // that a TCP turn measures
	sinks   []planfile.Sink
	check   []string // names that no plan has checked
	connect func(ctx context.Context, name string) (*control.EndPoint, func(), error)
}

// what reads what to watch.
func (c *watchCmd) what(ctx context.Context, e *env, r plan.Request) (toWatch, error) {
	d := remote.Dialer{Network: e.network, Port: c.Port, Family: r.Family}
	if len(c.What) == 1 && e.isPlan(c.What[0]) {
		return c.planned(ctx, e, d, r)
	}
	alone := len(c.What) == 0
	return toWatch{wish: c.wish(r), link: r.Link, time: r.Duration, load: planfile.DefaultLoad, check: c.What, connect: func(ctx context.Context, name string) (*control.EndPoint, func(), error) {
		if name == control.Local {
			return d.Local(ctx, alone)
		}
		return d.EndPoint(ctx, name)
	}}, nil
}

// planned reads what a plan asks for; flags go before its keys.
func (c *watchCmd) planned(ctx context.Context, e *env, d remote.Dialer, r plan.Request) (t toWatch, err error) {
	text, err := e.readPlan(ctx, c.What[0])
	if err != nil {
		return t, err
	}
	file, err := planfile.Parse(c.What[0], text)
	if err != nil {
		return t, err
	}
	fleets, err := e.network.FleetHosts(ctx, file.Controllers())
	if err != nil {
		return t, err
	}
	p, err := file.Expand(fleets, nil)
	if err != nil {
		return t, err
	}
	if r.Link.RateBps != 0 {
		p.Link = r.Link
	}
	keys := file.Watch()
	keys.Budget = cmp.Or(c.Budget, keys.Budget)
	if c.TCP != planfile.Auto {
		keys.TCP = c.TCP
	}
	if c.has("time") {
		keys.Time = r.Duration
	}
	t.time = keys.Time
	t.wish, t.judge = watch.OfPlan(p, keys, time.Local)
	t.link, t.load, t.sinks = p.Link, keys.Load, keys.Alarms
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

// wish returns what the flags ask for, without a plan.
func (c *watchCmd) wish(r plan.Request) schedule.Wish {
	w := schedule.Wish{ProbeEvery: time.Second, TCPPerDay: c.TCP, TCPTime: r.Duration + time.Second, BudgetBytes: c.Budget}
	path := func(from, to string) {
		w.Paths = append(w.Paths, schedule.Path{Pair: record.Pair{From: from, To: to}, RateBps: r.Link.RateBps, Uses: slices.Compact([]string{from, to})})
	}
	for _, name := range c.What {
		path(control.Local, name)
		path(name, control.Local)
	}
	if len(c.What) == 0 {
		path(control.Local, control.Local)
	}
	if r.Link.RateBps == 0 && c.TCP < 0 {
		w.TCPPerDay = 0
	}
	return w
}

// seedOf returns a seed that two watches of the same pairs share, and other watches do not.
func seedOf(w schedule.Wish) uint64 {
	h := fnv.New64a()
	for _, p := range w.Paths {
		fmt.Fprintf(h, "%q>%q ", p.From, p.To)
	}
	return h.Sum64()
}

// watchView prints what a watch finds out.
type watchView struct {
	*env
	json    bool
	metrics *metrics.Set
	alarms  *alarms
	log     *library.WatchLog
	errors  map[record.Pair]string // the last of each pair
	err     error                  // of printing
}

// pushEvery is how often figures are pushed.
const pushEvery = 15 * time.Second

// beside sends alarms, and offers the figures to monitoring systems, until stop is called.
func (c *watchCmd) beside(ctx context.Context, v *watchView) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { v.alarms.run(ctx) })
	if c.Metrics != "" {
		l, err := net.Listen("tcp", c.Metrics)
		if err != nil {
			cancel()
			wg.Wait()
			return nil, fault.Usagef("such as --metrics 127.0.0.1:9469", "--metrics %s: %w", c.Metrics, sock.Cause(err))
		}
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", metrics.Handler(v.metrics.Families))
		server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
		wg.Go(func() { _ = server.Serve(l) }) // it ends with Close
		context.AfterFunc(ctx, func() { _ = server.Close() })
	}
	if c.OTLP != "" {
		p := metrics.Pusher{URL: c.OTLP, Version: v.Version}
		wg.Go(func() {
			for every := time.NewTicker(pushEvery); ; {
				select {
				case <-ctx.Done():
					every.Stop()
					return
				case <-every.C:
				}
				if err := p.Push(ctx, v.metrics); err != nil && ctx.Err() == nil {
					v.warn(err)
				}
			}
		})
	}
	return func() { cancel(); wg.Wait() }, nil
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
	if !v.json {
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

// goOn takes what the last run knew.
func (v *watchView) goOn(w *watch.Watch) {
	v.stand(w)
	for _, a := range w.Alarms() {
		v.metrics.Alarm(a)
		v.alarms.goOn(a)
	}
}

// stand offers how the pairs are.
func (v *watchView) stand(w *watch.Watch) {
	for _, s := range w.Standings() {
		v.metrics.Stand(s.Pair, s.State, s.Goals)
	}
}

// report stores, sends and prints an event.
func (v *watchView) report(x record.Event) {
	v.metrics.Hear(x)
	if err := v.log.Take(x); err != nil {
		v.warn(err)
	}
	defer v.alarms.hear(x, v.warn)
	if v.json {
		v.line(struct {
			Schema string `json:"schema"`
			record.Event
		}{record.Schema, x})
		return
	}
	if x.Kind == record.AlarmUpdated && v.alarms.same(x) {
		return
	}
	if line := words.Line(x, time.Local); line != "" {
		_, err := fmt.Fprintln(v.Out, line)
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
