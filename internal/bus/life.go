package bus

import (
	"net"
	"sync"
	"time"

	"thru/internal/sock"
)

const (
	lookEvery   = 250 * time.Millisecond // how often a client checks the life of its connection
	stoppedTime = 3 * time.Second        // gap between checks that shows that this process was stopped
)

// life measures how long the peer of a connection was silent. Test traffic on the
// same path may lose or delay control data for seconds, and the process can read
// nothing before the first lost segment arrives; so a data segment that only the
// kernel has received counts as a sign of life too. An acknowledgement does not:
// the kernel sends those for a process that hangs.
type life struct {
	segments func() (uint32, bool) // received data segments; nil: not counted

	mu     sync.Mutex
	read   time.Time // when bytes were last read
	heard  time.Time // last sign of life
	looked time.Time // last check
	came   uint32    // segments at the last check
}

func newLife() *life {
	now := time.Now()
	return &life{read: now, heard: now, looked: now}
}

// lifeOf returns the life of a connection: over TCP, or TLS over TCP, with the kernel's counts.
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

// touch records that bytes were read.
func (l *life) touch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.read = time.Now()
	l.heard = l.read
}

// spare extends the lease to at least left from now.
func (l *life) spare(left time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if least := time.Now().Add(left - leaseTime); l.heard.Before(least) {
		l.heard = least
	}
}

// lastRead returns when bytes were last read.
func (l *life) lastRead() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.read
}

// silent returns the time since the last sign of life, without the time in which
// this process itself was stopped and did not check.
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

// pulse is a connection that records when it is read.
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
