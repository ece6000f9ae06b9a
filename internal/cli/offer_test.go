package cli

import (
	"net"
	"testing"
	"time"

	"thru/internal/agent"
	counts "thru/internal/agent/probing"
	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/watch/metrics"
)

// values returns the values of families by name and labels.
func values(all []metrics.Family) map[string]float64 {
	found := map[string]float64{}
	for _, f := range all {
		for _, p := range f.Points {
			name := f.Name
			for i := 1; i < len(p.Labels); i += 2 {
				name += " " + p.Labels[i]
			}
			found[name] = p.Value
		}
	}
	return found
}

// TestFamilies: what is known is there, and what was not measured is absent.
func TestFamilies(t *testing.T) {
	at := time.Now()
	s := agent.Stats{Sessions: 2, Opened: 5, Waiting: new(1), Probes: map[string]counts.Counts{"b": {Sent: 10, Received: 8, Lost: 2}}}
	all := agentFamilies("1", s, lastTest{map[string]float64{"sent": 8e9}, at})
	got := values(all)
	for name, want := range map[string]float64{
		"thru_sessions": 2, "thru_sessions_opened": 5, "thru_results_waiting": 1, "thru_probes_sent b": 10, "thru_probes_received b": 8, "thru_probes_lost b": 2,
		"thru_test_goodput_bytes_per_second sent": 1e9,
	} {
		if v, is := got[name]; !is || v != want {
			t.Errorf("%s is %v, want %v", name, v, want)
		}
	}
	if last := all[len(all)-1].Points[0]; !last.At.Equal(at) {
		t.Errorf("the test has the time %v, want its own %v", last.At, at)
	}
	got = values(agentFamilies("1", agent.Stats{}, lastTest{}))
	for _, name := range []string{"thru_results_waiting", "thru_probes_sent b", "thru_test_goodput_bytes_per_second sent"} {
		if v, is := got[name]; is {
			t.Errorf("%s is %v though it was not measured", name, v)
		}
	}
	got = values(fleetFamilies("1", []bus.Host{{Online: true}, {Online: true, Busy: "a to b", Waiting: 2}, {Waiting: 1}, {Online: true, Refused: "taken"}}, 7))
	for name, want := range map[string]float64{
		"thru_hosts free": 1, "thru_hosts busy": 1, "thru_hosts offline": 1, "thru_hosts refused": 1, "thru_results_waiting": 3, "thru_results_stored": 7,
	} {
		if v, is := got[name]; !is || v != want {
			t.Errorf("%s is %v, want %v", name, v, want)
		}
	}
}

// TestOffer: an address that cannot be used is an error with a hint.
func TestOffer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for address, code := range map[string]int{"127.0.0.1": fault.Usage, "127.0.0.1:x": fault.Usage, l.Addr().String(): fault.Failed} {
		if _, err := offer(address); fault.Code(err) != code || fault.Hint(err) == "" {
			t.Errorf("%s: %v, hint %q", address, err, fault.Hint(err))
		}
	}
}
