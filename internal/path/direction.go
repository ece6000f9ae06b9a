package path

import (
	"cmp"
	"fmt"
	"slices"

	"thru/internal/measure"
	"thru/internal/sock"
)

// marks returns the TOS bytes that a probe sends: DSCP 0, 8 (CS1), 10 (AF11), 26 (AF31), 34 (AF41), 46 (EF), 48 (CS6); and ECN alone: ECT(0), CE (RFC 3168).
func marks() []int { return []int{0, 8 << 2, 10 << 2, 26 << 2, 34 << 2, 46 << 2, 48 << 2, 2, 3} }

const markCopies = 2

// direction collects the results of datagrams in one direction.
type direction struct {
	name   string
	header string // why the two ends cannot set and read IP headers; empty: they can
	noDF   string // why the sender cannot set DF; empty: it can
	noMTU  string // why it does not know its own MTU; empty: it does
	search *search
	tcp    string // TCP's view of the MTU, in words

	sent, got int         // small datagrams
	ttls      map[int]int // TTLs of the arrivals, with their counts
	seen      map[int]int // marks: sent value to received value
	blocked   bool        // nothing arrived
	stopped   string      // why the probe ended early
	unasked   string      // why nothing was sent
	refusal   string      // error of the sender's own kernel
	said      routers     // by routers, to the sender
	learned   int         // MTU that a router reported before the probe

	shots   []shot // shots of the current volley
	search0 int    // index of the first shot of the search
}

// newDirection starts with the sender's own MTU; small is the size of the smallest datagram.
func newDirection(name string, claim, learned, small int) *direction {
	d := &direction{name: name, ttls: map[int]int{}, seen: map[int]int{}, learned: learned}
	if claim > small {
		d.search = newSearch(claim, small)
	}
	return d
}

// load returns the datagrams of the next volley: small ones, the marks that have not arrived yet, and the sizes of the search.
func (d *direction) load(small int) []shot {
	d.shots = []shot{{Copies: small}}
	if d.header == "" {
		for _, tos := range marks() {
			if _, came := d.seen[tos]; !came && tos != 0 { // TOS 0 is that of the small ones
				d.shots = append(d.shots, shot{TOS: tos, Copies: markCopies})
			}
		}
	}
	d.search0 = len(d.shots)
	if d.searching() {
		d.shots = append(d.shots, d.search.next()...)
	}
	return d.shots
}

// searching reports whether there are sizes left to send.
func (d *direction) searching() bool {
	return d.search != nil && !d.search.over && !d.blocked && d.noDF == ""
}

// unmarked reports whether marks are missing although others show that this direction passes them.
func (d *direction) unmarked() bool {
	return d.header == "" && !d.blocked && len(d.seen) < len(marks())
}

// take ends a volley: r is the sender's report, got the arrivals.
func (d *direction) take(r report, got []arrival) {
	if r.Error != "" {
		d.refusal = r.Error
	}
	d.said.add(r.routers)
	d.sent += d.shots[0].Copies
	arrived := map[int]bool{}
	for _, a := range got {
		if a.Frag == 0 {
			arrived[a.Shot] = true
		}
		if a.Shot == 0 {
			d.got++
			d.ttls[a.TTL]++
		}
		if a.Shot < d.search0 && a.TOS >= 0 {
			d.seen[d.shots[a.Shot].TOS] = a.TOS
		}
	}
	if len(got) == 0 || !d.searching() {
		return
	}
	sizes, refused, sent := map[int]bool{}, []int(nil), 0
	for i := d.search0; i < len(d.shots); i++ {
		sizes[i-d.search0] = arrived[i]
		if slices.Contains(r.Refused, i) {
			refused = append(refused, i-d.search0)
		} else {
			sent += d.shots[i].Copies
		}
	}
	d.search.took(sizes, sent, refused)
}

// hopsOf returns the number of routers from a received TTL; nil for a TTL that no datagram of ours can have.
func hopsOf(ttl int) *int {
	if ttl < 1 || ttl > sock.ProbeTTL {
		return nil
	}
	return new(sock.ProbeTTL - ttl)
}

// facts fills in the results. note receives the missing facts, and why.
func (d *direction) facts(to *measure.DirectionFacts, note func(fact, why string)) {
	add := func(fact, why string) { note(d.name+"."+fact, why) }
	switch {
	case d.unasked != "":
		for _, fact := range []string{"udp", "hops", "dscp", "mtu"} {
			add(fact, d.unasked)
		}
		return
	case d.sent > 0:
		to.UDP = &measure.UDPReach{Sent: d.sent, Got: min(d.got, d.sent)}
	}
	if d.refusal != "" && d.got == 0 {
		add("udp", "the sender's own host refuses datagrams: "+d.refusal)
	}
	silence := ""
	if d.blocked {
		silence = "no datagram (UDP) arrives"
	}
	if why := cmp.Or(silence, d.header); why != "" {
		add("hops", why)
		add("dscp", why)
	} else {
		d.hops(to, add)
		d.marks(to, add)
	}
	d.mtu(to, silence, add)
}

// hops uses the TTL of most datagrams.
func (d *direction) hops(to *measure.DirectionFacts, add func(fact, why string)) {
	most := -1
	for ttl, n := range d.ttls {
		if n > d.ttls[most] || n == d.ttls[most] && ttl > most {
			most = ttl
		}
	}
	if to.Hops = hopsOf(most); to.Hops == nil {
		add("hops", fmt.Sprintf("they left with TTL %d and arrived with %d: a device on the path rewrites it", sock.ProbeTTL, most))
	}
}

// marks lists the marks in the order in which they were sent.
func (d *direction) marks(to *measure.DirectionFacts, add func(fact, why string)) {
	for _, tos := range marks() {
		if seen, ok := d.seen[tos]; ok {
			to.Marks = append(to.Marks, measure.Mark{Sent: tos >> 2, Seen: seen >> 2, ECNSent: tos & 3, ECNSeen: seen & 3})
			continue
		}
		add("dscp", fmt.Sprintf("no datagram with DSCP %d and ECN %d arrived, but others did", tos>>2, tos&3))
	}
}

// mtu fills in the result of the search.
func (d *direction) mtu(to *measure.DirectionFacts, silence string, add func(fact, why string)) {
	if silence != "" && d.tcp != "" {
		silence += "; " + d.tcp
	}
	why := cmp.Or(silence, d.noDF)
	switch {
	case why == "" && d.search == nil:
		why = "the sender does not know the MTU of its interface: " + cmp.Or(d.noMTU, "its kernel does not report it")
	case why == "" && !d.search.confirmed:
		why = cmp.Or(d.stopped, "the search did not finish: datagrams of any size are lost")
	}
	if why != "" {
		add("mtu", why)
		return
	}
	if !d.said.TooBig && d.learned > 0 { // its message to this probe was lost, or it sends few
		d.said = routers{TooBig: true, Router: d.learned}
	}
	to.MTU = d.search.outcome(d.said)
}
