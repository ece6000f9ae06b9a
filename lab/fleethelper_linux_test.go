package lab_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"thru/internal/measure"
	"thru/lab"
)

// fleet is a lab.Fleet with a controller and an agent on each host.
type fleet struct {
	*lab.Fleet
	state   string   // the controller's folder
	control *program // nil: the bus is a NATS server
	agents  []*program
	homes   []string // of the agents
	home    string   // home of the user who runs tests, at the controller's host
}

// startFleet starts a controller and an agent on every host. Hosts are named h1, h2, ..., with a label "part"
// of odd or even.
func startFleet(t *testing.T, o lab.FleetOptions) *fleet {
	t.Helper()
	f := &fleet{Fleet: lab.NewFleet(t, o), state: t.TempDir(), home: t.TempDir()}
	agent, operate := f.startControl(t)
	for i := range f.Hosts {
		f.homes = append(f.homes, t.TempDir())
		f.agents = append(f.agents, f.startAgent(t, i, "--controller", agent))
	}
	f.join(t, operate)
	f.awaitHosts(t, len(f.Hosts))
	return f
}

// startControl starts the controller, and returns the join strings of agents and operators.
func (f *fleet) startControl(t *testing.T) (agent, operate string) {
	t.Helper()
	f.control = start(t, f.Controller, f.state, "", "control", "--json", "--state", f.state)
	var ready struct {
		Joins map[string]string `json:"join_strings"`
	}
	lab.Eventually(t, 10*time.Second, "thru control is ready", func() bool {
		line, _, whole := strings.Cut(f.control.stdout.String(), "\n")
		return whole && json.Unmarshal([]byte(line), &ready) == nil && len(ready.Joins) == 2
	})
	return ready.Joins["agent"], ready.Joins["operate"]
}

// startAgent starts `thru serve` at a host.
func (f *fleet) startAgent(t *testing.T, host int, where ...string) *program {
	t.Helper()
	part := []string{"even", "odd"}[(host+1)%2]
	args := append([]string{"serve", "--name", fmt.Sprintf("h%d", host+1), "--label", "part=" + part,
		"--data-addr", f.Data(host).String(), "--state", f.homes[host]}, where...)
	return start(t, f.Hosts[host], f.homes[host], "", args...)
}

// join stores the operator's join string under the name fleet.
func (f *fleet) join(t *testing.T, operate string) {
	t.Helper()
	if p := start(t, f.Controller, f.home, operate+"\n", "join", "fleet", "--replace"); p.wait(t, 10*time.Second) != 0 {
		t.Fatal("thru join has failed")
	}
}

// awaitHosts waits until so many hosts are online.
func (f *fleet) awaitHosts(t *testing.T, online int) {
	t.Helper()
	lab.Eventually(t, 20*time.Second, fmt.Sprintf("%d hosts are online", online), func() bool { return f.online(t) == online })
}

// online counts the hosts that `thru hosts` reports as online.
func (f *fleet) online(t *testing.T) int {
	t.Helper()
	p := start(t, f.Controller, f.home, "", "hosts", "fleet", "--json")
	p.wait(t, 20*time.Second)
	var list struct {
		Hosts []struct {
			Online bool `json:"online"`
		} `json:"hosts"`
	}
	if json.Unmarshal([]byte(p.stdout.String()), &list) != nil {
		return -1
	}
	n := 0
	for _, h := range list.Hosts {
		if h.Online {
			n++
		}
	}
	return n
}

// plan starts `thru run` of a plan at the controller's host.
func (f *fleet) plan(t *testing.T, text string, args ...string) *program {
	t.Helper()
	return start(t, f.Controller, f.home, "", append([]string{"run", "--json", planFile(t, text)}, args...)...)
}

// planFile stores a plan.
func planFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// running waits until traffic flows on a host's link: as much as a gigabit link carries in 0.1 s.
func (f *fleet) running(t *testing.T, p *program, host int) {
	t.Helper()
	before := f.Switch.Counters(f.Port(host))
	lab.Eventually(t, 20*time.Second, "traffic runs", func() bool {
		if !p.running() {
			t.Fatalf("the plan ended early with exit %d", p.exit)
		}
		return f.Switch.Counters(f.Port(host)).Sub(before).TxBytes > 10<<20
	})
}

// received returns the payload that each end point of a group received over the whole life of its
// connections, in bytes.
func received(doc measure.Document, group int) map[string]float64 {
	got := map[string]float64{}
	for _, c := range doc.Cells {
		for _, r := range c.Runs {
			for _, fl := range r.Flows {
				if c.Group == group && fl.Receiver != nil {
					got[c.To] += float64(fl.Receiver.TotalBytes)
				}
			}
		}
	}
	return got
}

// together returns the time in which all runs of the first group were measured, by this machine's clock. All
// runs have the same ramp.
func together(doc measure.Document, ramp time.Duration) (begin, end time.Time) {
	for _, c := range doc.Cells {
		for _, r := range c.Runs {
			if c.Group != 0 || r.Timing == nil || r.MeasuredFrom == nil {
				continue
			}
			start := r.MeasuredFrom.Add(-ramp)
			if b := start.Add(time.Duration(r.Timing.StartNs)); b.After(begin) {
				begin = b
			}
			if e := start.Add(time.Duration(r.Timing.EndNs)); end.IsZero() || e.Before(end) {
				end = e
			}
		}
	}
	return begin, end
}

// carried is the rate of payload in bit/s that the ports counted together in a time.
func carried(ports map[string][]lab.Reading, begin, end time.Time) (total float64) {
	for _, all := range ports {
		total += (at(all, end) - at(all, begin)) * 8 / end.Sub(begin).Seconds()
	}
	return total
}

// at is the payload in bytes that a port has sent until a moment, interpolated linearly between two readings.
func at(all []lab.Reading, moment time.Time) float64 {
	i := slices.IndexFunc(all, func(r lab.Reading) bool { return !r.At.Before(moment) })
	switch {
	case i < 0:
		return lab.Payload(all[len(all)-1].TxBytes, all[len(all)-1].TxPackets)
	case i == 0:
		return lab.Payload(all[0].TxBytes, all[0].TxPackets)
	}
	a, b := lab.Payload(all[i-1].TxBytes, all[i-1].TxPackets), lab.Payload(all[i].TxBytes, all[i].TxPackets)
	part := moment.Sub(all[i-1].At).Seconds() / all[i].At.Sub(all[i-1].At).Seconds()
	return a + (b-a)*part
}

// allIdle waits until no agent has a worker, and checks that all still serve.
func (f *fleet) allIdle(t *testing.T) {
	t.Helper()
	for i, h := range f.Hosts {
		lab.Eventually(t, lossLimit+3*time.Second, fmt.Sprintf("h%d has no worker", i+1), func() bool { return len(h.Pids()) == 1 })
		if !f.agents[i].running() {
			t.Errorf("the agent of h%d has ended", i+1)
		}
	}
}
