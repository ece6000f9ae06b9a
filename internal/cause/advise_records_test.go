package cause

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"thru/internal/cause/advise"
	"thru/internal/cause/scene"
	"thru/internal/measure"
	"thru/lab/faults"
)

// record is the diagnosed document of a fault that was measured on real kernels.
func record(t testing.TB, name string) *measure.Document {
	t.Helper()
	file, err := os.Open("testdata/faults/" + name + ".json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := faults.ReadRecord(file)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	Diagnose(r.Document)
	return r.Document
}

// ids returns those of proposals in order; in brackets those that thru does not make itself.
func ids(list []measure.Proposal) string {
	var all []string
	for _, p := range list {
		if p.OnlySaid != "" {
			p.ID = "(" + p.ID + ")"
		}
		all = append(all, p.ID)
	}
	return strings.Join(all, " ")
}

// TestRecords checks the proposals for each fault that was measured on real kernels. They are stored results, so
// the route of a congestion control is not known.
func TestRecords(t *testing.T) {
	files, err := filepath.Glob("testdata/faults/*.json.gz")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no records: %v", err)
	}
	want := records()
	for _, name := range files {
		name = strings.TrimSuffix(filepath.Base(name), ".json.gz")
		w, ok := want[name]
		d := record(t, name)
		list := Propose(d, advise.Seen{})
		if got := ids(list); got != w || !ok {
			t.Errorf("%s\ngot  %s\nwant %s", name, got, w)
		}
		if again := Propose(d, advise.Seen{}); !reflect.DeepEqual(list, again) {
			t.Errorf("%s: proposed otherwise the second time", name)
		}
		holdSoundProposals(t, name, list)
		if strings.HasPrefix(name, "healthy-") && slices.ContainsFunc(list, func(p measure.Proposal) bool { return p.OnlySaid == "" }) {
			t.Errorf("%s: a healthy path is to be changed: %s", name, ids(list))
		}
	}
}

