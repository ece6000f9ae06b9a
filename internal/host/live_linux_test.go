package host

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
)

// traffic sends n bytes over loopback.
func traffic(t *testing.T, n int64) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		c, err := net.Dial("tcp4", l.Addr().String())
		if err == nil {
			_, err = c.Write(make([]byte, n))
			err = errors.Join(err, c.Close())
		}
		done <- err
	}()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := io.Copy(io.Discard, c)
	if err := errors.Join(err, <-done); err != nil || got != n {
		t.Fatalf("loopback carried %d of %d bytes: %v", got, n, err)
	}
}

func TestThisMachine(t *testing.T) {
	f := New().Facts()
	if f.Hostname == nil || f.Kernel == nil || f.Cores == nil || *f.Cores < 1 || f.Memory == nil || *f.Memory < 1<<20 {
		t.Errorf("host, kernel, cores or memory missing: %v", f.NotChecked)
	}
	lo := f.Interface("lo")
	if lo == nil {
		t.Fatalf("no loopback among %+v", f.Interfaces)
	}
	if show(lo.Up) != true || show(lo.Nominal) != true || !slices.Contains(lo.Addrs, "127.0.0.1/8") {
		t.Errorf("loopback: %+v, %v", lo, f.NotChecked)
	}
	if _, ok := lo.Offloads["generic-receive-offload"]; !ok && !noted(f.NotChecked, "interfaces.lo.offloads") {
		t.Errorf("offloads of loopback: %v", lo.Offloads)
	}
}

func TestCountersRise(t *testing.T) {
	const n = 4 << 20
	h := New()
	before := h.Read("lo", os.Getpid())
	traffic(t, n)
	s := Span(before, h.Read("lo", os.Getpid()), before.Taken)
	if s.NIC == nil || s.NIC.RxBytes < n || s.NIC.TxBytes < n || s.NIC.RxPackets == 0 {
		t.Errorf("interface: %+v, missing %v", s.NIC, before.Missing)
	}
	if s.Proto["Tcp.InSegs"] == 0 || s.Proto["IpExt.InOctets"] < n || s.Proto["Tcp.ActiveOpens"] == 0 {
		t.Errorf("protocol: %v", s.Proto)
	}
	var processed uint64
	for _, c := range s.Softnet {
		processed += c.Processed
	}
	if processed == 0 {
		t.Errorf("softnet: %+v", s.Softnet)
	}
	if s.Worker == nil || s.Worker.ResidentB < 1<<20 || s.Worker.UserNs < 0 {
		t.Errorf("worker: %+v", s.Worker)
	}
	if s.Memory == nil || s.Memory.Available > s.Memory.Total || s.At != 0 || s.Span <= 0 {
		t.Errorf("%+v", s)
	}
}

func TestPlacementOfThisMachine(t *testing.T) {
	h := New()
	p := h.PlacementFacts("lo")
	if len(p.Allowed) == 0 || !slices.IsSorted(p.Allowed) || p.Local != nil || !noted(p.Missing, "numa_node") {
		t.Errorf("loopback: %+v", p)
	}
	q := p.Query()
	q.Loopback = true
	if cpus, _ := Placement(q); !slices.Equal(cpus, p.Allowed[len(p.Allowed)-1:]) {
		t.Errorf("the first stream over loopback runs on %d of %d", cpus, p.Allowed)
	}
	if p = h.PlacementFacts("no-such-if"); !noted(p.Missing, "interface") || len(p.Allowed) == 0 {
		t.Errorf("an interface that is not there: %+v", p)
	}
}

// Loopback has no ring to overflow, which is known; most often it has no queue either.
func TestQueuesOfLoopback(t *testing.T) {
	s := New().Read("lo", 0)
	if s.Qdisc == nil || s.Qdisc.Kind == "" || s.NIC == nil || show(s.NIC.RxRing) != uint64(0) {
		t.Errorf("qdisc %+v, interface %+v, missing %v", s.Qdisc, s.NIC, s.Missing)
	}
	if s = New().Read("no-such-if", 0); s.Qdisc != nil || !noted(s.Missing, "qdisc") {
		t.Errorf("an interface that is not there: %+v", s)
	}
}

