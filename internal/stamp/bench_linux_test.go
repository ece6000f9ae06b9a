package stamp

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkHundred runs 100 sessions at a packet a second, sender and reflector in this process, a second for each iteration. It prints the CPU time of a
// packet, to and fro, and what all of them take of a core.
func BenchmarkHundred(b *testing.B) {
	r := openReflector(b, "127.0.0.1", 50*ms)
	s, _ := openTestSender(b)
	for i := range 100 {
		key := fmt.Appendf(nil, "key of %d", i)
		ssid, err := r.Add(Accept{Key: key, Rate: 10, Once: true})
		if err == nil {
			err = s.Add(fmt.Sprint(i), Target{To: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(r.Port())), SSID: ssid, Key: key})
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	sent := func() (n uint32) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, x := range s.sessions {
			n += x.sent
		}
		return n
	}
	cpu, packets, began := cpuTime(b), sent(), time.Now()
	for b.Loop() {
		time.Sleep(time.Second)
	}
	used, n := cpuTime(b)-cpu, sent()-packets
	b.ReportMetric(float64(used.Nanoseconds())/float64(n), "cpu-ns/packet")
	b.ReportMetric(100*used.Seconds()/time.Since(began).Seconds(), "%core")
}

// cpuTime returns the user and system time of this process.
func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