// records returns the expected proposal ids, in order, by record.
func records() map[string]string {
	return map[string]string{
		"app-limited-1K":                 "length=1M lean streams=2",
		"app-limited-64":                 "length=1M lean streams=2",
		"broken-tso-far":                 "tso@local:data0 gso@local:data0+tso@local:data0 (route-congestion@local) (cpu-steal@local) (cpu-steal@10.77.0.2)",
		"broken-tso-jumbo":               "tso@local:data0 gso@local:data0+tso@local:data0 (cpu-steal@local) (cpu-steal@10.77.0.2)",
		"broken-tso":                     "tso@local:data0 gso@local:data0+tso@local:data0",
		"cap-per-flow":                   "streams=16 (lag-one-member@local->10.77.0.2) (noisy-neighbour@local) (noisy-neighbour@10.77.0.2)",
		"captured-loss-and-reordering-r": "(loss@10.77.0.1->10.77.0.2) (reordering@10.77.0.1->10.77.0.2)",
		"captured-reordering-5-18ms-r":   "(reordering@10.77.0.1->10.77.0.2)",
		"captured-reordering-5-60ms-r":   "(reordering@10.77.0.1->10.77.0.2)",
		"captured-reordering-5-60ms-s":   "(reordering@10.77.0.1->10.77.0.2)",
		"captured-reordering-borne-r":    "(reordering@10.77.0.1->10.77.0.2)",
		"cpu-quota-sender":               "(cpu-quota@local) lean streams=2",
		"cpu-quota":                      "(cpu-quota@10.77.0.2) rps@10.77.0.2:data0 (route-congestion@local) (policer@local->10.77.0.2) lean streams=2",
		"firewall-cost":                  "(firewall-cost@10.77.0.2) streams=8 lean",
		"fixed-window-receiver":          "window=default",
		"fixed-window":                   "window=default",
		"healthy-1000M-0ms":              "(shaper@local:data0) (shaper@10.77.0.2:data0)",
		"healthy-1000M-20ms":             "",
		"healthy-1000M-2ms":              "(noisy-neighbour@local) (noisy-neighbour@10.77.0.2)",
		"healthy-1000M-80ms":             "",
		"healthy-200M-20ms":              "(cpu-steal@local) (cpu-steal@10.77.0.2)",
		"healthy-200M-2ms":               "",
		"healthy-200M-80ms":              "",
		"healthy-2500M-0ms":              "(shaper@local:data0) (shaper@10.77.0.2:data0)",
		"healthy-2500M-20ms":             "(cpu-steal@local) (cpu-steal@10.77.0.2)",
		"healthy-2500M-2ms":              "(cpu-steal@local) (cpu-steal@10.77.0.2)",
		"healthy-50M-0ms":                "(shaper@local:data0) (shaper@10.77.0.2:data0)",
		"healthy-50M-20ms":               "",
		"healthy-50M-80ms":               "",
		"healthy-bbr":                    "",
		"healthy-jumbo":                  "(shaper@local:data0) (shaper@10.77.0.2:data0)",
		"healthy-streams":                "",
		"healthy-udp":                    "",
		"healthy-window":                 "",
		"jumbo-mismatch":                 "mtu@10.77.0.2:data0+mtu@local:data0 (jumbo-mismatch@local->10.77.0.2) mtu-probing@local (cpu-steal@local) (cpu-steal@10.77.0.2)",
		"lag-four-members":               "streams=16 (lag-one-member@local->10.77.0.2)",
		"lag-one-member":                 "streams=8 (lag-one-member@local->10.99.0.2) (shaper@local:ctl0) (shaper@10.99.0.2:ctl0)",
		"loopback-paced":                 "congestion-control@local test-congestion=cubic lean streams=2",
		"loopback":                       "lean streams=2",
		"loss-0.01":                      "(route-congestion@local) (loss@local->10.77.0.2)",
		"loss-0.1":                       "(route-congestion@local) (loss@local->10.77.0.2) (noisy-neighbour@local)",
		"loss-1":                         "(route-congestion@local) (loss@local->10.77.0.2) (noisy-neighbour@local) (noisy-neighbour@10.77.0.2)",
		"loss-burst":                     "(route-congestion@local) (loss@local->10.77.0.2)",
		"loss-one-way":                   "(route-congestion@10.77.0.2) (loss@10.77.0.2->local)",
		"mss-clamp":                      "(mss-clamp@local->10.77.0.2) (mss-clamp@10.77.0.2->local)",
		"mtu-black-hole-1400":            "mtu-probing@local mtu@local:data0 (mtu-black-hole@local->10.78.0.1) mtu-probing@10.78.0.1 mtu@10.78.0.1:data0",
		"mtu-black-hole-back":            "mtu-probing@10.77.0.2 mtu@10.77.0.2:data0+mtu@local:data0 (mtu-black-hole@10.77.0.2->local) (shaper@local->10.77.0.2)",
		"mtu-black-hole":                 "mtu-probing@local mtu@local:data0 (mtu-black-hole@local->10.78.0.1) mtu@10.78.0.1:data0",
		"offloads-off":                   "gso@local:data0+tso@local:data0+tx-checksum@local:data0 (route-congestion@local) (reordering@local->10.77.0.2) lean streams=2",
		"policer-fast":                   "(route-congestion@local) (policer@local->10.77.0.2) (cpu-steal@local) (cpu-steal@10.77.0.2)",
		"policer":                        "(route-congestion@local) (policer@local->10.77.0.2)",
		"receive-window-1g":              "tcp-rmem@10.77.0.2 (cpu-steal@local) (cpu-steal@10.77.0.2)",
		"receive-window-back":            "tcp-rmem@local (cpu-steal@10.77.0.2)",
		"receive-window":                 "tcp-rmem@10.77.0.2",
		"receiver-cpu":                   "rps@10.77.0.2:data0 (route-congestion@local) (policer@local->10.77.0.2) (loss@local->10.77.0.2) (noisy-neighbour@local) (noisy-neighbour@10.77.0.2) lean streams=2",
		"reordering-little":              "(route-congestion@local) (reordering@local->10.77.0.2)",
		"reordering-often":               "(route-congestion@local) (reordering@local->10.77.0.2)",
		"reordering":                     "(route-congestion@local) (reordering@local->10.77.0.2) (policer@local->10.77.0.2)",
		"sack-off-queue":                 "sack@local tso@local:data0 gso@local:data0+tso@local:data0 (route-congestion@local)",
		"sack-off":                       "(route-congestion@local) (loss@local->10.77.0.2) sack@local (policer@local->10.77.0.2)",
		"send-buffer-back":               "tcp-wmem@10.77.0.2 (noisy-neighbour@local) (noisy-neighbour@10.77.0.2)",
		"send-buffer":                    "tcp-wmem@local (cpu-steal@local) (cpu-steal@10.77.0.2) (noisy-neighbour@local) (noisy-neighbour@10.77.0.2)",
		"send-buffer-bursts":             "tcp-wmem@local (noisy-neighbour@local)",
		"broken-tso-jumbo-falls":         "tso@local:data0 gso@local:data0+tso@local:data0 (token-bucket@local->10.77.0.2)",
		"loss-0.01-falls":                "(route-congestion@local) (loss@local->10.77.0.2) (policer@local->10.77.0.2) (token-bucket@local->10.77.0.2)",
		"sender-cpu":                     "(noisy-neighbour@local) (noisy-neighbour@10.77.0.2) lean streams=2",
		"shaper-one-way":                 "(shaper@local->10.77.0.2) (cpu-steal@local) (cpu-steal@10.77.0.2)",
		"shaper-own":                     "(shaper@local:data0)",
		"shaper":                         "(shaper@local->10.77.0.2)",
		"slow-convergence":               "no-metrics-save@local slow-start-after-idle@local",
		"slow-reader":                    "(slow-reader@10.77.0.2)",
		"timestamps-off":                 "(timestamps@local)",
		"token-bucket":                   "(token-bucket@local->10.77.0.2)",
		"unstated-1000M-0ms":             "(shaper@local:data0) (noisy-neighbour@local) (noisy-neighbour@10.77.0.2)",
		"unstated-200M-20ms":             "(shaper@local->10.77.0.2)",
		"veth":                           "lean streams=2",
		"window-scaling-off":             "window-scaling@local",
		"window-scaling-stripped":        "(window-scaling-off@local->10.77.0.2) (noisy-neighbour@local)",
	}
}

