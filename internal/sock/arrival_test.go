package sock

import (
	"net"
	"runtime"
	"testing"
	"time"
)

// TestArrival: the time of a byte is that of its arrival, not that of the reading, and the byte is still there. The kernel starts timestamping a little after
// the request.
func TestArrival(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("arrivals are noted on Linux only")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var at, read time.Time
	for wait := 10 * time.Millisecond; wait < 10*time.Second && at.IsZero(); wait *= 2 {
		c, err := (&net.Dialer{Control: Options{Arrivals: true}.Control}).Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		far, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer far.Close()
		time.Sleep(wait)
		far.Write([]byte("x"))
		time.Sleep(20 * time.Millisecond)
		read = time.Now()
		at = Arrival(c)
		var b [2]byte
		if n, err := c.Read(b[:]); n != 1 || err != nil {
			t.Fatalf("%d bytes, %v", n, err)
		}
	}
	if at.IsZero() || !at.Before(read) {
		t.Errorf("it arrived at %v, and was looked at from %v on", at, read)
	}
}
