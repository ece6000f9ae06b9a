//go:build long

package lab_test

import (
	"syscall"
	"testing"
	"time"

	"thru/lab"
)

// These tests take up to a minute each: `make lab` runs them, CI does not.

// TestFleetLadder has four rungs of different capacity, and a separate network for control. It is not
// parallel: the lowest rung takes all CPUs.
func TestFleetLadder(t *testing.T) {
	f := startFleet(t, lab.FleetOptions{Rates: []int64{1e9, 600e6, 300e6, 100e6}, Control: true})
	p := f.plan(t, `thru: 1
name: rungs
controller: fleet
end_points: [h1, h2, h3, h4]
rungs:
  - {name: localhost, pair: [h1, h1]}
  - {name: virtual switch, pair: [h1, h2], link_rate: 600M/l2}
  - {name: LAN, pair: [h1, h3], link_rate: 300M/l2}
  - {name: interconnect, pair: [h1, h4], link_rate: 200M/l2}
traffic: {time: 400ms, ramp: 200ms}
gates: off
`)
	if code := p.wait(t, 55*time.Second); code != 3 { // the last rung does not reach the target rate
		t.Errorf("exit %d, want 3", code)
	}
	doc := p.document(t)
	if doc.Ladder == nil || len(doc.Ladder.Rungs) != 4 {
		t.Fatalf("the ladder is %+v", doc.Ladder)
	}
	for i, want := range []float64{0, 600e6, 300e6, 100e6} {
		r := doc.Ladder.Rungs[i]
		if r.Best == nil || want > 0 && !near(r.Best.Value, want*payloadShare, 8) {
			t.Errorf("rung %s: best %+v, want %.0f", r.Name, r.Best, want*payloadShare)
		}
		if pass := r.Verdict != nil && r.Verdict.Pass; i > 0 && pass != (i < 3) {
			t.Errorf("rung %s: verdict %+v", r.Name, r.Verdict)
		}
	}
	// The network of control must carry no data.
	for i := range f.Hosts {
		if c := f.Hosts[i].Counters(lab.ControlDev); c.TxBytes > 20<<20 {
			t.Errorf("h%d has sent %d bytes over the network of control", i+1, c.TxBytes)
		}
	}
}

// TestSSHKilled kills each process in turn, while data flows and while the program is copied: neither end may
// keep a process or file.
func TestSSHKilled(t *testing.T) {
	t.Parallel()
	p := lab.NewPair(t, lab.Options{Rate: gigabit})
	s := startSSHD(t, p.B, p.Data.B4.String(), "", "")
	env := sshClient(t, s.path("user"), s)
	session := func() []int { // the processes of sshd, without the one that listens
		var found []int
		for _, pid := range pidsOf(p.B, "sshd") {
			if pid != s.cmd.Process.Pid {
				found = append(found, pid)
			}
		}
		return found
	}
	for _, tt := range []struct {
		who  string
		pids func(client *program) []int
	}{
		{"ssh", func(*program) []int { return pidsOf(p.A, "ssh") }},
		{"the session of sshd", func(*program) []int { return session() }},
		{"the agent", func(*program) []int { return pidsOf(p.B, "thru")[:1] }},
		{"the shell", func(*program) []int { return pidsOf(p.B, "sh") }},
		{"thru", func(client *program) []int { return []int{client.cmd.Process.Pid} }},
	} {
		t.Run(tt.who, func(t *testing.T) {
			client := startWith(t, p.A, t.TempDir(), "", env, "test", "--json", "-t", "30", "--one-way", "--force", "ssh://"+s.addr)
			underWay(t, p, client, gigabit)
			kill(t, tt.pids(client)...)
			if tt.who != "thru" && tt.who != "the shell" {
				checkPartial(t, client)
			} else if tt.who == "the shell" {
				client.signal(t, syscall.SIGTERM) // the agent no longer needs it
				client.wait(t, lossLimit)
			}
			s.eventuallyClean(t, lossLimit)
			eventuallyIdle(t, p.A, idle{}, lossLimit)
		})
	}
}
