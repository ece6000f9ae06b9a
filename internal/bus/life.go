package bus

import (
	"net"
	"sync"
	"time"

	"thru/internal/sock"
)

const (
	lookEvery   = 250 * time.Millisecond // how often a client looks at the life of its connection
	stoppedTime = 3 * time.Second        // without a look: this process was stopped
)

// life says how long nothing was heard of who is at the other end of a
// connection. Test traffic on the same path may lose or hold back for seconds
// what is said here, and nothing of it is readable before its first lost segment
// has come; so a segment of data that only the kernel has got is a sign of life
// too. An acknowledgement is none: the kernel of a process that hangs sends those.
type life struct {
	segments func() (uint32, bool) // of data that have come; nil: nobody counts them

	mu     sync.Mutex
	read   time.Time // when bytes came
	heard  time.Time // when there was any sign of life
	looked time.Time // when it was last looked for
	came   uint32    // segments then
}

func newLife() *life {
	now := time.Now()
	return &life{read: now, heard: now, looked: now}
}

// lifeOf is that of a connection: over TCP, or TLS over TCP, with the kernel's counts.
func lifeOf(conn net.Conn) *life {
	l := newLife()
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn()
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return l
	}
	l.segments = func() (uint32, bool) {
		info := sock.InfoOf(tcp)
		if info.DataSegsIn == nil {
			return 0, false
		}
		return *info.DataSegsIn, true
	}
	return l
}

// touch notes that bytes came.
func (l *life) touch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.read = time.Now()
	l.heard = l.read
}

// spare leaves at least so much of the lease.
func (l *life) spare(left time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if least := time.Now().Add(left - leaseTime); l.heard.Before(least) {
		l.heard = least
	}
}

// lastRead is when bytes last came.
func (l *life) lastRead() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.read
}

// silent is how long there was no sign of life. The time in which this process
// itself was stopped, and looked for none, does not count.
func (l *life) silent() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if stopped := now.Sub(l.looked); stopped > stoppedTime {
		l.heard = l.heard.Add(stopped)
	}
	l.looked = now
	if l.segments != nil {
		if n, ok := l.segments(); ok && n != l.came {
			l.came, l.heard = n, now
		}
	}
	return max(now.Sub(l.heard), 0)
}

// pulse is a connection that notes what is read from it.
type pulse struct {
	net.Conn
	life *life
}

// Read implements net.Conn.
func (p pulse) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	if n > 0 {
		p.life.touch()
	}
	return n, err
}