// holdSoundProposals checks what must be true of every proposal.
func holdSoundProposals(t testing.TB, name string, list []measure.Proposal) {
	t.Helper()
	seen := map[string]bool{}
	for _, p := range list {
		switch {
		case p.ID == "" || p.Title == "" || p.Why == "" || p.Cause == "" && p.Gate == "":
			t.Errorf("%s: half a proposal: %+v", name, p)
		case seen[p.ID]:
			t.Errorf("%s: %s comes twice", name, p.ID)
		case p.OnlySaid == "" && len(p.Settings) == 0 && p.Test == nil:
			t.Errorf("%s: %s sets nothing", name, p.ID)
		case len(p.Settings) > 0 && p.Expect == "":
			t.Errorf("%s: %s expects nothing", name, p.ID)
		case len(p.Settings) > 0 && len(p.Commands) == 0:
			t.Errorf("%s: %s has no commands", name, p.ID)
		case p.ExpectBps != nil && !(*p.ExpectBps > 0 && *p.ExpectBps <= scene.MostRate):
			t.Errorf("%s: %s expects %v", name, p.ID, *p.ExpectBps)
		}
		seen[p.ID] = true
		for _, text := range []string{p.ID, p.Title, p.Why, p.Expect, p.Risk, p.OnlySaid} {
			for _, word := range []string{"NaN", "Inf", "%!", "\x1b", "\n"} {
				if strings.Contains(text, word) {
					t.Errorf("%s: %q in %q", name, word, text)
				}
			}
		}
	}
}
