//go:build watches

package lab_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"thru/internal/measure"
	"thru/internal/store"
	"thru/internal/watch/record"
	"thru/internal/watch/why"
	"thru/lab"
	"thru/lab/wire"
)

// changed is a path that changes between the stored samples of a watch and its run.
type changed struct {
	name   string
	delay  time.Duration // one way
	change func(*wire.Impairment)
	metric record.Metric
	causes []string // one of which the alarm must name
	words  string   // of that
	moves  bool     // the change comes while the watch runs, with a move of b to another hypervisor
}

func changes() []changed {
	slower := func(i *wire.Impairment) { i.Rate = 90e6 }
	limits := []string{"shaper", "link-rate", "token-bucket"}
	return []changed{
		{"rate -10%", 2 * time.Millisecond, slower, record.Goodput, limits, "", false},
		{"loss 0.1%", 10 * time.Millisecond, func(i *wire.Impairment) { i.Loss = 0.001 }, record.Goodput, []string{"loss"}, "", false},
		{"+5 ms", 2 * time.Millisecond, func(i *wire.Impairment) { i.Delay += 5 * time.Millisecond }, record.RTTMedian, []string{why.LongerPath}, "not a queue", false},
		{"MTU 1400", 2 * time.Millisecond, func(i *wire.Impairment) { i.MTU, i.ICMP = 1400, true }, record.MTU, []string{why.HopMTU}, "10.77.0.254 passes packets of at most 1400 bytes", false},
		{"vMotion", 2 * time.Millisecond, slower, record.Goodput, limits, "", true},
	}
}

// remember stores two weeks of a watch of a healthy path, the last hour of which may have 10 ms more: a change of delay takes an hour to be found.
func remember(t *testing.T, home string, pair record.Pair, goodput float64, late bool) {
	t.Helper()
	s, err := store.Open(filepath.Join(home, ".local", "share", "thru", "results.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	noise := rand.New(rand.NewPCG(1, 2))
	var all []record.Sample
	now := time.Now().Add(-2 * time.Minute)
	for at := now.Add(-13 * 24 * time.Hour); at.Before(now); at = at.Add(2 * time.Hour) {
		all = append(all, record.Sample{Pair: pair, Layer: record.TCP, Begin: at, Seconds: 3, State: record.Up, Values: map[record.Metric]float64{record.Goodput: goodput * (1 + 0.01*noise.NormFloat64())}})
	}
	end := now.Truncate(20 * time.Minute) // of what is judged together
	for at := end.Add(-13 * 24 * time.Hour); at.Before(end); at = at.Add(time.Minute) {
		rtt := 4.3e6 + 5e4*noise.NormFloat64()
		if late && at.After(end.Add(-time.Hour-time.Second)) {
			rtt += 10e6
		}
		all = append(all, record.Sample{Pair: pair, Layer: record.Probe, Begin: at, Seconds: 60, State: record.Up, Values: map[record.Metric]float64{record.Sent: 60, record.LossRatio: 0, record.MTU: 1500, record.Hops: 0, record.RTTMedian: rtt}})
	}
	if err := s.PutSamples(t.Context(), all); err != nil {
		t.Fatal(err)
	}
}

// watched is a watch from a to b, with two weeks behind it.
type watched struct {
	t       *testing.T
	ctx     context.Context
	pair    *lab.Pair
	home    string
	goodput float64 // of the healthy path
	out     *output
	ended   <-chan struct{} // closed when the watch has
}

// newWatched starts an agent at b, with a program before it, and measures the healthy path.
func newWatched(t *testing.T, p *lab.Pair, by ...string) *watched {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 12*time.Minute)
	t.Cleanup(cancel)
	w := &watched{t: t, ctx: ctx, pair: p, home: t.TempDir()}
	served, _ := w.run(p.B, by, "serve", "--state", t.TempDir(), "--no-auth")
	lab.Eventually(t, 20*time.Second, "thru serve is ready", func() bool { return strings.Contains(served.String(), "ready") })
	w.goodput = test(t, p.A, "--one-way", "-t", "3", p.Data.B4.String()).Cells[0].Goodput.Value
	return w
}

// run starts thru in a host, with a program before it; the end of the test ends it.
func (w *watched) run(h *lab.Host, by []string, args ...string) (*output, <-chan struct{}) {
	w.t.Helper()
	line := slices.Concat(by, []string{lab.Binary(w.t)}, args)
	ctx, cancel := context.WithCancel(w.ctx)
	cmd, out := h.Command(ctx, line[0], line[1:]...), new(output)
	cmd.Env = append(os.Environ(), "HOME="+w.home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "XDG_DATA_HOME=", "XDG_CACHE_HOME=", "THRU_PASSWORD="+vcenterPassword)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }() // its end is what counts
	w.t.Cleanup(func() { cancel(); <-ended })
	return out, ended
}

