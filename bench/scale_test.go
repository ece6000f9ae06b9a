//go:build linux

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"thru/internal/measure"
)

// Time limits for a fleet, and the parameters of its plan.
const (
	fleetTime   = 6 * time.Minute // for all agents to join
	planTime    = 15 * time.Minute
	perProcess  = 100 // agents
	pairsAtOnce = 16
)

// scaleRow holds the times and loads of a fleet of one size.
type scaleRow struct {
	agents              int
	joined, back, hosts time.Duration
	plan                time.Duration
	failed              int
	controlMB, planMB   float64
	serverMB            float64 // of a NATS server
	idleCPU             float64 // of the controller, % of a core
	controlCPU, planCPU float64 // while the plan ran, in s
}

// fleetAtScale is a controller with agents; they are real agents, but many share a process.
type fleetAtScale struct {
	thru, folder string
	size         int
	control      *process
	agents       []*process
	watched      func() // reads the memory of what serves the plan, while it runs
}

// addScale measures fleets of several sizes.
func (r *report) addScale(ctx context.Context, w io.Writer) error {
	if !r.settings.only.MatchString("scale") || absent(r.settings.thru) != "" {
		return nil
	}
	t := table{title: "scale: one controller, a plan of one short test for each agent", rows: [][]string{{
		"agents", "all joined", "`thru hosts`", "all back after its restart", "plan", "a pair", "failed",
		"controller", "idle", "CPU in the plan", "`thru run`", "CPU",
	}}, remarks: []string{fmt.Sprintf("The plan is a ring: each agent sends to the next for 100 ms at 1 Mb/s, %d pairs at a time. "+
		"All agents, their workers and the controller share this machine: the time of a pair is mostly that of starting two workers.", pairsAtOnce)}}
	for _, n := range r.settings.scale {
		row, err := r.settings.measureFleet(ctx, n)
		if err != nil {
			return fmt.Errorf("bench: a fleet of %d: %w", n, err)
		}
		seconds := func(d time.Duration) string { return digits(d.Seconds()) + " s" }
		t.rows = append(t.rows, []string{
			strconv.Itoa(n), seconds(row.joined), seconds(row.hosts), seconds(row.back), seconds(row.plan),
			digits(row.plan.Seconds()*1e3/float64(n)) + " ms", strconv.Itoa(row.failed),
			digits(row.controlMB) + " MB", digits(row.idleCPU) + "%", digits(row.controlCPU) + " s", digits(row.planMB) + " MB", digits(row.planCPU) + " s",
		})
	}
	r.print(w, t)
	return nil
}

// measureFleet starts a fleet, runs the plan, and stops the fleet.
func (s settings) measureFleet(ctx context.Context, n int) (row scaleRow, err error) {
	unlock, err := lock(s.lock)
	if err != nil {
		return row, err
	}
	defer unlock()
	folder, err := os.MkdirTemp("", "bench-*")
	if err != nil {
		return row, err
	}
	defer os.RemoveAll(folder)
	f := &fleetAtScale{thru: s.thru, folder: folder, size: n}
	defer f.stop()
	row.agents = n
	if err := f.startControl(ctx); err != nil {
		return row, err
	}
	began := time.Now()
	if err := f.startAgents(ctx, 0); err != nil {
		return row, err
	}
	if row.hosts, err = f.await(ctx); err != nil {
		return row, err
	}
	row.joined = time.Since(began)
	row.idleCPU = f.idle(ctx)
	before := runTime(f.control.cmd.Process.Pid)
	f.watched = func() { row.controlMB = max(row.controlMB, residentMB(f.control.cmd.Process.Pid)) }
	if err := f.measurePlan(ctx, &row, "{type: ring, among: all}", n); err != nil {
		return row, err
	}
	row.controlCPU = (runTime(f.control.cmd.Process.Pid) - before).Seconds()
	f.control.cmd.Process.Kill()
	<-f.control.done
	began = time.Now()
	if err := f.startControl(ctx); err != nil {
		return row, err
	}
	_, err = f.await(ctx)
	row.back = time.Since(began)
	return row, err
}

// command returns a call of thru with the folders of this fleet.
func (f *fleetAtScale) command(args ...string) command {
	return command{argv: append([]string{"env", "XDG_CONFIG_HOME=" + f.folder, "XDG_STATE_HOME=" + f.folder, f.thru}, args...), cpu: -1}
}

func (f *fleetAtScale) path(name string) string { return filepath.Join(f.folder, name) }

