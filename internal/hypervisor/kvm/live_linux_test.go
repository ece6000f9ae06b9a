package kvm

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"thru/internal/measure"
)

// inside tells a copy of this test program that it is in a namespace of its own.
const inside = "THRU_TEST_INSIDE"

// TestLive reads a real QEMU whose CPUs are stopped, so that it costs
// nothing, in its own network namespace: it runs this program again, since
// all of its threads must be there.
func TestLive(t *testing.T) {
	program, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		t.Skip("qemu-system-x86_64 is not installed")
	}
	if os.Geteuid() != 0 {
		t.Skip("only root makes network namespaces and taps")
	}
	if os.Getenv(inside) != "" {
		testLive(t, program)
		return
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLive$", "-test.v", "-test.timeout=60s")
	c.Env = append(os.Environ(), inside+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	out, err := c.CombinedOutput()
	switch {
	case errors.Is(err, syscall.EPERM):
		t.Skip("no network namespace can be made here:", err)
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	case bytes.Contains(out, []byte("--- SKIP")):
		t.Skipf("%s", out)
	}
}

// testLive makes QEMU open one tap by its name and passes it another one as a
// file descriptor.
func testLive(t *testing.T, program string) {
	files, hasVLANs, err := bridgeWithTaps("named0", "passed0")
	if err != nil {
		t.Skip("no bridge with taps can be made here:", err)
	}
	const uuid = "4dea22b3-1d52-d8f3-2516-782e98ab3fa0"
	c := exec.CommandContext(t.Context(), program, "-S", "-name", "guest=thru-live,debug-threads=on", "-uuid", uuid, "-machine", "q35,accel=tcg",
		"-m", "16", "-smp", "2,cores=2", "-nodefaults", "-display", "none",
		"-netdev", "tap,id=n0,ifname=named0,script=no,downscript=no", "-device", "virtio-net-pci,romfile=,netdev=n0,id=net0,mac=52:54:00:00:00:01",
		"-netdev", `{"type":"tap","fd":"3","id":"n1"}`, "-device", `{"driver":"e1000","romfile":"","netdev":"n1","id":"net1","mac":"52:54:00:00:00:02"}`)
	c.ExtraFiles, c.Stderr = files, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { c.Process.Kill(); c.Wait() }()
	h := New("here")
	v := waitFor(t, h, uuid)
	g := &v.Guests[0]
	if *g.PID != c.Process.Pid || *g.Memory != 16<<20 || *g.Hardware != "q35" || g.Host != hostID {
		t.Errorf("%+v", g)
	}
	vlan := map[bool]any{true: "1", false: nil}[hasVLANs]
	for i, want := range [][]any{{"virtio", "named0"}, {"e1000", "passed0"}} {
		n := g.NICs[i]
		check(t, n.Name, []any{show(n.Model), show(n.Device), n.Key, n.Switch, show(n.VLAN), show(n.MTU)}, []any{want[0], want[1], want[1], "bridge:br0", vlan, 1400})
	}
	s := v.Switch("bridge:br0")
	check(t, "bridge", []any{show(s.Ports), show(s.VLANs)}, []any{2, hasVLANs})
	watchLive(t, h, g.ID)
}

// waitFor waits until QEMU has opened its taps and started its threads.
func waitFor(t *testing.T, h *Host, uuid string) measure.Inventory {
	t.Helper()
	for {
		v, err := h.Inventory(t.Context(), func(g *measure.Guest) bool { return g.UUID == uuid }, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(v.Guests) == 1 {
			g := v.Guests[0]
			isReady := len(g.Pins) == 0 && *g.CPUs == 2 && slices.ContainsFunc(g.Threads, func(th measure.GuestThread) bool { return th.CPU != nil && *th.CPU == 1 })
			if isReady && g.NICs[0].Device != nil && g.NICs[1].Device != nil {
				return v
			}
		}
		time.Sleep(20 * time.Millisecond) // the test's own time limit ends it
	}
}

// watchLive takes one sample of the real counters.
func watchLive(t *testing.T, h *Host, id string) {
	t.Helper()
	w, err := h.Watch(t.Context(), []string{id, hostID, "vm:gone"})
	if err != nil {
		t.Fatal(err)
	}
	series, missing := w.End(t.Context())
	got := map[string]int{}
	for _, s := range series {
		got[fmt.Sprint(s.Of, "|", s.Instance, "|", s.Counter)] = len(s.Samples)
	}
	for _, want := range []string{id + "||" + measure.CounterReady, id + "|1|" + measure.CounterUsed, id + "|passed0|" + measure.CounterRxBps, id + "|main thread|" + measure.CounterThread, "host||" + measure.CounterUsage} {
		if got[want] != 1 {
			t.Errorf("%d samples of %s, want 1: %v", got[want], want, got)
		}
	}
	if !noted(missing, "series.vm:gone", "no guest") {
		t.Error(missing)
	}
}

// bridgeWithTaps makes br0 with two taps, the second one open.
func bridgeWithTaps(named, passed string) (files []*os.File, hasVLANs bool, err error) {
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}, VlanFiltering: new(true)}
	if err = netlink.LinkAdd(bridge); err != nil {
		bridge.VlanFiltering = nil // a kernel without it
		if err := netlink.LinkAdd(bridge); err != nil {
			return nil, false, err
		}
	}
	hasVLANs, err = err == nil, nil
	for _, name := range []string{named, passed} {
		tap := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: name}, Mode: netlink.TUNTAP_MODE_TAP, Flags: netlink.TUNTAP_NO_PI | netlink.TUNTAP_VNET_HDR}
		if name == passed {
			tap.Queues = 1
		}
		err = errors.Join(err, netlink.LinkAdd(tap), netlink.LinkSetMaster(tap, bridge), netlink.LinkSetMTU(tap, 1400), netlink.LinkSetUp(tap))
		files = append(files, tap.Fds...)
	}
	if err == nil && len(files) != 1 {
		err = fmt.Errorf("%d files of taps are open", len(files))
	}
	return files, hasVLANs, err
}
