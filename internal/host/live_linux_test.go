package host

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"thru/internal/measure"
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

// Loopback has no ring to overflow, so 0 is known; mostly it has no queue
// either.
func TestQueuesOfLoopback(t *testing.T) {
	s := New().Read("lo", 0)
	if s.Qdisc == nil || s.Qdisc.Kind == "" || s.NIC == nil || show(s.NIC.RxRing) != uint64(0) {
		t.Errorf("qdisc %+v, interface %+v, missing %v", s.Qdisc, s.NIC, s.Missing)
	}
	if s = New().Read("no-such-if", 0); s.Qdisc != nil || !noted(s.Missing, "qdisc") {
		t.Errorf("an interface that is not there: %+v", s)
	}
}

// Each reading asks the kernel with its own sockets, and closes them.
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

// The times of a core are shares of a total.
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

// A thread in its own network namespace must see its own counters and
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

// ipLink is the output of `ip -d -j link` for an interface.
type ipLink struct {
	Name   string   `json:"ifname"`
	Link   string   `json:"link"`
	Flags  []string `json:"flags"`
	MTU    int      `json:"mtu"`
	MaxMTU int      `json:"max_mtu"`
	Qdisc  string   `json:"qdisc"`
	Master string   `json:"master"`
	Length int      `json:"txqlen"`
	Info   struct {
		Kind string `json:"info_kind"`
		Data struct {
			ID     int64  `json:"id"`
			Local  string `json:"local"`
			Remote string `json:"remote"`
		} `json:"info_data"`
	} `json:"linkinfo"`
}

// inNamespace runs do in its own network namespace, on its own thread.
func inNamespace(t *testing.T, do func() error) {
	t.Helper()
	done := make(chan error)
	denied := false
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
			denied = true
			done <- err
			return
		}
		done <- do()
	}()
	err := <-done
	if denied {
		t.Skipf("needs the right to make a network namespace: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// stack creates a veth pair with several queues, and upper interfaces.
func stack() error {
	attrs := func(name string) netlink.LinkAttrs {
		a := netlink.NewLinkAttrs()
		a.Name = name
		return a
	}
	veth := &netlink.Veth{LinkAttrs: attrs("v0"), PeerName: "v1", PeerNumTxQueues: 4, PeerNumRxQueues: 4}
	if err := netlink.LinkAdd(veth); err != nil {
		return err
	}
	v0, err := netlink.LinkByName("v0")
	if err != nil {
		return err
	}
	bridge := attrs("br0")
	port, vxlan, macvlan := attrs("p0"), attrs("vx0"), attrs("mac0")
	macvlan.ParentIndex = v0.Attrs().Index
	err = errors.Join(
		netlink.AddrAdd(v0, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(198, 51, 100, 1), Mask: net.CIDRMask(24, 32)}}),
		netlink.LinkAdd(&netlink.Bridge{LinkAttrs: bridge}),
		netlink.LinkAdd(&netlink.Veth{LinkAttrs: port, PeerName: "p1"}),
		netlink.LinkAdd(&netlink.Macvlan{LinkAttrs: macvlan, Mode: netlink.MACVLAN_MODE_BRIDGE}),
		netlink.LinkAdd(&netlink.Vxlan{LinkAttrs: vxlan, VxlanId: 7, SrcAddr: net.IPv4(198, 51, 100, 1), Group: net.IPv4(198, 51, 100, 2), Port: 4789}),
	)
	for _, name := range []string{"v0", "v1", "br0", "p0", "p1", "mac0", "vx0"} {
		l, lost := netlink.LinkByName(name)
		if err = errors.Join(err, lost); err != nil {
			return err
		}
		err = netlink.LinkSetUp(l)
		if name == "p0" {
			err = errors.Join(err, netlink.LinkSetMasterByIndex(l, bridgeIndex()))
		}
	}
	// The kernel reports a carrier with some delay.
	for deadline := time.Now().Add(10 * time.Second); err == nil && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		links, listed := netlink.LinkList()
		if err = listed; !slices.ContainsFunc(links, func(l netlink.Link) bool {
			return l.Attrs().Name != "lo" && l.Attrs().Flags&net.FlagRunning == 0
		}) {
			break
		}
	}
	return err
}

func bridgeIndex() int {
	l, err := netlink.LinkByName("br0")
	if err != nil {
		return 0
	}
	return l.Attrs().Index
}

