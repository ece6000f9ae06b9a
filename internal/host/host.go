// Package host reads facts and counters of this machine, in the vocabulary
// of package measure. It changes nothing.
//
// There is one file per subject and system. The root of the file tree is
// injected and each parser takes a reader, so that recorded trees stand in
// for machines in tests. What could not be read is named in NotChecked with
// the key that it has in the JSON document; it is never a zero.
//
// Linux is complete. Other systems have what their standard commands tell
// (package platform) and what package gopsutil knows of them (portable.go),
// and say what they lack.
package host

import (
	"strings"

	"thru/internal/host/tree"
	"thru/internal/measure"
)

// Host is one machine to be read. It keeps no state between calls, holds
// nothing open, and may be used by many goroutines.
type Host struct {
	fs     FS
	kernel kernel // nil: what only the running kernel can tell is not checked
	system system // nil: likewise
}

// New returns the machine that the program runs on.
func New() *Host {
	return &Host{fs: FS{tree.Tree{Root: "/"}}, kernel: runningKernel(), system: runningSystem()}
}

// At returns the machine whose files lie below root: a recorded tree. The
// kernel is not asked, except for routes.
func At(root string) *Host { return &Host{fs: FS{tree.Tree{Root: root}}} }

// kernel tells of interfaces what no file shows. An interface that is gone
// answers with an error that is ENODEV, a question that its driver does not
// know with errUntold.
type kernel interface {
	// Of all interfaces (rtnetlink), as the calling thread's network namespace has them.
	links() ([]link, error)
	qdiscs() ([]qdisc, error)
	queueStats(index int) ([]measure.QueueCounter, error) // of one interface
	// Of its driver (ethtool).
	info(name string) (driverInfo, error)
	features(name string) (map[string]feature, error)
	counters(name string) (map[string]uint64, error)
	settings(name string) (linkSettings, error)
	channels(name string) (measure.Channels, error)
	rings(name string) (measure.Rings, error)
	coalescing(name string) (measure.Coalesce, error)
	pause(name string) (measure.Pause, error)
	rss(name string) (measure.RSS, error)
	// Since it was made (rtnetlink).
	rxRing(name string) (packets uint64, err error)
	qdisc(name string) (measure.Qdisc, error)
}

// driverInfo names a driver as `ethtool -i` does.
type driverInfo struct{ driver, version, bus, firmware string }

// notes collects what could not be read.
type notes []measure.NotChecked

// add notes one fact and why it is not known.
func (n *notes) add(fact, why string) {
	*n = append(*n, measure.NotChecked{Fact: fact, Why: why})
}

// keeper takes the result of a reading: a pointer to the value, or nil and a note.
func keeper[T any](n *notes, fact string) func(T, error) *T {
	return func(v T, err error) *T {
		if err != nil {
			n.add(fact, err.Error())
			return nil
		}
		return &v
	}
}

// orNote takes the result of a reading: the value, or none and a note.
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

// byFact orders notes, so that equal readings give equal documents.
func byFact(a, b measure.NotChecked) int { return strings.Compare(a.Fact, b.Fact) }
