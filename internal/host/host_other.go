//go:build !linux

package host

import (
	"context"
	"net/netip"
	"runtime"
	"time"

	"thru/internal/host/platform"
	"thru/internal/measure"
)

// runningKernel is absent: it is asked on Linux only.
func runningKernel() kernel { return nil }

// runningSystem is absent: it is asked on Linux only.
func runningSystem() system { return nil }

// activity reads the counters of the load, as far as this system tells.
func (h *Host) activity(n *notes) activity { return portableActivity(n) }

// factsTime bounds all commands of the system together.
const factsTime = 45 * time.Second

// Facts reads what this host is, now, as far as this system and its standard
// commands tell. The commands take seconds on some systems.
func (h *Host) Facts() measure.Facts {
	if !platform.Known(runtime.GOOS) {
		return portableFacts()
	}
	ctx, cancel := context.WithTimeout(context.Background(), factsTime)
	defer cancel()
	// Where no command worked, not_checked says so of each fact.
	told, _ := platform.Read(ctx, runtime.GOOS, platform.Local())
	return platform.Merge(told, portableFacts())
}

// Route is the interface and the source address towards dst. An error means
// that there is no way.
func (h *Host) Route(dst netip.Addr) (measure.Route, error) { return portableRoute(dst) }

// RouteFrom is Route: a bound socket's way is not looked up on this system.
func (h *Host) RouteFrom(dst, _ netip.Addr, _ string) (measure.Route, error) { return h.Route(dst) }

// Read reads the counters of this host and of one interface; an empty name
// leaves it out. What this system does not tell is in Missing.
func (h *Host) Read(iface string, pid int) Snapshot { return portableRead(iface, pid) }

// Watch reads the counters of a host again and again.
type Watch struct {
	iface string
	pid   int
}

// Watch is Read, to be repeated.
func (h *Host) Watch(iface string, pid int) *Watch { return &Watch{iface, pid} }

// Read reads the counters that this system tells.
func (w *Watch) Read() Snapshot { return portableRead(w.iface, w.pid) }

// Allowed lists the CPUs that this process may use. It is not read here: nil.
func Allowed() []int { return nil }

// PlacementFacts is not read on this system.
func (h *Host) PlacementFacts(string) PlacementFacts {
	return PlacementFacts{Missing: []measure.NotChecked{{Fact: "interface", Why: notRead().Error()}}}
}
