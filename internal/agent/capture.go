package agent

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"

	"thru/internal/bus"
	"thru/internal/capture/live"
	"thru/internal/engine"
	"thru/internal/fault"
	"thru/internal/measure"
)

// Capturer captures packets of this host: the kernel's ring (package live), or a
// fake in tests.
type Capturer interface {
	Possible() error // why this host cannot capture; nil where it can
	Start(live.Config) (Ring, error)
}

// Ring is a running capture. Stop ends it and returns the packets of one
// interface and of one peer; Close discards it.
type Ring interface {
	Stop(iface string, peer netip.AddrPort) (live.Recording, error)
	Close()
}

// noCapture returns why this host cannot capture; empty where it can.
func (a *Agent) noCapture() string {
	if a.conf.Capture == nil {
		return "this thru cannot capture packets"
	}
	if err := a.conf.Capture.Possible(); err != nil {
		return fault.Text(err)
	}
	return ""
}

// open opens one end of a flow, with a capture if the Spec has one. The dialling
// end starts it before it dials, so that it holds the handshakes, the listening
// end when it knows its port. A capture that fails does not fail the flow; one
// that is not allowed does.
func (a *Agent) open(ctx context.Context, eng engine.Engine, end engine.End) (engine.Session, *packets, error) {
	if end.Spec.Capture <= 0 {
		inner, err := eng.Open(ctx, end)
		return inner, nil, err
	}
	if !bus.Allows(ctx, bus.PrivilegeCapture) {
		return nil, nil, fault.Failf(bus.AskFor(bus.PrivilegeCapture), "agent: this client may measure here, but not capture packets")
	}
	p := &packets{}
	if end.Dials {
		p.start(a.conf.Capture, live.Config{Peers: peers(ctx, end.Targets), Packets: end.Spec.Capture})
	}
	inner, err := eng.Open(ctx, end)
	if err != nil {
		p.close()
		return nil, nil, err
	}
	if end.Dials {
		p.peer, _ = netip.ParseAddrPort(inner.Ready().Peer) // of the targets, the one that is connected
	} else {
		port := inner.Ready().Port
		p.start(a.conf.Capture, live.Config{Ports: [2]int{port, port}, Packets: end.Spec.Capture})
	}
	return inner, p, nil
}

// peers resolves the targets to addresses; it skips a name that cannot be
// resolved, since that cannot be dialled either.
func peers(ctx context.Context, targets []string) (all []netip.AddrPort) {
	for _, t := range targets {
		host, port, err := net.SplitHostPort(t)
		n, bad := strconv.ParseUint(port, 10, 16)
		if err != nil || bad != nil {
			continue
		}
		addrs, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", host) // an address resolves to itself
		for _, a := range addrs {
			all = append(all, netip.AddrPortFrom(a.Unmap().WithZone(""), uint16(n)))
		}
	}
	return all
}

// packets is the capture of one session.
type packets struct {
	peer netip.AddrPort // the address dialled; zero at the listening end

	mu   sync.Mutex
	ring Ring              // nil: not started, or ended
	err  error             // why there is no capture
	what *bus.CaptureReply // once it has ended, without a part
	file []byte            // pcapng, compressed
}

// start starts the capture; an error is returned when the capture is fetched.
func (p *packets) start(c Capturer, conf live.Config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c == nil {
		p.err = fault.Failf("upgrade thru there", "agent: this thru cannot capture packets")
		return
	}
	conf.Packets = min(conf.Packets, measure.MaxCapture)
	p.ring, p.err = c.Start(conf)
}

// part ends the capture on the first call, and returns the part of its file from
// offset.
func (p *packets) part(iface string, offset int64) (bus.CaptureReply, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ring != nil {
		p.stop(iface)
	}
	switch {
	case p.err != nil:
		return bus.CaptureReply{}, p.err
	case p.what == nil:
		return bus.CaptureReply{}, fault.Failf("", "agent: the session has ended; its capture is deleted")
	case offset < 0 || offset > p.what.Size:
		return bus.CaptureReply{}, fault.Failf("", "agent: the offset %d is outside the capture", offset)
	}
	r := *p.what
	r.Pcapng = p.file[offset:min(offset+bus.CapturePartBytes, r.Size)]
	return r, nil
}

// stop reads the recording from the ring.
func (p *packets) stop(iface string) {
	rec, err := p.ring.Stop(iface, p.peer)
	p.ring = nil
	if err == nil {
		p.file, err = pack(rec.Pcapng)
	}
	if err != nil {
		p.err = fmt.Errorf("agent: ending the capture: %w", err)
		return
	}
	p.what = &bus.CaptureReply{
		Size: int64(len(p.file)), Interface: rec.Interface, MTU: rec.MTU,
		Packets: rec.Packets, Dropped: rec.Dropped, Full: rec.Full, CPUNs: rec.CPUNs,
	}
}

// pack compresses with the fastest level: headers of one flow are similar and
// shrink to a third even so.
func pack(file []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(file); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// close discards the capture.
func (p *packets) close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ring != nil {
		p.ring.Close()
	}
	p.ring, p.what, p.file = nil, nil, nil
}

// CapturePart answers bus.CapturePart.
func (a *Agent) CapturePart(_ context.Context, client string, m bus.CaptureRequest) (bus.CaptureReply, error) {
	s, err := a.find(client, m.Session)
	if err != nil {
		return bus.CaptureReply{}, err
	}
	if s.packets == nil {
		return bus.CaptureReply{}, fault.Failf("", "agent: no capture was requested")
	}
	a.prolong(s)
	return s.packets.part(s.device(), m.Offset)
}

// prolong extends a session whose packets are being fetched: a slow path takes
// longer than the limit of an ended session.
func (a *Agent) prolong(s *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sessions[s.id] == s { // else it has ended meanwhile
		s.expire.Reset(leftover)
	}
}

// device returns the interface towards the peer; empty where it is unknown.
func (s *session) device() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	route := s.route
	if route == nil { // the session was never started
		ready := s.inner.Ready()
		route, _ = s.agent.route(ready.Peer, ready.Local)
	}
	if route == nil {
		return ""
	}
	return route.Interface
}
