// Package probing is the part of an agent that measures the pairs of watches all the time: it answers their small packets, sends its own by one socket, and
// keeps the samples of each minute until the watch has fetched them, also for days without a client.
package probing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/sock"
	"thru/internal/stamp"
	"thru/internal/token"
	"thru/internal/watch/record"
)

const (
	mostWatches = 8                     // of an agent
	firstSpan   = 10 * time.Second      // of the first sample of a pair, which comes early: its owner wants to know whether packets come back
	batch       = 50 * time.Millisecond // between two batches of replies: clocks that run apart by 50 ppm falsify a round trip by 2.5 µs at most
	storeAfter  = 10 * time.Second      // until what is new is on disk, together: what an agent that is killed forgets
)

// Config is what the agent gives to its Probing.
type Config struct {
	Listen sock.Range                                     // where the reflector listens
	Device string                                         // interface or VRF
	Folder string                                         // for samples that were not fetched; empty: they are kept in memory
	Route  func(peer, own string) (*measure.Route, error) // to an address, from the own one where that is known
	Trusts func(ctx context.Context, token string) error  // nil: this token proves that its maker wants the traffic
}

// Probing has the watches of an agent.
type Probing struct {
	conf Config

	mu        sync.Mutex
	reflector *stamp.Reflector // nil: no pair is answered
	sender    *stamp.Sender    // nil: no pair is sent
	watches   map[string]*watch
	sending   map[string]*sending // by the id of its session
	counts    map[string]Counts
	closed    bool

	inbox   sync.Mutex // the sender waits for it, so that nobody holds it while he waits for a disk
	reports []report
	missed  map[string]int64 // reports for which there was no room, by session
	isDue   bool             // store will run
}

// report is a summary that no spool has yet.
type report struct {
	id      string
	summary stamp.Summary
}

// watch is what one watch has at this agent.
type watch struct {
	name      string
	lease     *time.Timer
	until     time.Time // end of the lease
	kept      time.Time // end of the lease in the folder; zero: the folder has not what is here
	seed      uint64
	reflected map[record.Pair]reflected
	sent      map[record.Pair]*sending
	samples   *spool
}

type reflected struct {
	bus.ReflectRequest
	bus.ReflectReply
}

type sending struct {
	bus.Pair
	id    string
	watch *watch
	route string // of its packets, as of the begin
	err   error  // why TTL and MTU are not measured; nil: they are
}

func (s *sending) pair() record.Pair { return record.Pair{From: s.From, To: s.To} }

// New returns a Probing that opens no socket until a watch needs it. It goes on with the watches that an earlier process left in the folder.
func New(c Config) *Probing {
	p := &Probing{conf: c, watches: map[string]*watch{}, sending: map[string]*sending{}, counts: map[string]Counts{}, missed: map[string]int64{}}
	if c.Folder != "" {
		p.resume()
	}
	return p
}

// Close ends all watches. Samples in the folder stay.
func (p *Probing) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.closeSockets()
	p.save()
	for _, w := range p.watches {
		w.lease.Stop()
	}
}

// renew returns a watch, which lives on for that time. The caller holds mu.
func (p *Probing) renew(name string, ns int64) (*watch, error) {
	lease := time.Duration(min(ns, bus.MostLease))
	switch {
	case p.closed:
		return nil, fault.Failf("", "agent: watching: the agent is shutting down")
	case !bus.ValidWatch(name) || lease <= 0:
		return nil, fault.Failf("", "agent: watching: the name or the lease of the watch is not valid")
	}
	until := time.Now().Add(lease)
	if w := p.watches[name]; w != nil {
		w.lease.Reset(lease)
		if w.until = until; until.Sub(w.kept) > time.Hour {
			p.change(w)
		}
		return w, nil
	}
	if len(p.watches) >= mostWatches {
		return nil, fault.Failf("end another watch", "agent: watching: %d watches use this end point, its limit", mostWatches)
	}
	w := &watch{name: name, until: until, reflected: map[record.Pair]reflected{}, sent: map[record.Pair]*sending{}, samples: openSpool(p.folderOf(name))}
	w.lease = time.AfterFunc(lease, func() { p.expire(w) })
	p.watches[name] = w
	p.change(w)
	return w, nil
}

// folderOf returns the folder of a watch, whose name is a secret; "" without folders.
func (p *Probing) folderOf(name string) string {
	if p.conf.Folder == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(p.conf.Folder, hex.EncodeToString(sum[:16]))
}

