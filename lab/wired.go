package lab

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"thru/lab/wire"
)

// netnsDir is where ip-netns(8) keeps namespaces.
const netnsDir = "/var/run/netns/"

// wiredBuffer is the maximum of a TCP socket's buffers, in bytes: 5 Gb/s over 50 ms need half of it.
const wiredBuffer = 64 << 20

// WiredOptions configure a Wired. The zero value is a fast path of MTU 1500 with cubic, and hosts that may
// have 64 MB in flight.
type WiredOptions struct {
	AtoB, BtoA wire.Impairment
	MTU        int    // of the devices at both hosts; 0 means 1500
	Congestion string // congestion control over the path; empty means cubic
	NoOffloads bool   // the hosts segment packets and compute checksums themselves
	// KernelBuffers keeps the kernel's tcp_rmem and tcp_wmem. Otherwise both may grow to 64 MB, so that the
	// path limits the rate and not a buffer.
	KernelBuffers bool
}

// Wired is two hosts joined by a path in user space (package wire): a Pair whose Data link a test can impair.
type Wired struct {
	*Pair
	Wire *wire.Wire
}

// NewWired builds hosts a and b in their own lab, with the names and addresses of NewPair.
func NewWired(t testing.TB, o WiredOptions) *Wired {
	t.Helper()
	l := New(t)
	a, b := l.Host("a"), l.Host("b")
	w, err := wire.New(wire.Options{
		A: wire.End{Netns: netnsDir + a.netns, Dev: DataDev}, B: wire.End{Netns: netnsDir + b.netns, Dev: DataDev},
		AtoB: o.AtoB, BtoA: o.BtoA, NoOffloads: o.NoOffloads,
		Router4: netip.MustParseAddr("10.77.0.254"), Router6: netip.MustParseAddr("fd00:77::fe"),
	})
	if err != nil {
		t.Fatalf("lab: %v", err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Errorf("lab: %v", err)
		}
	})
	x := &Wired{Pair: &Pair{A: a, B: b}, Wire: w}
	for _, h := range []*Host{a, b} {
		h.IP("link", "set", DataDev, "mtu", strconv.Itoa(cmp.Or(o.MTU, 1500)), "txqueuelen", "10000")
		if !o.KernelBuffers {
			h.Sysctl("net.ipv4.tcp_rmem", fmt.Sprint("4096 131072 ", wiredBuffer))
			h.Sysctl("net.ipv4.tcp_wmem", fmt.Sprint("4096 65536 ", wiredBuffer))
		}
	}
	x.Data = l.address(a, b, DataDev, 77, o.Congestion)
	x.meet(a, b, x.Data.B4, x.Data.B6)
	x.meet(b, a, x.Data.A4, x.Data.A6)
	return x
}

// meet sets a host's neighbour entries, so that no packet waits for an answer that the path delays or loses.
func (x *Wired) meet(h, neighbour *Host, addrs ...netip.Addr) {
	mac := strings.TrimSpace(neighbour.Must("cat", "/sys/class/net/"+DataDev+"/address"))
	for _, addr := range addrs {
		h.IP("neigh", "replace", addr.String(), "lladdr", mac, "dev", DataDev, "nud", "permanent")
	}
}
