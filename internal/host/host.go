// Package host reads facts and counters of this machine into the types of
// package measure. It changes nothing.
//
// There is one file per subject and system. The root of the file tree is
// injected and each parser takes a reader, so that tests can use recorded
// trees. A value that cannot be read is named in NotChecked with its JSON
// key; it is never reported as zero.
//
// Linux is complete. Other systems report what their standard commands
// (package platform) and package gopsutil (portable.go) know, and name what
// they lack.
package host

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	"thru/internal/host/tree"
	"thru/internal/measure"
)

// Host is one machine to read. It keeps no state between calls, holds nothing
// open, and may be used by many goroutines.
type Host struct {
	fs     FS
	kernel kernel // nil: facts that only the running kernel has are not checked
	system system // nil: likewise
}

// New returns the machine that this program runs on.
func New() *Host {
	return &Host{fs: FS{tree.Tree{Root: "/"}}, kernel: runningKernel(), system: runningSystem()}
}

// At returns the machine of a recorded tree below root. The kernel is not
// asked, except for routes.
func At(root string) *Host { return &Host{fs: FS{tree.Tree{Root: root}}} }

// kernel returns facts about interfaces that no file shows. For an interface
// that is gone it returns ENODEV, for a request that its driver does not
// support errUnknown.
type kernel interface {
	// links returns all interfaces of the calling thread's network namespace
	// (rtnetlink).
	links() ([]link, error)
	qdiscs() ([]qdisc, error)
	queueStats(index int) ([]measure.QueueCounter, error) // of one interface
	// These ask the driver (ethtool).
	info(name string) (driverInfo, error)
	features(name string) (map[string]feature, error)
	counters(name string) (map[string]uint64, error)
	settings(name string) (linkSettings, error)
	channels(name string) (measure.Channels, error)
	rings(name string) (measure.Rings, error)
	coalescing(name string) (measure.Coalesce, error)
	pause(name string) (measure.Pause, error)
	rss(name string) (measure.RSS, error)
	// rxRing counts since the interface was created (rtnetlink).
	rxRing(name string) (packets uint64, err error)
	qdisc(name string) (measure.Qdisc, error)
}

// driverInfo holds what `ethtool -i` shows about a driver.
type driverInfo struct{ driver, version, bus, firmware string }

// notes collects what could not be read.
type notes []measure.NotChecked

// add records a fact that is not known and the reason.
func (n *notes) add(fact, why string) {
	*n = append(*n, measure.NotChecked{Fact: fact, Why: why})
}

// keeper returns a function that takes the result of a reading and returns a
// pointer to the value, or adds a note and returns nil.
func keeper[T any](n *notes, fact string) func(T, error) *T {
	return func(v T, err error) *T {
		if err != nil {
			n.add(fact, err.Error())
			return nil
		}
		return &v
	}
}

// orNote returns a function that takes the result of a reading and returns
// the value, or adds a note and returns the zero value.
func orNote[T any](n *notes, fact string) func(T, error) T {
	return func(v T, err error) T {
		if err != nil {
			n.add(fact, err.Error())
			var none T
			return none
		}
		return v
	}
}

// byFact orders notes by fact, so that equal readings give equal documents.
func byFact(a, b measure.NotChecked) int { return strings.Compare(a.Fact, b.Fact) }

// Snapshot is one reading of this host's counters, each counted since boot or
// since its owner began. Two of them make a measure.HostSpan (Span).
//
// Taken is when the reading began, on the monotonic clock. A counter that
// could not be read is nil and named in Missing, with the key of
// measure.HostSpan.
type Snapshot struct {
	Taken   time.Time
	CPUs    []CPUTimes
	Memory  *measure.Memory // at the time of the reading
	Worker  *measure.Process
	NIC     *measure.NICSpan // with all driver counters; RxRing without those of vmxnet3
	Qdisc   *measure.Qdisc   // Backlog is that at the reading
	Softnet []measure.Softnet
	Proto   map[string]uint64
	Quota   *measure.QuotaSpan // of the group with the lowest quota around this process; also nil where there is no quota
	IRQs    []measure.IRQSpan  // of the interface, by core
	Swap    *measure.SwapSpan
	Missing []measure.NotChecked
}

// FS is the file tree that holds /proc and /sys.
type FS struct{ tree.Tree }

// net reads a file of /proc/net in the calling thread's network namespace.
// "self" is the main thread, which may be in another namespace; "thread-self"
// exists since Linux 3.17 (proc(5)).
func (f FS) net(name string) ([]byte, error) {
	b, err := f.Read(path.Join("proc/thread-self/net", name))
	if errors.Is(err, fs.ErrNotExist) {
		return f.Read(path.Join("proc/self/net", name))
	}
	return b, err
}

// unlessAbsent returns nil for "file does not exist", and any other error
// unchanged.
func unlessAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// chosen returns the word in brackets of "always [madvise] never"; a single
// word without brackets is the choice itself.
func chosen(s string) (string, error) {
	if _, rest, ok := strings.Cut(s, "["); ok {
		if word, _, ok := strings.Cut(rest, "]"); ok && word != "" {
			return word, nil
		}
	}
	if words := strings.Fields(s); len(words) == 1 && !strings.ContainsAny(s, "[]") {
		return s, nil
	}
	return "", errors.New("no selected value in " + quoted(s))
}

// quoted shortens foreign text for an error.
func quoted(s string) string {
	if len(s) > 60 {
		s = s[:60] + "..."
	}
	return `"` + strings.ToValidUTF8(s, "?") + `"`
}
