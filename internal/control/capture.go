package control

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"time"

	"thru/internal/bus"
	"thru/internal/capture"
	"thru/internal/capture/trace"
	"thru/internal/cause/diagnose"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/unit"
)

// noCapture returns why an end point cannot capture packets, and a fix; both
// are empty where it can.
func (e *EndPoint) noCapture() (why, hint string) {
	switch {
	case e.Foreign:
		return "no thru runs at " + e.Name, "run `thru serve --allow capture` there"
	case !slices.Contains(e.Hello.Privileges, bus.PrivilegeCapture):
		return e.Name + " does not allow this client to capture", bus.AskFor(bus.PrivilegeCapture)
	case e.Hello.NoCapture != "":
		return e.Name + " cannot capture: " + e.Hello.NoCapture, ""
	}
	return "", ""
}

// captures reports whether one end of a flow captures. With both ends on one
// machine one capture holds all packets.
func (f *flow) captures(s *side) bool {
	why, _ := s.end.noCapture()
	once := f.sender.end == f.receiver.end && s == f.listening()
	return f.spec.Capture > 0 && f.rides == nil && why == "" && !once
}

// specFor returns the Spec that one end receives: without a capture where that end does not capture.
func (f *flow) specFor(s *side) measure.Spec {
	spec := f.spec
	if !f.captures(s) {
		spec.Capture = 0
	}
	return spec
}

// allowed refuses a plan with captures where the agent of an end point may not
// capture. A foreign end has no agent: there the capture of the near end is enough.
func (r *Runner) allowed(p plan.Plan) error {
	for _, step := range p.Steps {
		for _, s := range step.Specs {
			for _, n := range []string{s.From, s.To} {
				e := r.Ends[n]
				if s.Capture == 0 || e == nil || !e.asked() {
					continue
				}
				if why, hint := e.noCapture(); why != "" {
					return fault.Failf(hint, "control: %s", why)
				}
			}
		}
	}
	return nil
}

// lastWait bounds the time that an interrupted command still spends on the
// packets of one end: after Ctrl-C the user wants the prompt, and what was measured.
const lastWait = 5 * time.Second

// lastly returns a context for fetching and reading packets after the command
// was interrupted or its budget spent.
func lastly(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() == nil {
		return ctx, func() {}
	}
	return context.WithTimeout(context.WithoutCancel(ctx), lastWait)
}

// fetch ends the captures of the flows and fetches their files.
func (r *Runner) fetch(ctx context.Context, flows []*flow) {
	for _, s := range sidesOf(flows) {
		if !s.flow.captures(s) || s.session == "" {
			continue
		}
		s.packets = &caught{end: s.end}
		var packed []byte
		within, cancel := lastly(ctx)
		s.packets.what, packed, s.packets.err = r.download(within, s)
		cancel()
		if s.packets.err == nil {
			s.packets.file, s.packets.err = unpack(packed)
		}
	}
}

// download fetches a capture in parts. Each part has its own time limit, since
// the whole takes as long as the path needs.
func (r *Runner) download(ctx context.Context, s *side) (last bus.CaptureReply, packed []byte, err error) {
	for {
		if last.Size > 0 {
			r.notify(Checking{fmt.Sprintf("fetching the packets of %s: %s of %s", s.end.Name, unit.Size(int64(len(packed))), unit.Size(last.Size))})
		}
		last, err = bus.Call(ctx, s.end, bus.CapturePart, bus.CaptureRequest{Session: s.session, Offset: int64(len(packed))})
		if err != nil {
			return last, nil, err
		}
		packed = append(packed, last.Pcapng...)
		switch {
		case int64(len(packed)) == last.Size:
			return last, packed, nil
		case len(last.Pcapng) == 0 || int64(len(packed)) > min(last.Size, mostPacked):
			return last, nil, errors.New("control: the parts of the capture do not fit together")
		}
	}
}

// Size limits of a capture file, in bytes: headers of measure.MaxCapture packets.
const (
	mostPacked   = 512 << 20
	mostUnpacked = measure.MaxCapture * 256
)

// unpack decompresses a capture file (gzip).
func unpack(packed []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("control: unpacking the capture: %w", err)
	}
	file, err := io.ReadAll(io.LimitReader(z, mostUnpacked+1))
	if err == nil && len(file) > mostUnpacked {
		err = errors.New("it is longer than a capture can be")
	}
	if err != nil {
		return nil, fmt.Errorf("control: unpacking the capture: %w", err)
	}
	return file, nil
}