// startControl starts the controller, and keeps its join strings.
func (f *fleetAtScale) startControl(ctx context.Context) (err error) {
	ready := f.path("ready.json")
	os.Remove(ready)
	line := fmt.Sprintf("exec %s control --json --bind 127.0.0.1 --state %s > %s", f.thru, f.path("control"), ready)
	if f.control, err = (command{argv: []string{"sh", "-c", line}, cpu: -1}).start(); err != nil {
		return err
	}
	var said struct {
		Joins map[string]string `json:"join_strings"`
	}
	for end := time.Now().Add(serverTime); ; time.Sleep(5 * time.Millisecond) {
		text, _ := os.ReadFile(ready)
		if first, _, whole := strings.Cut(string(text), "\n"); whole && json.Unmarshal([]byte(first), &said) == nil {
			break
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return fmt.Errorf("the controller is not ready: %s", f.control.said())
		}
	}
	if err := os.WriteFile(f.path("agent"), []byte(said.Joins["agent"]), 0o600); err != nil {
		return err
	}
	join := f.command("join", "fleet", "--replace")
	join.argv = []string{"sh", "-c", "echo '" + said.Joins["operate"] + "' | " + strings.Join(join.argv, " ")}
	p, err := join.start()
	if err != nil {
		return err
	}
	return p.wait(ctx, spareTime)
}

// startAgents starts their processes, a gap apart.
func (f *fleetAtScale) startAgents(ctx context.Context, gap time.Duration) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for first := 1; first <= f.size; first += perProcess {
		count := min(perProcess, f.size-first+1)
		p, err := command{argv: []string{self, agentsVerb, strconv.Itoa(first), strconv.Itoa(count), f.path("agent")}, cpu: -1}.start()
		if err != nil {
			return err
		}
		f.agents = append(f.agents, p)
		nap(ctx, gap)
	}
	return nil
}

// await polls `thru hosts` until all agents are online, and returns the time of the last call.
func (f *fleetAtScale) await(ctx context.Context) (took time.Duration, err error) {
	for end := time.Now().Add(fleetTime); ; {
		began := time.Now()
		p, err := f.command("hosts", "fleet", "--json").start()
		if err != nil {
			return 0, err
		}
		err = p.wait(ctx, fleetTime)
		took = time.Since(began)
		var list struct {
			Hosts []struct {
				Online bool `json:"online"`
			} `json:"hosts"`
		}
		online := 0
		if err == nil && json.Unmarshal(p.out.Bytes(), &list) == nil {
			for _, h := range list.Hosts {
				if h.Online {
					online++
				}
			}
		}
		switch {
		case online == f.size:
			return took, nil
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case time.Now().After(end):
			return 0, fmt.Errorf("%d of %d hosts are there after %v (%w)", online, f.size, fleetTime, err)
		}
	}
}

// idle returns the idle controller's CPU load, in percent of a core.
func (f *fleetAtScale) idle(ctx context.Context) float64 {
	const span = 5 * time.Second
	before := runTime(f.control.cmd.Process.Pid)
	nap(ctx, span)
	return 100 * (runTime(f.control.cmd.Process.Pid) - before).Seconds() / span.Seconds()
}

// measurePlan runs one test for each of these pairs.
func (f *fleetAtScale) measurePlan(ctx context.Context, row *scaleRow, pairs string, number int) error {
	names := make([]string, f.size)
	for i := range names {
		names[i] = fmt.Sprintf("h%d", i+1)
	}
	text := fmt.Sprintf("thru: 1\nname: scale\ncontroller: fleet\nend_points: [%s]\npairs: [%s]\n"+
		"order: sequential\nat_once: %d\ngates: off\ntraffic: {time: 100ms, ramp: 20ms, streams: 1, total_bitrate: 1M}\n", strings.Join(names, ", "), pairs, pairsAtOnce)
	if err := os.WriteFile(f.path("plan.yaml"), []byte(text), 0o600); err != nil {
		return err
	}
	began := time.Now()
	p, err := f.command("run", "--json", f.path("plan.yaml")).start()
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- p.wait(ctx, planTime) }()
	for running := true; running; {
		select {
		case err = <-done:
			running = false
		case <-time.After(100 * time.Millisecond):
			row.planMB = max(row.planMB, residentMB(p.cmd.Process.Pid))
			f.watched()
		}
	}
	row.plan, row.planCPU = time.Since(began), p.cpu()
	var doc measure.Document
	if jerr := json.Unmarshal(p.out.Bytes(), &doc); jerr != nil || len(doc.Cells) != number {
		return fmt.Errorf("the plan gave %d cells: %w", len(doc.Cells), err)
	}
	for _, c := range doc.Cells {
		if c.Error != nil || c.Goodput == nil {
			row.failed++
		}
	}
	return nil
}

// stop ends all processes.
func (f *fleetAtScale) stop() {
	for _, p := range append(f.agents, f.control) {
		if p != nil {
			p.stop()
		}
	}
}