// expire ends a watch whose lease is over, unless it was renewed since its timer fired.
func (p *Probing) expire(w *watch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watches[w.name] == w && !p.closed && !time.Now().Before(w.until) {
		p.end(w)
	}
}

// end ends a watch and drops its samples. The caller holds mu until they are gone, so that the folder is not of a new watch.
func (p *Probing) end(w *watch) {
	delete(p.watches, w.name)
	w.lease.Stop()
	for _, r := range w.reflected {
		p.reflector.Remove(uint16(r.SSID))
	}
	for _, s := range w.sent {
		p.stop(s)
	}
	clear(w.sent) // their last samples are nobody's
	if len(p.watches) == 0 {
		p.closeSockets()
		clear(p.sending)
	}
	if w.samples.dir != "" {
		os.RemoveAll(w.samples.dir)
	}
}

// closeSockets closes what no watch needs any more. The sender reports its last summaries.
func (p *Probing) closeSockets() {
	if p.sender != nil {
		p.sender.Close()
	}
	if p.reflector != nil {
		p.reflector.Close()
	}
	p.sender, p.reflector = nil, nil
}

// Reflect answers bus.Reflect.
func (p *Probing) Reflect(ctx context.Context, m bus.ReflectRequest) (bus.ReflectReply, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w, err := p.renew(m.Watch, m.LeaseNs)
	if err != nil {
		return bus.ReflectReply{}, err
	}
	pair := record.Pair{From: m.From, To: m.To}
	old, known := w.reflected[pair]
	if known && old.IntervalNs == m.IntervalNs {
		return old.ReflectReply, nil
	}
	if m.IntervalNs == 0 {
		if known {
			p.reflector.Remove(uint16(old.SSID))
			delete(w.reflected, pair)
			p.change(w)
		}
		return bus.ReflectReply{}, nil
	}
	if err := checkPair(m.From, m.To, m.IntervalNs, len(w.reflected), known); err != nil {
		return bus.ReflectReply{}, err
	}
	if err := p.openReflector(ctx, 0); err != nil {
		return bus.ReflectReply{}, err
	}
	if known {
		p.reflector.Remove(uint16(old.SSID))
	}
	r := reflected{ReflectRequest: m, ReflectReply: bus.ReflectReply{Token: token.New()}}
	if err := p.accept(w, pair, r); err != nil {
		return bus.ReflectReply{}, err
	}
	p.change(w)
	return w.reflected[pair].ReflectReply, nil
}

// accept answers the packets of a pair from now on, with the SSID of r, or any if that is 0. The caller holds mu.
func (p *Probing) accept(w *watch, pair record.Pair, r reflected) error {
	ssid, err := p.reflector.Add(stamp.Accept{SSID: uint16(r.SSID), Key: []byte(r.Token), Rate: 2e9 / float64(r.IntervalNs), Once: true})
	if err != nil {
		return err
	}
	r.SSID, r.Port = int(ssid), p.reflector.Port()
	w.reflected[pair] = r
	return nil
}

// checkPair returns an error for a pair that this agent does not measure, beside n others.
func checkPair(from, to string, interval int64, n int, isKnown bool) error {
	const mostName = 256
	switch {
	case from == "" || to == "" || len(from) > mostName || len(to) > mostName:
		return fault.Failf("", "agent: watching: the names of the pair are not valid")
	case interval < bus.LeastGap || interval > int64(time.Minute):
		return fault.Failf("", "agent: watching: a packet each %v is out of range", time.Duration(interval))
	case n >= bus.MostPairs && !isKnown:
		return fault.Failf("watch fewer pairs", "agent: watching: the watch has %d pairs at this end point, its limit", n)
	}
	return nil
}

// Pairs answers bus.Pairs.
func (p *Probing) Pairs(ctx context.Context, m bus.PairsRequest) (r bus.PairsReply, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.LeaseNs == 0 {
		if w := p.watches[m.Watch]; w != nil && !p.closed {
			p.end(w)
		}
		return r, nil
	}
	w, err := p.renew(m.Watch, m.LeaseNs)
	if err != nil {
		return r, err
	}
	if err := p.openSender(ctx, m.Seed); err != nil {
		return r, err
	}
	w.seed = m.Seed
	stays := map[record.Pair]bool{}
	for _, x := range m.Pairs {
		pair := record.Pair{From: x.From, To: x.To}
		if err := p.begin(ctx, w, x); err != nil {
			r.Refused = append(r.Refused, bus.RefusedPair{From: x.From, To: x.To, Error: err.Error(), Hint: fault.Hint(err)})
			continue
		}
		stays[pair] = true
	}
	for pair, s := range w.sent {
		if !stays[pair] {
			p.stop(s)
			delete(w.sent, pair)
		}
	}
	p.change(w)
	return r, nil
}