// begin starts the watch, by a plan with further lines.
func (w *watched) begin(rate string, by []string, more string) {
	w.t.Helper()
	plan := strings.NewReplacer(`, {name: b2, at: "fd00:77::2"}`, "", ", {from: b, to: local}, {from: local, to: b2}, {from: b2, to: local}", "", "time: 500ms", "time: 3s", "100M", rate, "budget: 1T", "budget: 100T").Replace(watchPlan)
	file := filepath.Join(w.home, "plan.yaml")
	if err := os.WriteFile(file, []byte(plan+more), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.out, w.ended = w.run(w.pair.A, by, "watch", file, "--json", "--insecure")
}

// lines returns what the watch has printed, by kind.
func (w *watched) lines() (samples []record.Sample, alarms []record.Alarm) {
	for lines := bufio.NewScanner(strings.NewReader(w.out.String())); lines.Scan(); {
		var x struct {
			Sample *record.Sample
			record.Event
		}
		if json.Unmarshal(lines.Bytes(), &x) != nil { // the last line may not be whole
			continue
		}
		if x.Sample != nil {
			samples = append(samples, *x.Sample)
		}
		if x.Kind == record.AlarmRaised || x.Kind == record.AlarmUpdated {
			alarms = append(alarms, *x.Alarm)
		}
	}
	return samples, alarms
}

// await waits for an alarm about a metric with one of the causes, and returns it.
func (w *watched) await(metric record.Metric, causes []string, words string) (found record.Alarm, f measure.Finding) {
	w.t.Helper()
	named := func() bool {
		_, alarms := w.lines()
		for _, a := range alarms {
			if !slices.ContainsFunc(a.Changes, func(c record.Change) bool { return c.Metric == metric }) {
				continue
			}
			i := slices.IndexFunc(a.Findings, func(f measure.Finding) bool {
				return slices.Contains(causes, f.Cause) && strings.Contains(f.Summary, words)
			})
			if i >= 0 {
				found, f = a, a.Findings[i]
				return true
			}
		}
		return false
	}
	begin := time.Now()
	for !named() {
		if time.Since(begin) > 10*time.Minute {
			w.t.Fatalf("no such alarm; %s", w.out)
		}
		select {
		case <-w.ended:
			w.t.Fatalf("the watch has ended; %s", w.out)
		case <-time.After(time.Second):
		}
	}
	w.t.Logf("named after %v: %+v; %s (%s, %s)", time.Since(begin).Round(time.Second), found.Changes, f.Summary, f.Cause, f.Confidence)
	return found, f
}

// TestWatchNamesChanges: what changes on a path is an alarm that names the changed figure and its cause; if b moved to another hypervisor meanwhile, that too.
func TestWatchNamesChanges(t *testing.T) {
	lab.Require(t, lab.Root(), lab.Namespaces())
	for _, c := range changes() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			healthy := wire.Impairment{Rate: 100e6, Delay: c.delay}
			x := lab.NewWired(t, lab.WiredOptions{AtoB: healthy, BtoA: healthy, NoOffloads: true})
			change := func() {
				for _, d := range []wire.Direction{wire.AtoB, wire.BtoA} {
					bad := healthy
					c.change(&bad)
					x.Wire.Set(d, bad)
				}
			}
			w := newWatched(t, x.Pair)
			remember(t, w.home, record.Pair{From: "local", To: "b"}, w.goodput, c.metric == record.RTTMedian)
			if c.moves {
				w.moves(change, c)
				return
			}
			change()
			w.begin("100M", nil, "")
			w.await(c.metric, c.causes, c.words)
		})
	}
}

