package capture

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"thru/internal/capture/trace"
	"thru/internal/fault"
	"thru/internal/measure"
)

// Thresholds for a cell and for a stream.
const (
	leastBack    = 20  // the other direction is a cell where it has more than this part of the main one's payload
	leastStream  = 100 // a connection is a stream where it has more than this part of the largest one's payload
	leastPayload = 64 << 10
	talkBytes    = 4 << 10 // with less, a connection is no stream if another has more: a test's control connection
)

// Document makes a result of one capture, or of two of one flow at two
// capture points. stat.Summarise then fills in its figures. What a
// trace.Recorder keeps limits the work to less than a second; Document fails
// where ctx ends meanwhile.
func Document(ctx context.Context, files ...File) (*measure.Document, error) {
	if len(files) == 0 || len(files) > 2 {
		return nil, fault.Usagef("give one capture, or one of each end", "%d captures are given", len(files))
	}
	d := draft{files: files, sender: &files[0], receiver: &files[0]}
	if len(files) == 2 {
		if err := d.cross(); err != nil {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, fault.Failf("", "%s: interrupted", files[len(files)-1].Name)
	}
	d.find()
	doc := &measure.Document{
		Schema: measure.Schema, Command: "explain", StartedAt: files[0].Capture.StartedAt, EndPoints: d.endPoints(), Cells: []measure.Cell{},
	}
	for _, w := range d.directions {
		doc.Cells = append(doc.Cells, d.cell(w))
	}
	for i := range doc.Cells {
		doc.Cells[i].AtOnce = len(doc.Cells)
		if len(doc.Cells) > 1 {
			doc.Cells[i].Label = []string{"forward", "back"}[i]
		}
	}
	for _, f := range files {
		doc.ElapsedNs = max(doc.ElapsedNs, f.Capture.SpanNs)
		if f.Capture.Damage != "" {
			doc.Warnings = append(doc.Warnings, f.Name+": "+f.Capture.Damage+"; thru uses the part that it read")
		}
	}
	return doc, nil
}

// draft is a document in progress.
type draft struct {
	files      []File
	sender     *File // the capture nearer to the sender
	receiver   *File
	crossing   *measure.Crossing
	server     map[*measure.Capture]string // listening HOST:PORT
	directions []direction
}

// direction is one direction of the flow's data.
type direction struct {
	back     bool // opposite to that of the main connection
	from, to string
	sender   *File // capture nearer to the sender of this direction
	receiver *File
	crossing *measure.Crossing // with the sender's capture as the left one
	sent     []stream          // at the sender's capture
	acked    []stream          // at the receiver's
}

// stream is the data of one connection in one direction.
type stream struct {
	conn        *measure.Connection
	local, peer string // the sender's address, and the other one
	turned      bool   // this data flows against conn.From
	sent, acked trace.Volume
}

// got returns the bytes that the receiver acknowledged or, where the
// acknowledgements are not in the capture, the bytes sent.
func (s *stream) got() trace.Volume {
	if s.conn.Acks.Packets == 0 && !s.turned || s.conn.Data.Packets == 0 && s.turned {
		return s.sent
	}
	return s.acked
}

// cross compares two captures.
func (d *draft) cross() error {
	a, b := &d.files[0], &d.files[1]
	x, err := trace.Cross(trace.Side{Capture: a.Capture, Records: a.Recorder}, trace.Side{Capture: b.Capture, Records: b.Recorder})
	switch {
	case errors.Is(err, trace.ErrSamePlace):
		return fault.Usagef("give one capture, or one of each end", "%s and %s were captured at the same place: every packet has the same time in both", a.Name, b.Name)
	case errors.Is(err, trace.ErrOtherFlow):
		return fault.Usagef("give two captures of one test, taken at the same time at both ends; explain others one by one",
			"%s (%s) and %s (%s) have no connection in common", a.Name, mainOf(a.Capture), b.Name, mainOf(b.Capture))
	case err != nil:
		return err
	}
	d.crossing = x
	d.sender, d.receiver = &d.files[x.Left], &d.files[x.Right]
	left, right := d.sender.Capture, d.receiver.Capture
	place(left, measure.AtSender, left.Conns[0].Data.TTLs)
	place(right, measure.AtReceiver, right.Conns[0].Acks.TTLs)
	return nil
}

// place sets the place of the capture nearer to an end, where no router has
// lowered the TTL of the end's packets.
func place(c *measure.Capture, where string, ttls []int) {
	if c.Place == "" && len(ttls) > 0 && slices.Contains([]int{64, 128, 255}, ttls[0]) {
		c.Place = where
		c.PlacedBy = fmt.Sprintf("nearer to it than the other one, TTL %d", ttls[0])
	}
}

func mainOf(c *measure.Capture) string { return c.Conns[0].From + " -> " + c.Conns[0].To }

// find determines which directions carry data, and in which connections.
func (d *draft) find() {
	d.server = map[*measure.Capture]string{}
	for _, f := range d.files {
		d.server[f.Capture] = listens(&f.Capture.Conns[0])
	}
	main := d.direction(false)
	d.directions = []direction{main}
	if back := d.direction(true); total(back.acked) > max(leastPayload, total(main.acked)/leastBack) {
		d.directions = append(d.directions, back)
	}
}

// listens returns the end that did not open the connection: without the
// handshake, the one with the lower port.
func listens(c *measure.Connection) string {
	a, errA := netip.ParseAddrPort(c.From)
	b, errB := netip.ParseAddrPort(c.To)
	toServer := errA == nil && errB == nil && b.Port() <= a.Port()
	if c.FromOpened != nil {
		toServer = *c.FromOpened
	}
	if toServer {
		return c.To
	}
	return c.From
}

// direction collects the streams of one direction.
func (d *draft) direction(back bool) direction {
	main := &d.sender.Capture.Conns[0]
	w := direction{back: back, from: host(main.From), to: host(main.To), sender: d.sender, receiver: d.receiver, crossing: d.crossing}
	if d.crossing != nil { // NAT may have changed the address
		w.to = host(d.receiver.Capture.Conns[0].To)
	}
	if back {
		w.from, w.to = w.to, w.from
		w.sender, w.receiver, w.crossing = w.receiver, w.sender, turned(w.crossing)
	}
	w.sent, w.acked = d.streams(w.sender, back), d.streams(w.receiver, back)
	if w.crossing != nil {
		w.acked = d.crossed(w)
	}
	return w
}

// crossed returns the receiver's streams of the connections that are streams
// at the sender: only the sender's capture shows data that never arrived.
func (d *draft) crossed(w direction) []stream {
	var out []stream
	for _, s := range d.allOf(w.receiver, w.back) {
		if slices.ContainsFunc(w.crossing.Conns, func(x measure.CrossedConn) bool {
			return x.RightIndex == s.conn.Index && slices.ContainsFunc(w.sent, func(l stream) bool { return l.conn.Index == x.LeftIndex })
		}) {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return w.acked
	}
	return out[:min(len(out), measure.MaxStreams)]
}

// isTurned reports whether a connection's data flows against that of the
// sender's main one: by the hosts, or by the server where both ends are on
// one host, or where NAT has renamed both.
func (d *draft) isTurned(c *measure.Capture, conn *measure.Connection) bool {
	main := &d.sender.Capture.Conns[0]
	if from, to := host(main.From), host(main.To); from != to {
		switch {
		case host(conn.From) == from || host(conn.To) == to:
			return false
		case host(conn.From) == to || host(conn.To) == from:
			return true
		}
	}
	return (main.To == d.server[d.sender.Capture]) != (conn.To == d.server[c])
}

// streams returns the connections that carry much data in a direction, at one
// capture.
func (d *draft) streams(f *File, back bool) []stream {
	all := d.allOf(f, back)
	var most int64
	for i := range all {
		most = max(most, all[i].sent.Total)
	}
	all = slices.DeleteFunc(all, func(s stream) bool {
		return s.sent.Total == 0 || s.sent.Total < most/leastStream || s.sent.Total < talkBytes && most >= talkBytes
	})
	return all[:min(len(all), measure.MaxStreams)]
}

// allOf returns all connections of a capture, in a direction.
func (d *draft) allOf(f *File, back bool) []stream {
	var all []stream
	for i := range f.Capture.Conns {
		c := &f.Capture.Conns[i]
		s := stream{conn: c, local: c.From, peer: c.To, turned: d.isTurned(f.Capture, c) != back}
		if s.turned {
			s.local, s.peer = s.peer, s.local
		}
		s.sent, s.acked = f.Recorder.Volumes(c, s.turned)
		if s.sent.Total == 0 {
			s.sent = whole(f.Capture, c, s.turned) // it was not recorded
		}
		all = append(all, s)
	}
	return all
}

// whole returns a connection's payload where its time line was not recorded.
func whole(c *measure.Capture, conn *measure.Connection, turned bool) trace.Volume {
	n := conn.Data.New
	if turned {
		n = conn.Acks.New
	}
	start := c.StartedAt.UnixNano() + conn.StartNs
	return trace.Volume{FirstNs: start, LastNs: start + conn.SpanNs, Total: n}
}

func total(all []stream) (n int64) {
	for i := range all {
		n += all[i].sent.Total
	}
	return n
}

// endPoints returns the end points, named by their addresses.
func (d *draft) endPoints() []measure.EndPoint {
	w := d.directions[0]
	out := []measure.EndPoint{{Name: w.from, Addr: w.from}}
	if w.to != w.from {
		out = append(out, measure.EndPoint{Name: w.to, Addr: w.to})
	}
	return out
}

func host(hostPort string) string {
	h, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return hostPort
	}
	return h
}

// cell returns one direction as a test cell.
func (d *draft) cell(w direction) measure.Cell {
	flow := measure.Flow{From: w.from, To: w.to, Sender: d.senderSide(w), Receiver: d.receiverSide(w)}
	d.attach(&flow, w)
	spec := measure.Spec{
		From: w.from, To: w.to, DialFrom: flow.Sender.Dialled, Protocol: measure.TCP, Streams: max(len(w.acked), 1),
		Duration: flow.Receiver.MeasuredNs, NoRamp: true, Interval: int64(measure.Bin), Family: 4,
	}
	if a, err := netip.ParseAddr(w.from); err == nil && a.Is6() {
		spec.Family = 6
	}
	return measure.Cell{
		From: w.from, To: w.to, Protocol: spec.Protocol, Streams: spec.Streams, Spec: spec,
		Runs: []measure.Run{{StartedAt: d.files[0].Capture.StartedAt, Flows: []measure.Flow{flow}}},
	}
}

// attach adds the captures to a flow, with the connections of its direction.
func (d *draft) attach(flow *measure.Flow, w direction) {
	indices := map[int]bool{} // of the left capture
	for i := range d.files {
		c := *d.files[i].Capture
		c.Place = w.placeOf(&c)
		c.Conns = slices.DeleteFunc(slices.Clone(c.Conns), func(conn measure.Connection) bool {
			return d.isTurned(d.files[i].Capture, &conn) != w.back
		})
		if len(c.Conns) == 0 {
			lack(flow.Sender, "captures", "the packets of both directions are listed with the other capture")
			flow.Captures = nil
			return
		}
		if w.crossing != nil && i == w.crossing.Left {
			for _, conn := range c.Conns {
				indices[conn.Index] = true
			}
		}
		flow.Captures = append(flow.Captures, c)
	}
	if w.crossing == nil {
		return
	}
	x := *w.crossing
	x.Conns = slices.DeleteFunc(slices.Clone(x.Conns), func(c measure.CrossedConn) bool { return !indices[c.LeftIndex] })
	flow.Crossing = &x
}

// turned returns a crossing as seen from the other direction: its right
// capture becomes the left one. It returns nil for nil.
func turned(from *measure.Crossing) *measure.Crossing {
	if from == nil {
		return nil
	}
	x := *from
	x.Left, x.Right, x.OffsetNs, x.Conns = x.Right, x.Left, -x.OffsetNs, slices.Clone(x.Conns)
	for i := range x.Conns {
		c := &x.Conns[i]
		c.LeftIndex, c.RightIndex = c.RightIndex, c.LeftIndex
		c.Changed = slices.Clone(c.Changed)
		for k := range c.Changed {
			c.Changed[k].Packets = slices.Clone(c.Changed[k].Packets)
			slices.Reverse(c.Changed[k].Packets)
		}
	}
	return &x
}

// placeOf returns the place of a capture as seen from a direction: the sender
// of one direction is the receiver of the other.
func (w *direction) placeOf(c *measure.Capture) string {
	switch {
	case w.back && c.Place == measure.AtSender:
		return measure.AtReceiver
	case w.back && c.Place == measure.AtReceiver:
		return measure.AtSender
	}
	return c.Place
}

func lack(e *measure.Evidence, fact, why string) {
	e.Missing = append(e.Missing, measure.NotChecked{Fact: fact, Why: why})
}

// unseen notes a counter of the end that no capture shows.
func unseen(e *measure.Evidence, fact, why string) {
	e.Missing = append(e.Missing, measure.NotChecked{Fact: fact, Why: why, Code: measure.NotInCapture})
}

// opened returns the distribution of the handshakes' round-trip times; nil
// where no handshake is in the capture.
func opened(all []stream) *measure.RTT {
	var ns []int64
	for i := range all {
		if t := all[i].conn.OpenNs; t != nil {
			ns = append(ns, *t)
		}
	}
	if len(ns) == 0 {
		return nil
	}
	slices.Sort(ns)
	return &measure.RTT{Min: ns[0], Median: ns[len(ns)/2], Max: ns[len(ns)-1], Samples: len(ns)}
}
