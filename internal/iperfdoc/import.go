package iperfdoc

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"thru/internal/measure"
)

// nearName is the end whose iperf3 wrote the document.
const nearName = "local"

// unreported is the reason for everything that iperf3 does not report.
const unreported = "iperf3 does not report it"

// maxStreams limits the streams of both directions of one test.
const maxStreams = 2 * measure.MaxStreams

// reading is the conversion of one document to a result.
type reading struct {
	found
	start, test, end node
	program          string // "iperf3 3.12"
	protocol         string
	server           bool // the server wrote it
	sends            bool // this end sends in the main direction
	bothDirections   bool
	far              string // name of the other end
	streams          []stream
	ends             map[int64]node // rows of `end` by socket
}

// stream is one connection.
type stream struct {
	socket      int64
	local, peer string
	sends       bool
}

// convert converts a document to a result.
func convert(f found) (*measure.Document, error) {
	r := reading{found: f, start: f.root.get("start"), end: f.root.get("end"), far: "peer"}
	if err := r.look(); err != nil {
		return nil, err
	}
	doc := &measure.Document{
		Schema: measure.Schema, Command: "import", StartedAt: r.startedAt(), EndPoints: r.endPoints(), Cells: []measure.Cell{},
	}
	for _, sends := range []bool{r.sends, !r.sends} {
		if slices.ContainsFunc(r.streams, func(s stream) bool { return s.sends == sends }) {
			if c := r.cell(sends); elapsed(c.Runs[0]) > 0 {
				doc.Cells = append(doc.Cells, c)
			}
		}
	}
	for i := range doc.Cells {
		doc.Cells[i].AtOnce = len(doc.Cells)
		doc.Cells[i].Spec.Duplex = len(doc.Cells) > 1
		if len(doc.Cells) > 1 {
			doc.Cells[i].Label = []string{"forward", "back"}[i]
		}
	}
	r.remark(doc)
	return doc, nil
}

// remark lists what is missing in the document.
func (r *reading) remark(doc *measure.Document) {
	if e := r.root.get("error").str(); e != "" {
		who, _, _ := strings.Cut(r.program, " ")
		doc.Error = &measure.Error{Message: who + ": " + e, ExitCode: 1, Hint: "this is what " + who + " itself reported"}
	}
	if r.cut != nil {
		doc.Warnings = append(doc.Warnings, fmt.Sprintf("the iperf3 document is damaged: %v; thru uses the complete part", r.cut))
	} else if r.isPartial() && doc.Error == nil {
		doc.Warnings = append(doc.Warnings, "the iperf3 document has no end: the test was aborted")
	}
	if doc.Error == nil && len(doc.Cells) == 0 {
		doc.Error = &measure.Error{Message: "the iperf3 document holds no figures", ExitCode: 1, Hint: "the test ended before its first interval"}
	}
	if i := r.test.get("interval"); i.kind == kindNumber {
		if s, _ := i.number(); s > 1 {
			doc.Warnings = append(doc.Warnings, fmt.Sprintf("iperf3 reported every %g s (-i): figures per second are of these intervals", s))
		}
	}
	if n := len(r.root.get("intervals").list()); n > maxIntervals {
		doc.Warnings = append(doc.Warnings, fmt.Sprintf("the iperf3 document has %d intervals: thru uses the first %d", n, maxIntervals))
	}
	for _, c := range doc.Cells {
		for _, run := range c.Runs {
			doc.ElapsedNs = max(doc.ElapsedNs, duration(r.test.get("omit"))+elapsed(run))
		}
	}
}

// elapsed returns the measured time of a run, in ns.
func elapsed(run measure.Run) int64 {
	var most int64
	for _, f := range run.Flows {
		for _, e := range []*measure.Evidence{f.Sender, f.Receiver} {
			if e != nil {
				most = max(most, e.MeasuredNs)
			}
		}
	}
	return most
}

// isPartial reports a test without its final figures.
func (r *reading) isPartial() bool { return r.cut != nil || len(r.end.get("streams").list()) == 0 }

// look reads the two ends and the direction.
func (r *reading) look() error {
	r.test = r.start.get("test_start")
	r.program = program(r.start.get("version").str())
	r.server = r.start.has("accepted_connection")
	r.sends = r.test.get("reverse").isTrue() == r.server
	r.ends = map[int64]node{}
	if h := cmp.Or(r.start.get("connecting_to").get("host").str(), r.start.get("accepted_connection").get("host").str()); h != "" && h != nearName {
		r.far = h
	}
	r.protocol = strings.ToLower(r.test.get("protocol").str())
	for _, m := range r.start.get("connected").list() {
		c := m.value
		s := r.stream(c)
		s.local = address(c.get("local_host").str(), c.get("local_port").count())
		s.peer = address(c.get("remote_host").str(), c.get("remote_port").count())
	}
	for _, i := range r.intervals() {
		for _, m := range i.value.get("streams").list() {
			r.stream(m.value)
		}
	}
	for _, m := range r.end.get("streams").list() {
		for _, side := range m.value.items {
			r.stream(side.value)
			r.ends[side.value.get("socket").count()] = m.value
			if side.key == "udp" {
				r.protocol = cmp.Or(r.protocol, measure.UDP)
			}
		}
	}
	r.protocol = cmp.Or(r.protocol, measure.TCP)
	r.bothDirections = slices.ContainsFunc(r.streams, func(s stream) bool { return s.sends != r.sends })
	if n := len(r.streams); n > maxStreams {
		return fmt.Errorf("%d streams: iperf3 has at most %d", n, maxStreams)
	}
	return nil
}

