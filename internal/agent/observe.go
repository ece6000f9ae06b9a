package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/host"
	"thru/internal/measure"
	"thru/internal/sock"
)

// Intervals and bounds of an observation.
const (
	lookEvery     = 50 * time.Millisecond  // reads of the connections
	programsEvery = 200 * time.Millisecond // reads of the processes that own them
	searchEvery   = time.Second            // searches for these processes, among all open files of the host
	mostStreams   = 64                     // streams in the result
	comeWithin    = 5 * time.Second        // a connection not found within this time does not belong to this kernel
)

// observation records this host while a server here, which is not part of thru,
// moves a file for a client.
type observation struct {
	job
	host   *host.Host
	diag   *sock.Diag // nil: why says why
	why    string
	from   func(netip.Addr) bool // reports whether an address is the client's
	iface  string
	before host.Snapshot
	begun  time.Duration // since the machine booted; 0: unknown

	mu       sync.Mutex
	conns    []*observed
	refused  int // connections of other addresses
	programs []*program
	searched time.Time
}

// observed is one connection.
type observed struct {
	local, peer netip.AddrPort // as this host sees them
	series      sock.Series
	inode       uint32
	named       time.Time // when the client named it
	found, gone bool
	sought      bool // its processes were searched for
}

// program is a process that owns such a connection.
type program struct {
	pid           int
	born          time.Duration // with pid it identifies the process, not a later one with the same pid
	name          string
	first, latest measure.Process    // since it began; first is zero for a process that began during the observation
	quota         *measure.QuotaSpan // of its control group, when it was found; nil: none
}

// BeginObserve answers bus.Observe.Begin.
func (a *Agent) BeginObserve(ctx context.Context, client string, m bus.ObserveStart) (bus.JobReply, error) {
	if !a.turns.has(client) {
		return bus.JobReply{}, errNotYourTurn("observing a transfer")
	}
	if m.Session != "" {
		o, err := find[*observation](a, client, m.Session)
		if err != nil {
			return bus.JobReply{}, err
		}
		return bus.JobReply{Session: o.session}, o.add(m.Conns, true)
	}
	isFirst := func() bool { return count(a, func(o *observation) bool { return o.client == client }) == 0 }
	a.mu.Lock()
	first := isFirst()
	a.mu.Unlock()
	if !first { // before the first reading
		return bus.JobReply{}, errObserves
	}
	o := &observation{job: newJob(client, "a file transfer"), host: a.conf.Host, from: a.isOf(ctx, client)}
	done, stop := context.WithCancel(context.WithoutCancel(ctx))
	o.stop = stop
	var err error
	if o.diag, err = sock.OpenDiag(); err != nil {
		o.diag, o.why = nil, err.Error()
	}
	if err := o.add(m.Conns, false); err != nil {
		o.close()
		return bus.JobReply{}, err
	}
	if len(o.conns) > 0 {
		if r, err := a.route(o.conns[0].peer.String(), o.conns[0].local.String()); err == nil {
			o.iface = r.Interface
		}
	}
	o.begun, _ = o.host.Up()
	o.look(time.Now())
	o.search(time.Now())
	o.before = o.host.Read(o.iface, 0)
	if !a.keep(o, isFirst) {
		o.close()
		return bus.JobReply{}, errObserves
	}
	go o.follow(done)
	return bus.JobReply{Session: o.session}, nil
}

// EndObserve answers bus.Observe.End. The turn stays the client's.
func (a *Agent) EndObserve(_ context.Context, client string, m bus.JobEnd) (bus.ObserveResult, error) {
	o, err := find[*observation](a, client, m.Session)
	if err != nil {
		return bus.ObserveResult{}, err
	}
	after := o.host.Read(o.iface, 0)
	o.stop()
	<-o.over
	a.forget(o)
	return o.seen(after), nil
}