// begin sends the packets of a pair, unless it does already. The caller holds mu.
func (p *Probing) begin(ctx context.Context, w *watch, x bus.Pair) error {
	pair := record.Pair{From: x.From, To: x.To}
	old := w.sent[pair]
	if old != nil {
		same := old.Pair
		if same.BoundNs = x.BoundNs; same == x {
			old.Pair = x
			p.sender.SetBound(old.id, time.Duration(x.BoundNs))
			return nil
		}
	}
	if err := checkPair(x.From, x.To, x.IntervalNs, len(w.sent), old != nil); err != nil {
		return err
	}
	to, err := netip.ParseAddrPort(x.Target)
	if err != nil || x.SSID <= 0 || x.SSID > 1<<16-1 || x.BoundNs < 0 {
		return fault.Failf("", "agent: watching: the target %.60q is not valid", x.Target)
	}
	if _, err := token.Parse(x.Token); err != nil {
		return err
	}
	if err := p.conf.Trusts(ctx, x.Token); err != nil {
		return err
	}
	if old != nil {
		p.stop(old)
		delete(w.sent, pair)
	}
	s := &sending{Pair: x, watch: w, id: strings.Join([]string{w.name, x.From, x.To}, "\n"), err: p.sender.Missing()}
	target := stamp.Target{
		To: to, SSID: uint16(x.SSID), Key: []byte(x.Token), Interval: time.Duration(x.IntervalNs), Bound: time.Duration(x.BoundNs),
		First: uint32(time.Now().UnixMilli() / 10), // more than packets were ever sent in this session, also by an earlier process
	}
	if route, err := p.conf.Route(to.Addr().String(), ""); err == nil && route != nil {
		target.MTU, s.route = route.MTU, measure.NextHop{Interface: route.Interface, Gateway: route.Gateway}.String()
	}
	if err := p.sender.Add(s.id, target); err != nil {
		return err
	}
	p.sending[s.id], w.sent[pair] = s, s
	return nil
}

// stop ends a session. Its last sample comes by report. The caller holds mu.
func (p *Probing) stop(s *sending) { p.sender.Remove(s.id) }

// report takes a summary from the sender.
func (p *Probing) report(id string, s stamp.Summary) {
	p.inbox.Lock()
	defer p.inbox.Unlock()
	if len(p.reports) == mostMemory {
		p.missed[id]++
		return
	}
	p.reports = append(p.reports, report{id, s})
	p.due()
}

// due has store run soon. The caller holds inbox.
func (p *Probing) due() {
	if !p.isDue {
		p.isDue = true
		time.AfterFunc(storeAfter, p.store)
	}
}

// change has store write the pairs of a watch and its lease. The caller holds mu.
func (p *Probing) change(w *watch) {
	w.kept = time.Time{}
	p.inbox.Lock()
	defer p.inbox.Unlock()
	p.due()
}

// store brings what is new to the disk.
func (p *Probing) store() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.save()
	}
}

// save is store for a caller who holds mu.
func (p *Probing) save() {
	p.inbox.Lock()
	p.isDue = false
	p.inbox.Unlock()
	p.takeReports()
	for _, w := range p.watches {
		if w.kept.IsZero() {
			p.keep(w)
		}
		w.samples.save()
	}
}

// takeReports keeps what the sender has reported as samples. The caller holds mu.
func (p *Probing) takeReports() {
	p.inbox.Lock()
	reports, missed := p.reports, p.missed
	p.reports, p.missed = nil, map[string]int64{}
	p.inbox.Unlock()
	for _, r := range reports {
		x := p.sending[r.id]
		if x == nil {
			continue
		}
		if x.watch.sent[x.pair()] != x { // it was stopped: this is its last one
			delete(p.sending, r.id)
		}
		p.count(x.To, r.summary)
		x.watch.samples.add(sampleOf(x, r.summary))
	}
	for id, n := range missed {
		if x := p.sending[id]; x != nil {
			x.watch.samples.dropped += n
		}
	}
}

// Samples answers bus.Samples.
func (p *Probing) Samples(m bus.SamplesRequest) (r bus.SamplesReply, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w, err := p.renew(m.Watch, m.LeaseNs)
	if err != nil {
		return r, err
	}
	p.takeReports()
	w.samples.drop(m.Stored)
	r.Samples, r.More = w.samples.first()
	r.Dropped = w.samples.dropped
	return r, nil
}
