package iperf3

import (
	"cmp"
	"context"
	"crypto/rand"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"thru/internal/bus"
	"thru/internal/control"
	"thru/internal/iperfdoc"
	"thru/internal/measure"
)

// originalView prints a running test as iperf3 does: as lines of text, or as lines of JSON; for a single JSON
// document it collects the intervals. It implements control.Observer, whose calls come from one goroutine.
//
// It shows the end of this command; a server shows its own end.
type originalView struct {
	o       *original
	out     io.Writer
	layout  *iperfdoc.Layout // for plain text
	stream  *iperfdoc.Stream // for --json-stream
	test    iperfdoc.Test
	specs   []measure.Spec
	waiting [][]control.Live // by flow: intervals that the other flows have not reported yet
	conns   [][]measure.Addresses
	began   bool  // the start is printed
	rampAt  int64 // start of the first interval: 0, or before it
	all     []iperfdoc.Interval
	err     error // of writing
}

func newOriginalView(o *original, out io.Writer, version string) *originalView {
	v := &originalView{o: o, out: out}
	v.test = iperfdoc.Test{
		Version: iperfdoc.Version(version), Host: o.host, Port: o.port, Title: o.Request.Title, Extra: o.Request.Extra,
		Cookie: strings.ToLower(rand.Text() + rand.Text())[:36],
	}
	switch {
	case o.jsonStream:
		v.stream = iperfdoc.NewStream(out)
	case !o.json:
		v.layout = iperfdoc.NewLayout(out, o.layout())
	}
	return v
}

func (o *original) layout() iperfdoc.LayoutOptions {
	return iperfdoc.LayoutOptions{Format: o.format, Verbose: o.verbose, Stamp: stamp(o.timestamps)}
}

// introduce asks the agent of this process for the output of `uname -a`.
func (v *originalView) introduce(ctx context.Context, local *control.EndPoint) {
	reply, err := bus.Call(ctx, local.Client, bus.Facts, bus.FactsRequest{})
	if err != nil {
		return // the run will report the error
	}
	head := iperfdoc.FromDocument(&measure.Document{EndPoints: []measure.EndPoint{{Facts: &reply.Facts}}})
	v.test.System = head.Test.System
}

// reportsErrors reports whether the output is a document, which contains the error.
func (v *originalView) reportsErrors() bool { return v.layout == nil }

func (v *originalView) keep(err error) { v.err = cmp.Or(v.err, err) }

// Hear implements control.Observer.
func (v *originalView) Hear(e control.Event) {
	switch e := e.(type) {
	case control.StepBegun:
		v.Step(e.Specs)
	case control.Live:
		v.Live(e)
	}
}

// Step notes the test's parameters.
func (v *originalView) Step(specs []measure.Spec) {
	v.specs, v.waiting, v.conns = specs, make([][]control.Live, len(specs)), make([][]measure.Addresses, len(specs))
	s, r := specs[0], &v.o.Request
	t := &v.test
	t.Time, t.Server = time.Now(), v.o.server
	t.Protocol, t.Streams = strings.ToUpper(s.Protocol), s.Streams
	t.Omit, t.Duration, t.Bytes, t.Blocks = time.Duration(s.Ramp), time.Duration(s.Duration), s.Amount, r.Blocks
	if s.Amount > 0 {
		t.Duration = 0
	}
	if t.Blocks > 0 { // plan has converted them to bytes
		t.Bytes = 0
	}
	t.Bidir = len(specs) > 1
	t.Reverse = !t.Bidir && (s.From == control.Local) == t.Server
	t.TOS, t.Rate, t.FQRate, t.Interval = s.DSCP<<2, s.Rate/int64(max(s.Streams, 1)), v.o.fqRate, r.Interval
	t.Window, t.BlockSize = s.Window.Send, s.Length.Send
	if s.Protocol == measure.TCP {
		t.BlockSize = cmp.Or(t.BlockSize, measure.DefaultLength)
	}
	t.AskedMSS, t.Title, t.Extra = int64(s.MSS), cmp.Or(s.Title, t.Title), cmp.Or(s.Extra, t.Extra)
}

// Live prints an interval once all flows have reported it.
func (v *originalView) Live(l control.Live) {
	if s := v.specs[l.Flow]; l.EndPoint != control.Local || s.From == s.To && l.Sends != s.DialFrom {
		return // iperf3 shows its own end
	}
	if l.Event.Kind == bus.EventConnected {
		v.connected(l)
		return
	}
	v.waiting[l.Flow] = append(v.waiting[l.Flow], l)
	for !slices.ContainsFunc(v.waiting, func(w []control.Live) bool { return len(w) == 0 }) {
		var row []control.Live
		for i, w := range v.waiting {
			row, v.waiting[i] = append(row, w[0]), w[1:]
		}
		v.show(row)
	}
}

