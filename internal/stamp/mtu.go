package stamp

import (
	"time"
)

// Times and limits of the search for the MTU.
const (
	leastMTU   = 1280             // of a link of IPv6 (RFC 8200, 5)
	mtuTries   = 3                // a size fails if so many packets are lost, and smaller ones after them pass
	mtuSearch  = 2 * time.Second  // between packets of the search
	mtuConfirm = 30 * time.Second // between packets of the size that was found
	mtuRetry   = 10 * time.Minute // between tries of a larger one
)

// mtuProbe finds the largest IP packet that passes both ways, by bisection: single packets that may not be fragmented, answered by packets of the same size.
// Packets of the path's ordinary size decide whether a lost one was too large.
type mtuProbe struct {
	most        int // MTU of the interface; 0: nothing to find
	good        int // largest size that passed; 0: none yet
	bad         int // smallest size that failed
	size        int // of the packet under way
	lost        int // packets of that size in a row
	suspect     bool
	confirmed   bool // good has passed since the last summary
	next, retry time.Duration
}

func newMTUProbe(most int, now time.Duration) mtuProbe {
	if most < leastMTU {
		return mtuProbe{}
	}
	most = min(most, maxPacket)
	return mtuProbe{most: most, bad: most + 1, next: now, retry: now + mtuRetry}
}

// isFound reports whether the search is over.
func (m *mtuProbe) isFound() bool { return m.good > 0 && m.good+1 >= m.bad }

// due returns the size of the packet that is due; 0 for none.
func (m *mtuProbe) due(now time.Duration) int {
	if m.most == 0 || now < m.next {
		return 0
	}
	m.next = now + mtuSearch
	switch {
	case m.good == 0 && m.bad > m.most:
		m.size = m.most
	case m.good == 0:
		m.size = leastMTU
	case !m.isFound():
		m.size = (m.good + m.bad) / 2
	case m.bad <= m.most && now >= m.retry:
		m.size, m.retry = m.bad, now+mtuRetry
	default:
		m.size, m.next = m.good, now+mtuConfirm
	}
	return m.size
}

// passed is called for a packet that was answered.
func (m *mtuProbe) passed(size int, now time.Duration) {
	m.lost, m.suspect = 0, false
	if size >= m.bad { // the path has changed for the better
		m.bad, m.next = m.most+1, now
	}
	m.good = max(m.good, size)
	m.confirmed = m.confirmed || size == m.good
}

// failed is called for a packet that was lost; the next ordinary packet decides.
func (m *mtuProbe) failed(size int) { m.suspect = size == m.size }

// ordinary is called for each ordinary packet.
func (m *mtuProbe) ordinary(isAnswered bool, now time.Duration) {
	if m.suspect && isAnswered {
		if m.lost++; m.lost >= mtuTries {
			m.reject(m.size, now)
		} else {
			m.next = min(m.next, now+mtuSearch)
		}
	}
	m.suspect = false
}

// reject is called for a size that does not pass.
func (m *mtuProbe) reject(size int, now time.Duration) {
	m.lost, m.suspect = 0, false
	if size <= m.good { // the path has changed for the worse
		m.good, m.confirmed, m.next = 0, false, now
	}
	if m.bad = min(m.bad, size); m.bad <= leastMTU { // no statement: try again later
		m.good, m.bad, m.next = 0, m.most+1, now+mtuRetry
	}
}

// found returns the MTU that was found and confirmed since the last call; 0: not known.
func (m *mtuProbe) found() int {
	ok := m.isFound() && m.confirmed
	m.confirmed = false
	if !ok {
		return 0
	}
	return m.good
}
