package cause

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"thru/internal/cause/scene"
	"thru/internal/host/platform"
	"thru/internal/measure"

	"github.com/rogpeppe/go-internal/txtar"
)

// recorded answers the commands of a system from a sample of package platform: outputs by the commands that print
// them.
type recorded map[string]string

func (r recorded) Run(_ context.Context, name string, args ...string) ([]byte, error) {
	line := strings.Join(append([]string{name}, args...), " ")
	for n := len(line); n > 0; n = strings.LastIndexByte(line[:n], ' ') {
		if out, ok := r[line[:n]]; ok {
			return []byte(out), nil
		}
	}
	return nil, fmt.Errorf("running %s: %w", name, exec.ErrNotFound)
}

// factsOf reads a sample, with a replacement in its outputs if a pattern is given.
func factsOf(t *testing.T, system, sample, pattern, replacement string) *measure.Facts {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("../host/platform/testdata", sample+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	r, place, changed := recorded{}, regexp.MustCompile(pattern), pattern == ""
	for _, f := range a.Files {
		if r[f.Name] = string(f.Data); pattern == "" {
			continue
		}
		r[f.Name] = place.ReplaceAllString(string(f.Data), replacement)
		changed = changed || r[f.Name] != string(f.Data)
	}
	if !changed {
		t.Fatalf("%s: nothing is like %s", sample, pattern)
	}
	f, err := platform.Read(t.Context(), system, r)
	if err != nil {
		t.Fatal(err)
	}
	return &f
}

// TestCountersOfSystems: drops and errors are found under each system's real names.
func TestCountersOfSystems(t *testing.T) {
	const many = "${1}70007"
	for _, c := range []struct{ system, sample, nic, rule, pattern, counter string }{
		{"freebsd", "freebsd-13", "ix0", "link-errors", `(?m)^(ix0 +\d+ +<Link#\d+> +\S+ +\d+ +)\d+`, "Ierrs"},
		{"freebsd", "freebsd-13", "ix0", "rings", `(?m)^(ix0 +\d+ +<Link#\d+> +\S+ +\d+ +\d+ +)\d+`, "Idrop"},
		{"darwin", "macos-14", "en0", "link-errors", `(?m)^(en0 +\d+ +<Link#\d+> +\S+ +\d+ +)\d+`, "Ierrs"},
		{"windows", "windows-2019", "Ethernet0", "rings", `("ReceivedDiscardedPackets": ?)\d+`, "ReceivedDiscardedPackets"},
		{"windows", "windows-2019", "Ethernet0", "link-errors", `("ReceivedPacketErrors": ?)\d+`, "ReceivedPacketErrors"},
		{"illumos", "omnios", "ixgbe0", "link-errors", `(ixgbe0:ierrors\s+)\d+`, "ierrors"},
		{"illumos", "omnios", "ixgbe0", "rings", `(ixgbe0:norcvbuf\s+)\d+`, "norcvbuf"},
		{"esxi", "esxi-7", "vmnic0", "link-errors", `(Receive CRC errors: )\d+`, "Receive CRC errors"},
		{"esxi", "esxi-7", "vmnic0", "rings", `(Receive missed errors: )\d+`, "Receive missed errors"},
	} {
		f := factsOf(t, c.system, c.sample, c.pattern, many)
		i := f.Interface(c.nic)
		if i == nil {
			t.Fatalf("%s: no %s", c.sample, c.nic)
		}
		i.Nominal = new(false) // some samples are of guests, where the wire is not judged
		s := scene.Subject{Ends: []scene.End{{Name: "local", Facts: f, Route: &measure.Route{Interface: c.nic}}}}
		g, _ := of(Judge(s), c.rule)
		if g.Status != warn_ || !strings.Contains(g.Fact, "70007") || !strings.Contains(g.Fact, c.counter) {
			t.Errorf("%s, %s: %s; counters %v", c.sample, c.counter, gateText(g), i.Errors)
		}
	}
}

// TestSlotsOfSystems: a slot is judged wherever its link is known.
func TestSlotsOfSystems(t *testing.T) {
	for _, c := range []struct{ system, sample, nic, rule, status, fact string }{
		{"freebsd", "freebsd-13", "ix0", "pcie-bandwidth", pass_, "PCIe 2 x4 of ix0 carries 13.9 Gb/s"},
		{"freebsd", "freebsd-13", "ix0", "pcie-trained", pass_, "its card supports PCIe 2 x8; what the slot supports is not known"},
		{"windows", "windows-2022", "SLOT 3 Port 1", "pcie-bandwidth", fail_, "carries 109 Gb/s"},
		{"esxi", "esxi-7", "vmnic0", "pcie-bandwidth", none_, "PCIe bandwidth of vmnic0: the commands of this system do not report it"},
	} {
		f := factsOf(t, c.system, c.sample, "", "")
		s := scene.Subject{LinkBps: 10e9, Ends: []scene.End{{Name: "local", Facts: f, Route: &measure.Route{Interface: c.nic}}}}
		if c.status == fail_ {
			s.LinkBps = 200e9
		}
		if g, _ := of(Judge(s), c.rule); g.Status != c.status || !strings.Contains(g.Fact, c.fact) {
			t.Errorf("%s: %s", c.sample, gateText(g))
		}
	}
}

// TestPowerOfSystems: the power-saving plans are recognised by package platform's names for them.
func TestPowerOfSystems(t *testing.T) {
	const plan, policy = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`, `(?s)(Path: /Power/CpuPolicy.*?\n +String Value: )[^\n]*`
	for _, c := range []struct{ system, sample, pattern, replacement, status, fact string }{
		{"windows", "windows-2022", plan, "a1841308-3541-4fab-bc81-f71556f20b4a", warn_, "power saver"},
		{"windows", "windows-2022", plan, "381b4222-f694-41f0-9685-ff5bb260df2e", pass_, "balanced"},
		{"windows", "windows-2022", plan, "8C5E7FDA-e8bf-4a96-9a85-a6e23a8c635c", pass_, "high performance"},
		{"esxi", "esxi-7", policy, "${1}Low Power", warn_, "Low Power"},
		{"esxi", "esxi-7", policy, "${1}Balanced ", pass_, "Balanced"},
		{"esxi", "esxi-7", policy, "${1}High Performance ", pass_, "High Performance"},
	} {
		f := factsOf(t, c.system, c.sample, c.pattern, c.replacement)
		f.Hypervisor = new("none")
		if g, _ := of(Judge(scene.Subject{Ends: []scene.End{{Name: "local", Facts: f}}}), "governor"); g.Status != c.status || !strings.Contains(g.Fact, c.fact) {
			t.Errorf("%s, %s: %s", c.sample, c.fact, gateText(g))
		}
	}
}

// TestCountedOnce: packets that two counters count are counted once, and those of several queues are added.
func TestCountedOnce(t *testing.T) {
	for _, c := range []struct {
		class    scene.Class
		counters map[string]uint64
		want     uint64
		name     string
	}{
		{scene.NoRoom, map[string]uint64{"rx_missed_errors": 60, "rx_out_of_buffer": 60}, 60, "rx_missed_errors"},
		{scene.NoRoom, map[string]uint64{"Rx Queue#0 pkts rx OOB": 70, "Rx Queue#1 pkts rx OOB": 80, "rx_missed_errors": 9}, 150, "Rx Queue#1 pkts rx OOB"},
		{scene.WireErrors, map[string]uint64{"rx_crc_errors": 60, "port.rx_crc_errors": 61, "tx_dropped": 900}, 61, "port.rx_crc_errors"},
		{scene.WireErrors, map[string]uint64{"rx0_crc": ^uint64(0), "rx1_crc": 2}, ^uint64(0), "rx0_crc"},
		{scene.WireErrors, nil, 0, ""},
	} {
		f := &scene.Face{Interface: &measure.Interface{Errors: c.counters}, Host: &scene.Host{System: "linux"}}
		if n, name := f.Counted(c.class); n != c.want || name != c.name {
			t.Errorf("%v: %d by %q, want %d by %q", c.counters, n, name, c.want, c.name)
		}
	}
}