// isOf returns a function that reports whether an address is the client's: that of
// its control connection, and those it has measured from. For the own process all are.
func (a *Agent) isOf(ctx context.Context, client string) func(netip.Addr) bool {
	if bus.IsOwn(ctx) {
		return func(netip.Addr) bool { return true }
	}
	a.mu.Lock()
	known := slices.Clone(a.proved[client])
	a.mu.Unlock()
	if addr, ok := bus.ClientAddr(ctx); ok {
		known = append(known, addr)
	}
	return func(x netip.Addr) bool { return slices.Contains(known, x.Unmap().WithZone("")) }
}

// prove records an address from which a client has shown the token of a data connection.
func (a *Agent) prove(client, addr string) {
	x, err := addrOf(addr)
	if err != nil {
		return
	}
	x = x.WithZone("")
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.turns.has(client) { // the client is gone, and nothing would remove the entry
		return
	}
	if !slices.Contains(a.proved[client], x) && len(a.proved[client]) < mostProved {
		a.proved[client] = append(a.proved[client], x)
	}
}

// mostProved bounds the recorded addresses of a client.
const mostProved = 64

var errObserves = fault.Failf("", "agent: observing a transfer: this client already observes one or has disconnected, or the agent is shutting down")

// close closes the observation's socket.
func (o *observation) close() {
	if o.diag != nil {
		o.diag.Close()
	}
}

// add adds connections. The client has the addresses in reverse.
func (o *observation) add(conns []measure.Addresses, later bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.conns)+len(conns) > bus.MostObserved {
		return fault.Failf("use fewer files or clients at once", "agent: observing more than %d connections is not supported", bus.MostObserved)
	}
	for _, c := range conns {
		local, err := netip.ParseAddrPort(c.Peer)
		peer, perr := netip.ParseAddrPort(c.Local)
		if err != nil || perr != nil {
			return fault.Failf("", "agent: observing a transfer: %.60q to %.60q is not a pair of addresses", c.Local, c.Peer)
		}
		if !o.from(peer.Addr()) {
			o.refused++
			continue
		}
		x := &observed{local: local, peer: peer, named: time.Now(), series: sock.Series{Local: c.Peer, Peer: c.Local}}
		x.series.Begin(later)
		o.conns = append(o.conns, x)
	}
	return nil
}

// follow reads the connections and processes at intervals until it is ended.
func (o *observation) follow(ctx context.Context) {
	defer close(o.over)
	defer o.close()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	programs := time.Now()
	for {
		select {
		case <-ctx.Done():
			o.look(time.Now())
			o.readPrograms()
			return
		case now := <-tick.C:
			o.look(now)
			if now.Sub(programs) >= programsEvery {
				o.search(now)
				o.readPrograms()
				programs = now
			}
		}
	}
}

// look reads all connections that exist.
func (o *observation) look(now time.Time) {
	if o.diag == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, x := range o.conns {
		if x.gone {
			continue
		}
		c, err := o.diag.Find(x.local, x.peer)
		switch {
		case errors.Is(err, sock.ErrNoConnection) || err == nil && !c.IsKnown:
			x.gone = x.found || now.Sub(x.named) > comeWithin // not yet found: the client may know of it first
		case err != nil:
			o.why = err.Error()
		default:
			x.found = true
			if c.Inode != 0 {
				x.inode = c.Inode
			}
			x.series.Add(c, now)
		}
	}
}

// search finds the processes of new connections.
func (o *observation) search(now time.Time) {
	o.mu.Lock()
	inodes := map[uint32]bool{}
	for _, x := range o.conns {
		if x.inode != 0 && !x.sought {
			inodes[x.inode] = true
		}
	}
	wait := now.Sub(o.searched) < searchEvery
	o.mu.Unlock()
	if len(inodes) == 0 || wait {
		return
	}
	holders, err := o.host.Holders(inodes)
	if err != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.searched = now
	for _, x := range o.conns {
		x.sought = x.sought || inodes[x.inode]
	}
	for _, all := range holders {
		for _, h := range all {
			o.watch(h)
		}
	}
}

