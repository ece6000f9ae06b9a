//go:build !linux

package worker

import (
	"errors"
	"net"
	"time"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/unit"
)

// threadClock is not available on this system.
type threadClock struct{}

func (*threadClock) read() (run, wait int64) { return notKnown, notKnown }

func sleepThread(d time.Duration) { time.Sleep(d) }

func favourThread() {}

func defaultLength(string) int { return measure.DefaultLength }

func bindThread([]int) error { return nil }

// confineProcess is not supported on this system.
func confineProcess(cpus []int) error {
	return fault.Usagef("omit the CPUs for this end point, or restrict the agent with the system's tools (cpuset(1), start /affinity)",
		"worker: restricting to CPUs %s: supported on Linux only", unit.List(cpus))
}

// crr is the listener of CRR traffic.
type crr struct{ listener *net.TCPListener }

func newCRR(c openCommand, l *link) (*crr, error) {
	if c.Dials {
		return &crr{}, nil
	}
	at := l.tcp[len(l.tcp)-1].LocalAddr().(*net.TCPAddr).IP
	for _, x := range l.listeners {
		if own := x.Addr().(*net.TCPAddr).IP; own.IsUnspecified() || own.Equal(at) {
			return &crr{x.(*net.TCPListener)}, nil
		}
	}
	return nil, errors.New("worker: answering: no listener has the address of the connection")
}

// paths returns the data paths of this end on this system, the best first.
func paths(c openCommand) []path {
	return portablePaths(c)
}

func setPacing(socket, int64) error { return errors.New("this system does not pace sockets") }
