package worker

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"thru/internal/measure"
)

// hotPaths are the loops that data passes through.
func hotPaths() map[string]measure.Spec {
	spec := func(protocol, traffic, io string, length int64) measure.Spec {
		return measure.Spec{Protocol: protocol, Traffic: traffic, IO: io, Streams: 1, Length: measure.Pair{Send: length, Recv: length}}
	}
	return map[string]measure.Spec{
		"copy":     spec(measure.TCP, measure.Bulk, measure.IOCopy, measure.DefaultLength),
		"lean":     spec(measure.TCP, measure.Bulk, measure.IOLean, measure.DefaultLength),
		"udp gso":  spec(measure.UDP, measure.Bulk, measure.IOGSO, 1400),
		"udp mmsg": spec(measure.UDP, measure.Bulk, measure.IOBatch, 1400),
		"requests": spec(measure.TCP, measure.RR, measure.IOCopy, 1),
	}
}

// likeAWorker gives the threads that block in raw calls the environment of a worker: enough other threads, and no garbage collection, which would wait for
// them.
func likeAWorker(t testing.TB) {
	procs, percent := runtime.GOMAXPROCS(2+spareThreads), debug.SetGCPercent(-1)
	t.Cleanup(func() {
		runtime.GOMAXPROCS(procs)
		debug.SetGCPercent(percent)
	})
}

// hot runs one loop for about n calls at the sender.
func hot(t testing.TB, spec measure.Spec, n int) (calls int64) {
	t.Helper()
	a, b := connected(t, spec.Protocol)
	spec.Amount = int64(n) * spec.Length.Send
	if spec.Traffic != measure.Bulk {
		spec.Amount = 0
	}
	flows := [2]*flow{}
	movers := [2]path{}
	for i, c := range []socket{a, b} {
		cmd := openCommand{Spec: spec, Sends: i == 0}
		flows[i] = newFlow(cmd, []socket{c}, nil)
		var err error
		if movers[i], _, err = choose(cmd, flows[i]); err != nil {
			t.Fatal(err)
		}
		if err := movers[i].io.prepare(flows[i], flows[i].streams[0]); err != nil {
			t.Fatal(err)
		}
		defer flows[i].streams[0].file.Close()
	}
	received := make(chan error, 1)
	go func() { received <- movers[1].io.move(flows[1], flows[1].streams[0]) }()
	if spec.Traffic != measure.Bulk {
		go func() {
			for flows[0].streams[0].calls.Load() < int64(n) {
				sleepThread(pollEvery)
			}
			flows[0].stop.Store(true)
		}()
	}
	if err := movers[0].io.move(flows[0], flows[0].streams[0]); err != nil {
		t.Fatal(err)
	}
	flows[1].ending.Store(true)
	if spec.Protocol == measure.TCP {
		unix.Shutdown(int(flows[0].streams[0].file.Fd()), unix.SHUT_WR)
	} else {
		movers[1].io.interrupt(flows[1].streams[0])
	}
	if err := <-received; err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return flows[0].streams[0].calls.Load()
}

// connected returns a pair of sockets over loopback.
func connected(t testing.TB, protocol string) (a, b socket) {
	t.Helper()
	if protocol == measure.UDP {
		x, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		addr := x.LocalAddr().(*net.UDPAddr)
		y, err := net.DialUDP("udp", nil, addr)
		if err != nil {
			t.Fatal(err)
		}
		x.Close()
		z, err := net.DialUDP("udp", addr, y.LocalAddr().(*net.UDPAddr))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { y.Close(); z.Close() })
		return y, z
	}
	return connectedBy(t, net.ListenConfig{})
}

// connectedBy returns a pair of TCP sockets; lc configures the listener of the second.
func connectedBy(t testing.TB, lc net.ListenConfig) (a, b socket) {
	t.Helper()
	l, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	y, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	z, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { y.Close(); z.Close() })
	return y.(*net.TCPConn), z.(*net.TCPConn)
}

// The loops allocate nothing per call: the allocations of a run do not grow with its calls.
func TestHotPathAllocatesNothing(t *testing.T) {
	for name, spec := range hotPaths() {
		t.Run(name, func(t *testing.T) {
			likeAWorker(t)
			mallocs := func(n int) (uint64, int64) {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				calls := hot(t, spec, n)
				runtime.ReadMemStats(&after)
				return after.Mallocs - before.Mallocs, calls
			}
			mallocs(100)
			few, _ := mallocs(100)
			many, calls := mallocs(2_000)
			if grown := int64(many) - int64(few); grown > 100 {
				t.Errorf("%d calls allocated %d times, 100 of them %d", calls, many, few)
			}
		})
	}
}

// Repeated readings of the streams allocate nothing either.
func TestSamplingAllocatesNothing(t *testing.T) {
	for _, protocol := range []string{measure.TCP, measure.UDP} {
		a, _ := connected(t, protocol)
		cmd := openCommand{Spec: measure.Spec{Protocol: protocol, Streams: 1}, Sends: true}
		w := &worker{cmd: cmd, flow: newFlow(cmd, []socket{a}, nil), out: frameWriter{w: io.Discard}}
		if err := w.prepare(); err != nil {
			t.Fatal(err)
		}
		w.flush()
		w.flow.measuring.Store(true)
		w.observe()
		if n := testing.AllocsPerRun(100, func() {
			w.take(atInterval)
			w.timelines.next = time.Now() // a round is due
			w.observe()
			if err := w.flush(); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%s: %.1f allocations to a reading", protocol, n)
		}
		if c := w.timeline(0); (c != nil) != (protocol == measure.TCP) {
			t.Errorf("%s: the course of the connection is %+v", protocol, c)
		}
	}
}

// BenchmarkStream moves the data of b.N calls; `make pprof` shows where the time of a call goes.
func BenchmarkStream(b *testing.B) {
	for name, spec := range hotPaths() {
		b.Run(name, func(b *testing.B) {
			likeAWorker(b)
			b.ReportAllocs()
			b.SetBytes(spec.Length.Send)
			hot(b, spec, b.N)
		})
	}
}