// Interfaces are equal to those of `ip`, in a namespace that /sys does not
// show.
func TestInterfacesAsIPSays(t *testing.T) {
	inNamespace(t, func() error {
		if err := stack(); err != nil {
			return err
		}
		f := New().Facts()
		out, err := exec.Command("ip", "-d", "-j", "link").Output()
		if err != nil {
			t.Skipf("needs the command ip: %v", err)
		}
		var links []ipLink
		if err := json.Unmarshal(out, &links); err != nil {
			return err
		}
		for _, l := range links {
			i := f.Interface(l.Name)
			if i == nil {
				t.Errorf("%s is missing", l.Name)
				continue
			}
			sameAsIP(t, l, *i)
		}
		v1, vx0 := f.Interface("v1"), f.Interface("vx0")
		if v1 == nil || vx0 == nil || v1.Channels == nil || v1.Channels.RXMax != 4 || show(v1.Queues) != v1.Channels.RX || vx0.Tunnel == nil || vx0.Tunnel.Lower != "v0" {
			t.Errorf("v1 %+v, vx0 %+v", v1, vx0)
		}
		return nil
	})
}

// sameAsIP compares one interface.
func sameAsIP(t *testing.T, l ipLink, i measure.Interface) {
	t.Helper()
	kind, master := l.Info.Kind, any(l.Master)
	if kind == "" {
		kind = "loopback"
	}
	if l.Master == "" {
		master = "not checked"
	}
	if show(i.Kind) != kind || show(i.MTU) != l.MTU || show(i.TxLength) != l.Length || show(i.Qdisc) != l.Qdisc || show(i.Master) != master ||
		show(i.Up) != slices.Contains(l.Flags, "UP") || show(i.Carrier) == slices.Contains(l.Flags, "NO-CARRIER") || l.MaxMTU > 0 && show(i.MaxMTU) != l.MaxMTU {
		t.Errorf("%s: ip says %+v, not %+v", l.Name, l, i)
	}
	if kind == "macvlan" && !slices.Equal(i.Lower, []string{l.Link}) || kind == "veth" && i.Lower != nil {
		t.Errorf("%s lies on %q, ip says %q", l.Name, i.Lower, l.Link)
	}
	if d := l.Info.Data; kind == "vxlan" && (i.Tunnel == nil || i.Tunnel.Local != d.Local || i.Tunnel.Remote != d.Remote || show(i.Tunnel.ID) != d.ID) {
		t.Errorf("%s: ip says %+v, not %+v", l.Name, d, i.Tunnel)
	}
}

// Interfaces of this machine are equal to ethtool's output.
func TestOffloadsAsEthtoolSays(t *testing.T) {
	for _, i := range New().Facts().Interfaces {
		out, err := exec.Command("ethtool", "-k", i.Name).Output()
		if err != nil {
			t.Skipf("needs the command ethtool: %v", err)
		}
		for line := range strings.Lines(string(out)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			if on, known := i.Offloads[name]; known && (on != strings.HasPrefix(value, "on") || !slices.Contains(groups(), name) && slices.Contains(i.Fixed, name) != strings.Contains(value, "[fixed]")) {
				t.Errorf("%s: %s is %q, not %v, fixed %q", i.Name, name, value, on, i.Fixed)
			}
		}
	}
}

// groups are ethtool's names for several features at once, which it never
// calls fixed.
func groups() []string {
	return []string{"rx-checksumming", "tx-checksumming", "scatter-gather", "tcp-segmentation-offload", "generic-segmentation-offload", "generic-receive-offload", "large-receive-offload"}
}

// The packets of the queues add up to those of the interface, where they are
// known.
func TestQueueCountersOfThisMachine(t *testing.T) {
	h := New()
	for _, i := range h.Facts().Interfaces {
		var sum uint64
		for _, c := range i.Counters {
			if strings.HasPrefix(c.Queue, "rx-") {
				sum += c.Packets
			}
		}
		if s := h.Read(i.Name, 0); len(i.Counters) > 0 && (s.NIC == nil || sum > s.NIC.RxPackets+s.NIC.RxDropped) {
			t.Errorf("%s: %d packets of queues, %+v of the interface", i.Name, sum, s.NIC)
		}
	}
}

// A route from a given source equals the kernel's, and a source that is not
// local has none.
func TestRouteFrom(t *testing.T) {
	inNamespace(t, func() error {
		if err := stack(); err != nil {
			return err
		}
		h, far := New(), netip.MustParseAddr("198.51.100.9")
		r, err := h.RouteFrom(far, netip.MustParseAddr("198.51.100.1"), "")
		if err != nil || r.Interface != "v0" || r.Source != "198.51.100.1" {
			t.Errorf("%+v, %v", r, err)
		}
		if r, err := h.RouteFrom(far, netip.Addr{}, "v0"); err != nil || r.Interface != "v0" {
			t.Errorf("by device: %+v, %v", r, err)
		}
		if r, err := h.RouteFrom(far, netip.MustParseAddr("203.0.113.1"), ""); err == nil {
			t.Errorf("from a stranger's address: %+v", r)
		}
		return nil
	})
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