// watch adds a process. The caller holds mu.
func (o *observation) watch(h host.Holder) {
	now, born, err := o.read(h.PID)
	if err != nil || slices.ContainsFunc(o.programs, func(p *program) bool { return p.pid == h.PID && p.born == born }) {
		return
	}
	p := &program{pid: h.PID, born: born, name: h.Name, first: now, latest: now}
	if o.begun > 0 && born > o.begun { // all that it has used belongs to this transfer
		p.first = measure.Process{}
	}
	p.quota, _ = o.host.QuotaOf(h.PID) // an unreadable quota counts as unknown
	o.programs = append(o.programs, p)
}

// read returns the resources that a process has used, and when it began. It reads
// the start last, so that both belong to the same process.
func (o *observation) read(pid int) (measure.Process, time.Duration, error) {
	p, err := o.host.Process(pid)
	born, berr := o.host.Born(pid)
	return p, born, errors.Join(err, berr)
}

// readPrograms reads the resources of the processes; an ended process keeps its
// latest reading.
func (o *observation) readPrograms() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.programs {
		if now, born, err := o.read(p.pid); err == nil && born == p.born {
			p.latest = now
		}
	}
}

// used returns the CPU time of a process during the observation, in ns.
func (p *program) used() int64 {
	return p.latest.UserNs - p.first.UserNs + p.latest.SystemNs - p.first.SystemNs
}

// seen returns the result of an ended observation.
func (o *observation) seen(after host.Snapshot) bus.ObserveResult {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := slices.SortedFunc(slices.Values(o.programs), func(a, b *program) int { return cmp.Compare(b.used(), a.used()) })
	before := o.before
	before.Quota, after.Quota = o.quotas(all)
	r := bus.ObserveResult{Host: host.Span(before, after, before.Taken), Streams: []measure.Stream{}}
	r.Host.Missing = append(r.Host.Missing, before.Missing...)
	found := 0
	for _, x := range o.conns {
		if x.found {
			found++
			r.Streams = append(r.Streams, x.series.Stream())
		}
	}
	r.Streams = sock.DataStreams(r.Streams, mostStreams)
	if why := o.whyFew(found); why != "" {
		r.Missing = append(r.Missing, measure.NotChecked{Fact: "streams", Why: why})
	}
	if len(all) == 0 {
		r.Missing = append(r.Missing, measure.NotChecked{Fact: "worker", Why: o.whyNobody(found)})
		return r
	}
	sum := measure.Process{}
	for _, p := range all {
		sum.UserNs += p.latest.UserNs - p.first.UserNs
		sum.SystemNs += p.latest.SystemNs - p.first.SystemNs
		sum.ResidentB += p.latest.ResidentB
		r.Programs = append(r.Programs, p.name)
	}
	r.Host.Worker = &sum
	return r
}

// quotas returns the counters of the busiest process's control group, when it was
// found and now: the agent's own quota does not concern the server.
func (o *observation) quotas(busiest []*program) (before, after *measure.QuotaSpan) {
	for _, p := range busiest {
		if p.quota == nil {
			continue
		}
		now, err := o.host.QuotaOf(p.pid)
		if born, berr := o.host.Born(p.pid); err == nil && berr == nil && born == p.born && now != nil {
			return p.quota, now
		}
	}
	return nil, nil
}

// whyFew returns why connections were not found; empty: most were, and the others
// too short to be seen.
func (o *observation) whyFew(found int) string {
	all := len(o.conns) + o.refused
	switch {
	case all == 0:
		return "the client knows none of its connections"
	case 2*found >= all:
		return ""
	case o.why != "" && found == 0:
		return o.why
	case o.refused == all:
		return "they do not lead to a known address of this client: NAT is on the path, or it measures from another address"
	}
	return fmt.Sprintf("this kernel does not know %d of %d connections: NAT is on the path, the server is in another network namespace or on another host, or they were too short", all-found, all)
}

// whyNobody returns why no process is known.
func (o *observation) whyNobody(found int) string {
	if found == 0 {
		return "no connection was found"
	}
	return "thru sees no process with these connections: only root sees those of other users, and kernel connections (NFS, SMB) have none"
}
