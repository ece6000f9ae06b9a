package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"thru/internal/agent"
	"thru/internal/bus"
	"thru/internal/control"
	"thru/internal/engine"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/report"
	"thru/internal/stat"
	"thru/internal/store"
	"thru/internal/unit"
)

// reception makes an ordinary test of each call of an iperf3 or iperf2 client:
// the same controller, agent and engines as for thru's own tests, and a result
// that is kept.
type reception struct {
	version string
	connect func() (*bus.Client, error)                         // to the agent of this process
	keep    string                                              // folder for the results; none are kept where it is empty
	archive archive                                             // for thru history
	warn    func(string, error)                                 // of what takes no figure along; nil: nobody hears
	watch   func(engine.Call) control.Observer                  // nil: nobody does
	told    func(engine.Call, *measure.Document, string, error) // of the result, and where it is kept

	most int // tests at a time of one host, so that it leaves places to others; 0 is no bound

	wg    sync.WaitGroup
	mu    sync.Mutex
	hosts map[string]int // tests that run, by host
}

// enter counts a test of the caller's host; false where it has enough.
func (r *reception) enter(host string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.most > 0 && r.hosts[host] >= r.most {
		return false
	}
	if r.hosts == nil {
		r.hosts = map[string]int{}
	}
	r.hosts[host]++
	return true
}

func (r *reception) leave(host string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hosts[host]--; r.hosts[host] <= 0 {
		delete(r.hosts, host)
	}
}

// take runs the call's test in its own goroutine.
func (r *reception) take(ctx context.Context, call engine.Call) {
	r.wg.Go(func() {
		if !r.enter(call.Name) {
			call.Refuse(engine.ErrBusy)
			r.told(call, nil, "", fmt.Errorf("cli: its host has %d tests already: %w", r.most, engine.ErrBusy))
			return
		}
		defer r.leave(call.Name)
		doc, err := r.test(ctx, call)
		if err != nil && ctx.Err() == nil {
			call.Refuse(fmt.Errorf("%w: %w", engine.ErrBusy, err)) // where no engine has taken it: it may try again
		} else {
			call.Refuse(err)
		}
		path := ""
		if doc != nil && measured(doc) {
			var kerr error
			if path, kerr = keepResult(r.keep, doc); kerr != nil {
				err = errors.Join(err, kerr)
			}
			if _, kerr = r.archive.keep(doc); kerr != nil && !errors.Is(kerr, store.ErrNone) && r.warn != nil {
				r.warn("the result is not in the history", kerr)
			}
		}
		r.told(call, doc, path, err)
	})
}

// wait returns when no test of a call runs any more.
func (r *reception) wait() { r.wg.Wait() }

func (r *reception) test(ctx context.Context, call engine.Call) (*measure.Document, error) {
	client, err := r.connect()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	hello, err := client.Hello(ctx)
	if err != nil {
		return nil, fmt.Errorf("cli: asking the agent of this process: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	caller := &control.EndPoint{Name: call.Name, Addr: call.Addr, Foreign: true, Token: call.Token}
	if host, _, err := net.SplitHostPort(call.Addr); err == nil && call.Back != nil {
		caller.Port, caller.DataHosts = call.Back.Port, []string{host}
	}
	runner := control.Runner{
		Version: r.version, Link: stat.Link{}, Watch: impatient{r.observer(call), cancel},
		Ends: map[string]*control.EndPoint{control.Local: {Name: control.Local, Client: client, Hello: hello}, call.Name: caller},
	}
	doc, err := runner.Run(ctx, callPlan(call))
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, engine.ErrBusy) {
		err = cause
	}
	return doc, err
}

func (r *reception) observer(call engine.Call) control.Observer {
	if r.watch == nil {
		return nil
	}
	return r.watch(call)
}

// callPlan is what the caller asks for, and where it wants to be called back
// that too.
func callPlan(call engine.Call) plan.Plan {
	p := plan.Plan{Command: "serve", Repeat: plan.Repeat{Min: 1, Max: 1}, Steps: []plan.Step{{Label: "asked for by " + call.Name, Specs: call.Specs}}}
	switch b := call.Back; {
	case b == nil:
	case b.AtOnce:
		p.Steps[0].Specs = append(slices.Clone(call.Specs), b.Spec)
	default:
		p.Steps = append(p.Steps, plan.Step{Label: "called back", Specs: []measure.Spec{b.Spec}})
	}
	return p
}

// impatient is an observer that ends a test which would have to wait: the
// programs that call know no queue, only a server that is busy.
type impatient struct {
	inner  control.Observer // nil: nobody else hears
	cancel context.CancelCauseFunc
}

// Hear implements control.Observer.
func (i impatient) Hear(e control.Event) {
	switch _, waits := e.(control.Waiting); {
	case waits:
		i.cancel(engine.ErrBusy)
	case i.inner != nil:
		i.inner.Hear(e)
	}
}

// mostResults bounds how many results are kept in a folder: the oldest go.
const mostResults = 1000

// keepResult writes a document into a folder under a name that sorts by time.
func keepResult(dir string, doc *measure.Document) (string, error) {
	if dir == "" {
		return "", nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fault.Failf("name another folder with --results", "cli: keeping the result: %w", err)
	}
	var b strings.Builder
	if err := report.JSON(&b, doc); err != nil {
		return "", fmt.Errorf("cli: keeping the result: %w", err)
	}
	f, err := os.CreateTemp(dir, part+"*")
	if err == nil {
		_, werr := f.WriteString(b.String())
		err = errors.Join(werr, f.Close())
		path := filepath.Join(dir, doc.StartedAt.UTC().Format("20060102T150405.000000000Z")+resultEnding)
		if err == nil {
			err = os.Rename(f.Name(), path)
		}
		if err == nil {
			return path, forgetOldest(dir)
		}
		os.Remove(f.Name())
	}
	return "", fault.Failf("name another folder with --results", "cli: keeping the result: %w", err)
}

// resultEnding marks the files that keepResult writes, and may remove.
const resultEnding = ".thru.json"

// forgetOldest removes the results above the bound.
func forgetOldest(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("cli: reading the folder of results: %w", err)
	}
	for _, e := range entries { // what a crash has left half written
		if i, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), part) && time.Since(i.ModTime()) > time.Hour {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return !strings.HasSuffix(e.Name(), resultEnding) })
	for _, e := range entries[:max(0, len(entries)-mostResults)] { // in the order of their names
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("cli: removing an old result: %w", err)
		}
	}
	return nil
}