// stream returns the connection of a row, and stores its direction: rows have it since two-way traffic exists (3.7).
func (r *reading) stream(row node) *stream {
	socket := row.get("socket").count()
	i := slices.IndexFunc(r.streams, func(s stream) bool { return s.socket == socket })
	if i < 0 {
		if len(r.streams) > maxStreams {
			return &stream{} // look reports that there are too many
		}
		i = len(r.streams)
		r.streams = append(r.streams, stream{socket: socket, sends: r.sends})
	}
	if s := row.get("sender"); s.kind == kindBool {
		r.streams[i].sends = s.isTrue()
	}
	return &r.streams[i]
}

// program returns "iperf3 3.12" for "iperf 3.12", and thru's own name for a document of thru.
func program(version string) string {
	if _, thru, ok := strings.Cut(version, "("); ok && strings.HasPrefix(thru, "thru ") {
		return strings.TrimSuffix(thru, ")")
	}
	if _, number, ok := strings.Cut(version, " "); ok {
		return "iperf3 " + number
	}
	return "iperf3"
}

func address(host string, port int64) string {
	a, err := netip.ParseAddr(strings.TrimPrefix(host, "::ffff:"))
	switch {
	case host == "":
		return ""
	case err != nil:
		return fmt.Sprintf("%s:%d", host, port)
	}
	return netip.AddrPortFrom(a, uint16(min(port, math.MaxUint16))).String()
}

func (r *reading) startedAt() time.Time {
	t := r.start.get("timestamp")
	if ms, ok := t.get("timemillisecs").integer(); ok {
		return time.UnixMilli(ms).UTC()
	}
	if s, ok := t.get("timesecs").integer(); ok {
		return time.Unix(s, 0).UTC()
	}
	at, _ := time.Parse(timeLayout, t.get("time").str())
	return at
}

func (r *reading) endPoints() []measure.EndPoint {
	far := measure.EndPoint{Name: r.far, Speaks: "iperf3"}
	for _, key := range []string{"connecting_to", "accepted_connection"} {
		if h := r.start.get(key); h.kind == kindObject {
			far.Addr = address(h.get("host").str(), h.get("port").count())
		}
	}
	if v := r.root.get("server_output_json").get("start").get("version").str(); v != "" {
		far.Speaks = program(v)
	}
	return []measure.EndPoint{{Name: nearName, Speaks: r.program, Facts: facts(r.start.get("system_info").str())}, far}
}

// facts returns the facts in a host's `uname -a`.
func facts(uname string) *measure.Facts {
	words := strings.Fields(uname)
	if len(words) < 3 {
		return nil
	}
	f := &measure.Facts{OS: new(strings.ToLower(words[0])), Hostname: &words[1], Kernel: &words[2]}
	if arch := words[len(words)-1]; len(words) > 3 && strings.ContainsAny(arch, "0123456789") {
		f.Arch = &arch
	}
	for _, fact := range []string{"cpu_model", "cores", "memory_bytes", "hypervisor", "interfaces", "sysctls"} {
		f.NotChecked = append(f.NotChecked, measure.NotChecked{Fact: fact, Why: unreported})
	}
	return f
}

// cell returns one direction of the test.
func (r *reading) cell(sends bool) measure.Cell {
	spec := r.spec(sends)
	run := measure.Run{StartedAt: r.startedAt(), Partial: r.isPartial(), Flows: []measure.Flow{r.flow(sends)}}
	return measure.Cell{
		From: spec.From, To: spec.To, Label: r.root.get("title").str(), Protocol: spec.Protocol, Streams: spec.Streams,
		Window: spec.Window, Length: spec.Length, Spec: spec, Runs: []measure.Run{run},
	}
}

func (r *reading) spec(sends bool) measure.Spec {
	s := measure.Spec{From: nearName, To: r.far, DialFrom: sends != r.server, Engine: measure.IPerf3, Protocol: r.protocol}
	if !sends {
		s.From, s.To = s.To, s.From
	}
	for _, x := range r.streams {
		if x.sends == sends {
			s.Streams++
		}
	}
	block, window := r.test.get("blksize").count(), r.start.get("sock_bufsize").count()
	s.Length, s.Window = measure.Pair{Send: block, Recv: block}, measure.Pair{Send: window, Recv: window}
	s.Duration, s.Ramp = duration(r.test.get("duration")), duration(r.test.get("omit"))
	s.NoRamp = s.Ramp == 0
	s.Interval = cmp.Or(duration(r.test.get("interval")), int64(measure.Bin))
	s.Amount = r.test.get("bytes").count()
	if n := r.test.get("blocks").count(); s.Amount == 0 && n > 0 && n < measure.MaxRate {
		s.Amount = n * min(block, measure.MaxLength)
	}
	bps := cmp.Or(r.test.get("target_bitrate").count(), r.start.get("target_bitrate").count())
	s.Rate = min(bps, measure.MaxRate) * int64(s.Streams)
	s.DSCP = int(r.test.get("tos").count()>>2) & 63
	return s
}

// duration converts seconds to ns; it returns 0 above a year.
func duration(n node) int64 {
	const year = 366 * 24 * 3600
	s, ok := n.number()
	if !ok || s > year {
		return 0
	}
	return int64(s * 1e9)
}