// readPackets fills in the captures of the flows and compares those of both ends.
// A failure is recorded as a missing fact and does not fail the measurement.
func (r *Runner) readPackets(ctx context.Context, flows []*flow) {
	ctx, cancel := lastly(ctx)
	defer cancel()
	for _, f := range flows {
		if f.spec.Capture == 0 || len(f.run.Flows) == 0 {
			continue
		}
		x := &f.run.Flows[0]
		if f.rides != nil {
			lack(x, "captures", "the packets of both directions are listed with the other capture")
			continue
		}
		var sides []trace.Side
		for _, s := range []*side{&f.sender, &f.receiver} {
			if s.packets == nil {
				f.whyNot(x, s)
				continue
			}
			side, err := r.readSide(ctx, f, s, x)
			if err != nil {
				lack(x, "captures at "+s.end.Name, fault.Text(err))
				continue
			}
			sides = append(sides, side)
			x.Captures = append(x.Captures, *side.Capture)
		}
		if len(sides) < 2 {
			continue
		}
		var err error
		if x.Crossing, err = trace.Cross(sides[0], sides[1]); err != nil {
			lack(x, "crossing", fault.Text(err))
		}
	}
}

// lack records a fact that the capture does not give, and why.
func lack(x *measure.Flow, fact, why string) {
	x.Missing = append(x.Missing, measure.NotChecked{Fact: fact, Why: why})
}

// whyNot records why there is no capture of an end.
func (f *flow) whyNot(x *measure.Flow, s *side) {
	switch why, hint := s.end.noCapture(); {
	case why != "" && hint != "":
		lack(x, "captures at "+s.end.Name, why+": "+hint)
	case why != "":
		lack(x, "captures at "+s.end.Name, why)
	case f.captures(s):
		lack(x, "captures at "+s.end.Name, "the test had not started there")
	}
}

// readSide analyses the connections in the capture of one end.
func (r *Runner) readSide(ctx context.Context, f *flow, s *side, x *measure.Flow) (trace.Side, error) {
	p := s.packets
	if p.err != nil {
		return trace.Side{}, p.err
	}
	name := ""
	if r.Keep != nil {
		var err error
		if name, err = r.Keep(Packets{From: f.spec.From, To: f.spec.To, EndPoint: s.end.Name, Experiment: r.experiment, Pcapng: p.file}); err != nil {
			lack(x, "packets of "+s.end.Name+" as a file", fault.Text(err))
		}
	}
	file, err := capture.Load(ctx, "the packets of "+s.end.Name, bytes.NewReader(p.file), trace.Options{Only: wanted(x, s), MTU: p.what.MTU}, nil)
	if err != nil {
		return trace.Side{}, err
	}
	c := file.Capture
	c.File, c.EndPoint, c.Interface, c.MTU = name, s.end.Name, p.what.Interface, p.what.MTU
	c.Dropped, c.Full, c.CPUNs = &p.what.Dropped, p.what.Full, &p.what.CPUNs
	c.Place, c.PlacedBy = measure.AtReceiver, "captured at the receiver"
	switch {
	case f.sender.end == f.receiver.end:
		c.Place, c.PlacedBy = measure.AtSender, "sender and receiver are one machine"
	case s.sends:
		c.Place, c.PlacedBy = measure.AtSender, "captured at the sender"
	}
	return trace.Side{Capture: c, Records: file.Recorder}, nil
}

// wanted returns the address pairs of the flow's connections as one end sees
// them. It returns none where they are unknown: then the flow with the most data is taken.
func wanted(x *measure.Flow, s *side) (only [][2]netip.AddrPort) {
	e := x.Receiver
	if s.sends {
		e = x.Sender
	}
	if e == nil {
		return nil
	}
	for _, c := range e.Streams {
		local, err1 := netip.ParseAddrPort(c.Local)
		peer, err2 := netip.ParseAddrPort(c.Peer)
		if err1 == nil && err2 == nil {
			only = append(only, [2]netip.AddrPort{plainAddr(local), plainAddr(peer)})
		}
	}
	return only
}

// plainAddr returns an address as packets carry it: no zone, no IPv4-mapped IPv6.
func plainAddr(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// onlyShown drops the captures of runs that the report does not show: one per
// cell is enough.
func onlyShown(doc *measure.Document) {
	for i := range doc.Cells {
		c := &doc.Cells[i]
		shown := diagnose.Shown(c)
		for k := range c.Runs {
			for n := range c.Runs[k].Flows {
				if x := &c.Runs[k].Flows[n]; &c.Runs[k] != shown {
					x.Captures, x.Crossing = nil, nil
				}
			}
		}
	}
}