// show prints an interval: of bidirectional traffic first what the client sends.
func (v *originalView) show(row []control.Live) {
	slices.SortStableFunc(row, func(a, b control.Live) int { return bit(b.Sends != v.test.Server) - bit(a.Sends != v.test.Server) })
	e := row[0].Event
	if e.Phase == bus.PhaseRamp && e.SpanNs < int64(time.Millisecond) {
		return // there is no ramp, only its end
	}
	if v.test.BlockSize == 0 && e.Packets > 0 { // the engine has chosen the length of a datagram
		v.test.BlockSize = e.Bytes / e.Packets
	}
	v.begin()
	if len(v.all) == 0 {
		v.rampAt = min(e.AtNs, 0)
	}
	i := iperfdoc.Interval{Omitted: e.Phase == bus.PhaseRamp}
	from := e.AtNs
	if i.Omitted {
		from -= v.rampAt
	}
	i.Start, i.End = time.Duration(from), time.Duration(from+e.SpanNs)
	first := 0
	for _, l := range row {
		w := direction(l, first)
		i.Directions = append(i.Directions, w)
		first += len(w.Streams)
	}
	v.all = append(v.all, i)
	switch {
	case v.stream != nil:
		v.keep(v.stream.Interval(i))
	case v.layout != nil:
		v.keep(v.layout.Interval(i))
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// connected prints the start of the test once the streams of all flows are known. A session reports those of
// its own direction first, then of the other.
func (v *originalView) connected(l control.Live) {
	conns, own := l.Event.Conns, v.specs[l.Flow].Streams
	v.test.Omit = l.Ramp // if not set, it follows from the round-trip time
	if len(conns) > own && len(v.specs) == 2 {
		v.conns[1-l.Flow] = conns[own:]
		conns = conns[:own]
	}
	v.conns[l.Flow] = conns
	if slices.ContainsFunc(v.conns, func(c []measure.Addresses) bool { return c == nil }) {
		return
	}
	for _, sends := range []bool{!v.test.Server, v.test.Server} {
		for i, s := range v.specs {
			if v.sends(s) == sends {
				v.addConns(v.conns[i])
			}
		}
	}
	if v.layout != nil && !v.test.Server { // iperf3 prints nothing about a connection that was not established
		v.keep(v.layout.Connecting(v.test))
	}
	if sized := v.test.BlockSize > 0 || !v.o.verbose && v.stream == nil; sized {
		v.begin()
	}
}

// sends reports whether this end sends a flow; in a test of this machine alone it is the end that dials.
func (v *originalView) sends(s measure.Spec) bool {
	return s.From == control.Local && (s.From != s.To || s.DialFrom)
}

func (v *originalView) addConns(as []measure.Addresses) {
	for _, a := range as {
		v.test.MSS = max(v.test.MSS, int64(a.MSS))
		c := iperfdoc.Conn{Socket: iperfdoc.Socket(len(v.test.Conns))}
		c.LocalHost, c.LocalPort = hostAndPort(a.Local)
		c.RemoteHost, c.RemotePort = hostAndPort(a.Peer)
		v.test.Conns = append(v.test.Conns, c)
	}
}

// begin prints the start of the test.
func (v *originalView) begin() {
	if v.began {
		return
	}
	v.began = true
	switch {
	case v.stream != nil:
		v.keep(v.stream.Start(v.test))
	case v.layout != nil:
		v.keep(v.layout.Start(v.test))
	}
}

func hostAndPort(s string) (string, int) {
	a, err := netip.ParseAddrPort(s)
	if err != nil {
		return s, 0
	}
	return a.Addr().Unmap().String(), int(a.Port())
}

// direction converts one direction of an interval; first is the index of its first stream among all streams.
func direction(l control.Live, first int) iperfdoc.Direction {
	w := iperfdoc.Direction{Sends: l.Sends}
	for i, t := range l.Event.Each {
		p := iperfdoc.Part{
			Socket: iperfdoc.Socket(first + i), Bytes: t.Bytes, Packets: t.Packets,
			Retransmits: t.Retransmits, Cwnd: t.Cwnd, SendWindow: t.SendWindow, Reordering: t.ReordSeen, RTTUs: iperfdoc.Micros(t.RTT), RTTVarUs: iperfdoc.Micros(t.RTTVar), PathMTU: t.PathMTU,
		}
		if !l.Sends {
			p.Retransmits, p.Cwnd, p.Lost, p.JitterNs = nil, nil, new(t.Lost), t.JitterNs
		}
		w.Streams = append(w.Streams, p)
	}
	w.Sum = iperfdoc.Sum(w.Streams)
	return w
}

// end prints the results. Its error is of writing.
func (v *originalView) end(doc *measure.Document, err error) error {
	r := iperfdoc.FromDocument(doc)
	head := v.test
	head.BlockSize = cmp.Or(r.Test.BlockSize, head.BlockSize)
	head.MSS, head.SendBuffer, head.RecvBuffer = r.Test.MSS, r.Test.SendBuffer, r.Test.RecvBuffer
	if len(head.Conns) == 0 {
		head.Conns = r.Test.Conns
	}
	r.Test, r.Intervals = head, v.all
	if err != nil {
		r.Error = originalWords(err)
	}
	if !v.o.Request.FarOutput { // after one --get-server-output, a server sends its output always
		r.End.ServerText, r.End.ServerJSON = "", ""
	}
	switch {
	case v.stream != nil:
		v.endStream(r)
	case v.layout == nil:
		v.keep(r.Write(v.out))
	case len(r.End.Directions) > 0 && v.began:
		v.keep(v.layout.End(r.End, r.Error == ""))
	}
	return v.err
}

func (v *originalView) endStream(r iperfdoc.Report) {
	if r.Error != "" {
		v.keep(v.stream.Fail(r.Error))
	} else {
		v.keep(v.stream.End(r.End))
	}
	if v.o.jsonFull {
		v.keep(r.Write(v.out))
	}
}