// Each reading asks the kernel by sockets of its own.
func TestReadLeavesNoFiles(t *testing.T) {
	files := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	h := New()
	h.Read("lo", os.Getpid())
	before := files()
	for range 50 {
		h.Read("lo", os.Getpid())
		h.Read("no-such-if", 0)
	}
	if after := files(); after > before {
		t.Errorf("%d files open before 100 readings, %d after", before, after)
	}
}

// Each time of a core is a share of a whole.
func TestCPUOfThisMachine(t *testing.T) {
	h := New()
	before := h.Read("", 0)
	var s = Span(before, before, before.Taken)
	for deadline := time.Now().Add(10 * time.Second); len(s.CPUs) == 0 && time.Now().Before(deadline); {
		traffic(t, 1<<20) // until some core's clock has ticked
		s = Span(before, h.Read("", 0), before.Taken)
	}
	if len(s.CPUs) == 0 {
		t.Fatal("no core has spent any time")
	}
	for _, c := range s.CPUs {
		if all := c.Busy() + c.Idle; all < 99.99 || all > 100.01 {
			t.Errorf("core %d: the shares add up to %v", c.Core, all)
		}
	}
}

func TestRoute(t *testing.T) {
	h := New()
	for name, route := range map[string]func(netip.Addr) (string, string, int, error){
		"kernel": func(a netip.Addr) (string, string, int, error) {
			r, err := h.Route(a)
			return r.Interface, r.Source, r.MTU, err
		},
		"portable": func(a netip.Addr) (string, string, int, error) {
			r, err := portableRoute(a)
			return r.Interface, r.Source, r.MTU, err
		},
	} {
		for _, a := range []string{"127.0.0.1", "::ffff:127.0.0.1"} {
			iface, source, mtu, err := route(netip.MustParseAddr(a))
			if err != nil || iface != "lo" || source != "127.0.0.1" || mtu < 1500 {
				t.Errorf("%s: route to %s: %q from %q, MTU %d, %v", name, a, iface, source, mtu, err)
			}
		}
		if _, _, _, err := route(netip.Addr{}); err == nil {
			t.Errorf("%s: no address has a route", name)
		}
	}
}

// A thread in a network namespace of its own must see its own counters and
// interfaces, though the process and /sys are elsewhere.
func TestOtherNamespace(t *testing.T) {
	traffic(t, 1<<10)
	type seen struct {
		err   error
		lo    uint64
		opens uint64
		names []string
		route error
	}
	got := make(chan seen)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
			got <- seen{err: err}
			return
		}
		h := New()
		s := h.Read("lo", 0)
		var v seen
		if s.NIC != nil {
			v.lo = s.NIC.RxBytes
		}
		v.opens = s.Proto["Tcp.ActiveOpens"]
		for _, i := range h.Facts().Interfaces {
			v.names = append(v.names, i.Name)
		}
		_, v.route = h.Route(netip.MustParseAddr("192.0.2.77"))
		got <- v
	}()
	v := <-got
	if v.err != nil {
		t.Skipf("needs the right to make a network namespace: %v", v.err)
	}
	host := New().Read("lo", 0)
	if host.NIC == nil || host.NIC.RxBytes == 0 {
		t.Fatalf("no traffic on loopback: %v", host.Missing)
	}
	if v.lo != 0 || v.opens != 0 {
		t.Errorf("the new namespace shows %d bytes, %d connections of the old one", v.lo, v.opens)
	}
	if !slices.Contains(v.names, "lo") || slices.Contains(v.names, "eth0") {
		t.Errorf("interfaces of the new namespace: %q", v.names)
	}
	if v.route == nil {
		t.Error("a namespace without routes has one")
	}
}

func BenchmarkRead(b *testing.B) {
	h := New()
	for b.Loop() {
		h.Read("lo", os.Getpid())
	}
}

func BenchmarkReadQueues(b *testing.B) {
	k := runningKernel()
	for b.Loop() {
		_, err1 := k.qdisc("lo")
		_, err2 := k.rxRing("lo")
		if err := errors.Join(err1, err2); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPlacementFacts(b *testing.B) {
	h := New()
	for b.Loop() {
		h.PlacementFacts("eth0")
	}
}

func BenchmarkFacts(b *testing.B) {
	h := New()
	for b.Loop() {
		h.Facts()
	}
}
