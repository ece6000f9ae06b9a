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

// runningKernel returns nil: only Linux has it.
func runningKernel() kernel { return nil }

// runningSystem returns nil: only Linux has it.
func runningSystem() system { return nil }

// activity reads the load counters that this system has.
func (h *Host) activity(n *notes) activity { return portableActivity(n) }

// factsTime limits the time of all system commands together.
const factsTime = 45 * time.Second

// Facts reads the present facts about this host from this system and its
// standard commands. The commands take seconds on some systems.
func (h *Host) Facts() measure.Facts {
	if !platform.Known(runtime.GOOS) {
		return portableFacts()
	}
	ctx, cancel := context.WithTimeout(context.Background(), factsTime)
	defer cancel()
	// Where no command works, not_checked names each fact.
	told, _ := platform.Read(ctx, runtime.GOOS, platform.Local())
	return platform.Merge(told, portableFacts())
}

// Route returns the interface and the source address towards dst. An error
// means that there is no route.
func (h *Host) Route(dst netip.Addr) (measure.Route, error) { return portableRoute(dst) }

// RouteFrom is Route: this system does not look up the route of a bound
// socket.
func (h *Host) RouteFrom(dst, _ netip.Addr, _ string) (measure.Route, error) { return h.Route(dst) }

// Read reads the counters of this host and of one interface; an empty name
// leaves the interface out. Missing names the counters that this system
// lacks.
func (h *Host) Read(iface string, pid int) Snapshot { return portableRead(iface, pid) }

// Watch reads the counters of a host repeatedly.
type Watch struct {
	iface string
	pid   int
}

// Watch returns a reader that repeats Read.
func (h *Host) Watch(iface string, pid int) *Watch { return &Watch{iface, pid} }

// Read reads the counters that this system has.
func (w *Watch) Read() Snapshot { return portableRead(w.iface, w.pid) }

// Allowed returns nil: the CPUs that this process may use are not read on
// this system.
func Allowed() []int { return nil }

// PlacementFacts reads nothing on this system.
func (h *Host) PlacementFacts(string) PlacementFacts {
	return PlacementFacts{Missing: []measure.NotChecked{{Fact: "interface", Why: notRead().Error()}}}
}