// callLine is the one line about a call's test: for people.
func callLine(call engine.Call, doc *measure.Document, path string, err error) string {
	line := time.Now().Format("15:04:05 ") + call.Name
	if call.Program != "" {
		line += " (" + call.Program + ")"
	}
	if doc != nil && measured(doc) {
		line += ": " + report.Answer(doc)
	}
	if err != nil {
		line += ": " + fault.Plain(err.Error())
	}
	if path != "" {
		line += "; kept in " + path
	}
	return line
}

// callRecord is the same for programs: one JSON line.
type callRecord struct {
	Caller  string         `json:"caller"`
	Program string         `json:"program,omitempty"`
	Kept    string         `json:"kept_in,omitempty"`
	Goodput []flowGoodput  `json:"goodput"`
	Error   *measure.Error `json:"error"`
}

type flowGoodput struct {
	From string  `json:"from"`
	To   string  `json:"to"`
	Bps  float64 `json:"goodput_bps"`
}

func newCallRecord(call engine.Call, doc *measure.Document, path string, err error) callRecord {
	r := callRecord{Caller: call.Name, Program: call.Program, Kept: path, Goodput: []flowGoodput{}}
	if doc != nil {
		for _, c := range doc.Cells {
			if c.Goodput != nil {
				r.Goodput = append(r.Goodput, flowGoodput{c.From, c.To, c.Goodput.Value})
			}
		}
	}
	if err != nil {
		r.Error = control.Describe(err)
	}
	return r
}

// toldTests prints a line about each test; several may end at once.
type toldTests struct {
	e      *env
	asJSON bool
	mu     sync.Mutex
}

func tellTests(e *env, asJSON bool) *toldTests { return &toldTests{e: e, asJSON: asJSON} }

func (t *toldTests) print(line string, record callRecord) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asJSON {
		json.NewEncoder(t.e.Out).Encode(record)
		return
	}
	fmt.Fprintln(t.e.Out, line)
}

// call is of the test of an iperf client.
func (t *toldTests) call(call engine.Call, doc *measure.Document, path string, err error) {
	t.print(callLine(call, doc, path, err), newCallRecord(call, doc, path, err))
}

// flows are of a test that a thru has made from elsewhere, all at the same time.
func (t *toldTests) flows(all []agent.Ended) {
	host, _, err := net.SplitHostPort(all[0].Evidence.PeerAddr)
	if err != nil {
		host = "a client"
	}
	r := callRecord{Caller: host, Program: "thru", Goodput: []flowGoodput{}}
	var received, sent, longest int64
	streams, asked, what, why := 0, false, "", ""
	for _, x := range all {
		if why = cmp.Or(why, x.Evidence.Error); x.Spec.Traffic != measure.Bulk {
			asked, longest = true, max(longest, x.Evidence.MeasuredNs)
			continue
		}
		streams, what = streams+x.Spec.Streams, strings.ToUpper(x.Spec.Protocol)
		for _, e := range []*measure.Evidence{&x.Evidence, x.Back} {
			if e == nil || e.MeasuredNs <= 0 {
				continue
			}
			f, sum := flowGoodput{host, control.Local, float64(e.Bytes) * 8 * 1e9 / float64(e.MeasuredNs)}, &received
			if e.Sends {
				f.From, f.To, sum = f.To, f.From, &sent
			}
			*sum, longest, r.Goodput = *sum+int64(f.Bps), max(longest, e.MeasuredNs), append(r.Goodput, f)
		}
	}
	var did []string
	if received > 0 {
		did = append(did, "received "+unit.Rate(float64(received)))
	}
	if sent > 0 {
		did = append(did, "sent "+unit.Rate(float64(sent)))
	}
	if len(did) == 0 && asked {
		did = append(did, "answered requests")
	}
	line := fault.And(did) + " for " + unit.Duration(longest)
	if longest == 0 {
		line = "it ended before the measured time"
	}
	if streams > 0 {
		line += "; " + what + ", " + unit.Plural(streams, "stream")
	}
	if why != "" {
		r.Error = &measure.Error{Message: fault.Plain(why), ExitCode: fault.Failed}
		line += "; " + fault.Plain(why)
	}
	t.print(time.Now().Format("15:04:05 ")+host+": "+line, r)
}

// tellRefused says who was turned away before it came to a test.
func tellRefused(e *env, addr string, reason error) {
	fmt.Fprintf(e.Err, "%s%s: %v\n", time.Now().Format("15:04:05 "), addr, reason)
}
