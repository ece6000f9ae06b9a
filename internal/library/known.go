package library

import (
	"os"
	"path/filepath"
	"time"

	"thru/internal/bus"
	"thru/internal/cause/diagnose"
	"thru/internal/cause/scene"
	"thru/internal/control"
	"thru/internal/measure"
	"thru/internal/runs"
	"thru/internal/stat"
)

// Facts from earlier commands: paths for some minutes, in the cache folder, and the
// CPU cost of moving data for each host, in the state folder. A file that is absent,
// damaged or not writable is no error, and counts as no facts.

// pathAge is how long the facts of a path are used where nothing has changed at its ends.
const pathAge = 10 * time.Minute

// knownPaths implements control.PathCache with one file for each path.
type knownPaths struct{ dir string }

// OpenPaths returns the cache of this user; without a folder it is empty.
func OpenPaths() knownPaths {
	dir, err := os.UserCacheDir()
	if err != nil {
		return knownPaths{}
	}
	return knownPaths{filepath.Join(dir, "thru", "paths")}
}

// Load implements control.PathCache.
func (k knownPaths) Load(key string) (p measure.Path, ok bool) {
	if k.dir == "" || key == "" || !runs.ReadJSON(filepath.Join(k.dir, key), &p) {
		return measure.Path{}, false
	}
	age := time.Since(time.Unix(0, p.TakenAt))
	return p, age >= 0 && age < pathAge
}

// Keep implements control.PathCache; it removes old entries.
func (k knownPaths) Keep(key string, p measure.Path) {
	if k.dir == "" || key == "" {
		return
	}
	entries, _ := os.ReadDir(k.dir)
	for _, e := range entries {
		if i, err := e.Info(); err == nil && time.Since(i.ModTime()) > pathAge {
			os.Remove(filepath.Join(k.dir, e.Name()))
		}
	}
	runs.WriteJSON(filepath.Join(k.dir, key), p)
}

// Drop implements control.PathCache.
func (k knownPaths) Drop(key string) {
	if k.dir != "" && key != "" {
		os.Remove(filepath.Join(k.dir, key))
	}
}

// mostCosts is how many earlier results are kept for a host.
const mostCosts = 16

// costsFile returns the file of the CPU costs, by host name.
func costsFile() string {
	dir, err := bus.DefaultState()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "costs.json")
}

// KnownCosts returns a function that looks hosts up in the file.
func KnownCosts() func(hostname string) []scene.Cost {
	all := map[string][]scene.Cost{}
	runs.ReadJSON(costsFile(), &all)
	return func(hostname string) []scene.Cost { return all[hostname] }
}

// KeepCosts adds the costs of a result's hosts. It skips loopback: there one machine
// does the work of both ends.
func KeepCosts(doc *measure.Document) {
	found := false
	all := map[string][]scene.Cost{}
	runs.ReadJSON(costsFile(), &all)
	for i := range doc.Cells {
		c := &doc.Cells[i]
		if c.Experiment != "" && c.Experiment != diagnose.Base { // an experiment differs from usual traffic
			continue
		}
		for _, end := range []struct {
			name  string
			sends bool
			cpu   *measure.CPUFigure
		}{{c.From, true, c.SenderCPU}, {c.To, false, c.ReceiverCPU}} {
			host := doc.FactsOf(end.name)
			if wasBusy(c, end.name) || c.From == c.To || c.Goodput == nil || end.cpu == nil || host == nil || host.Hostname == nil || c.AtOnce > 1 {
				continue
			}
			cost := scene.Cost{
				Sends: end.sends, Protocol: c.Protocol, IO: c.IO, Bps: c.Goodput.Value, Cores: end.cpu.Cores,
				BusiestPct: end.cpu.MaxCorePct, Streams: c.Streams, At: doc.StartedAt, CPUModel: measure.Value(host.CPUModel),
			}
			list := append(all[*host.Hostname], cost)
			all[*host.Hostname] = list[max(len(list)-mostCosts, 0):]
			found = true
		}
	}
	if found {
		runs.WriteJSON(costsFile(), all)
	}
}

// wasBusy reports whether a host had other load during a measurement: then its CPU
// load says little about the cost of the traffic.
func wasBusy(c *measure.Cell, endPoint string) bool {
	for _, r := range c.Runs {
		for _, f := range r.Flows {
			for _, e := range []*measure.Evidence{f.Sender, f.Receiver} {
				if e == nil || e.EndPoint != endPoint || e.Base == nil {
					continue
				}
				for _, cpu := range e.Base.CPUs {
					if cpu.Busy() > 2*stat.MaxIdleBusyPct {
						return true
					}
				}
			}
		}
	}
	return false
}

// QuickGates returns the gating of a test, judged before any traffic.
func QuickGates(force bool) *control.Gating {
	return &control.Gating{Force: force, Costs: KnownCosts(), Paths: OpenPaths()}
}