// moves has the path change as b moves to another host, after some turns of the watch.
func (w *watched) moves(change func(), c changed) {
	v := newVCenter(w.t, w.pair.A, w.pair.Data.B4.String())
	w.begin("100M", nil, "hypervisors: [vsphere://"+vcenterUser+"@"+vcenterAddr+"]\n")
	lab.Eventually(w.t, 3*time.Minute, "there are turns before the move", func() bool {
		samples, _ := w.lines()
		return len(slices.DeleteFunc(samples, func(s record.Sample) bool { return s.Layer != record.TCP || s.State != record.Up })) >= 2
	})
	moved := time.Now()
	from, to := v.move()
	change()
	a, _ := w.await(c.metric, c.causes, c.words)
	i := slices.IndexFunc(a.Facts, func(f record.FactChange) bool { return f.Fact == "end_points.placement.host_name" })
	if i < 0 || a.Facts[i].Host != "b" || a.Facts[i].Before != from || a.Facts[i].After != to || a.Facts[i].Since.Before(moved) || a.Facts[i].Since.After(moved.Add(time.Minute)) {
		w.t.Fatalf("b moved from %s to %s at %v, and the alarm says %+v", from, to, moved, a.Facts)
	}
	w.t.Logf("moved at %v: %+v", moved, a.Facts[i])
}

// The simulated vCenter.
const (
	vcenterAddr, vcenterUser, vcenterPassword = "127.0.0.1:8989", "reader", "hush-7f3a"
)

// vcenter is govmomi's simulator, in which b is a virtual machine.
type vcenter struct {
	*simulator.Model
	vm *simulator.VirtualMachine
}

// newVCenter starts one at a host. The machine has only the address in common with the host b, which is no machine.
func newVCenter(t *testing.T, at *lab.Host, addr string) vcenter {
	t.Helper()
	log.SetOutput(io.Discard) // it logs what it does not simulate
	v := vcenter{Model: simulator.VPX()}
	if err := v.Create(); err != nil {
		t.Fatal(err)
	}
	v.vm = v.Map().Any("VirtualMachine").(*simulator.VirtualMachine)
	v.vm.Config.Uuid, v.vm.Config.InstanceUuid, v.vm.Guest.IpAddress = "", "", addr
	for _, d := range v.vm.Config.Hardware.Device {
		if nic, is := d.(types.BaseVirtualEthernetCard); is {
			nic.GetVirtualEthernetCard().MacAddress = ""
		}
	}
	v.Service.TLS = new(tls.Config)
	v.Service.Listen = &url.URL{Host: vcenterAddr, User: url.UserPassword(vcenterUser, vcenterPassword)}
	at.Inside(func() error { t.Cleanup(v.Service.NewServer().Close); return nil })
	t.Cleanup(v.Remove)
	return v
}

// move moves the machine to another host, and returns the names of both.
func (v vcenter) move() (from, to string) {
	var host types.ManagedObjectReference
	for _, x := range v.Map().All("HostSystem") {
		if h := x.(*simulator.HostSystem); h.Self == *v.vm.Runtime.Host {
			from = h.Name
		} else {
			host, to = h.Self, h.Name
		}
	}
	v.Map().Update(v.Service.Context, v.vm, []types.PropertyChange{{Name: "runtime.host", Val: host}, {Name: "summary.runtime.host", Val: host}})
	return from, to
}

// TestWatchNamesHog: three programs take the CPU of the receiver. The alarm names that CPU, with figures.
func TestWatchNamesHog(t *testing.T) {
	lab.Require(t, lab.Root(), lab.Namespaces(), lab.Program("taskset"))
	const sends, receives = "0", "1"
	w := newWatched(t, lab.NewPair(t, lab.Options{}), "taskset", "-c", receives)
	remember(t, w.home, record.Pair{From: "local", To: "b"}, w.goodput, false)
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		cmd := w.pair.B.Command(ctx, "taskset", "-c", receives, "sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	}
	w.begin("10G", []string{"taskset", "-c", sends}, "")
	_, f := w.await(record.Goodput, []string{"receiver-cpu", "noisy-neighbour"}, "CPU")
	if len(f.Evidence) == 0 || f.Where.EndPoint != "b" {
		t.Errorf("it is not at b, or without figures: %+v", f)
	}
	t.Logf("%+v", f.Evidence)
}
