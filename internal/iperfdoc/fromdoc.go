package iperfdoc

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"thru/internal/measure"
	"thru/internal/unit"
)

// FromDocument converts a result to iperf3's terms. iperf3 has one test in one direction, or in both at once; a thru document may hold more. FromDocument uses
// the first main cell of bulk data, with the cell in the other direction that ran at the same time, and of each the first complete run. Sequential tests,
// baselines and requests are only in `--json`.
//
// The view is that of the end that opened the connections, iperf3's client; where only the other end recorded the test second by second, it is the server's.
// Times count from the start of the measured time: the ramp is `omit`, and its seconds are not among the intervals.
func FromDocument(doc *measure.Document) Report {
	r := Report{Test: Test{Version: Version(doc.Thru), System: system(doc)}}
	if doc.Error != nil {
		r.Error = doc.Error.Message
	}
	all := chosen(doc)
	if len(all) == 0 {
		r.Error = cmp.Or(r.Error, "the result does not fit iperf3's format, which has only bulk data in one direction or in both at once")
		return r
	}
	first := all[0]
	if r.Error == "" && first.run.Error != nil {
		r.Error = first.run.Error.Message
	}
	r.Test = test(r.Test, doc, all)
	r.Intervals = intervals(all)
	r.End = end(all)
	return r
}

// chosenCell is one cell with its run to print.
type chosenCell struct {
	cell      *measure.Cell
	run       *measure.Run
	flow      *measure.Flow
	near, far *measure.Evidence // far may be nil
	sends     bool              // the near end sends
	server    bool              // the near end is the server
	first     int               // index of its first stream among those of all cells
}

// chosen returns the cells to print: none, one, or two, first the one that the client sends.
func chosen(doc *measure.Document) []chosenCell {
	var all []chosenCell
	for i := range doc.Cells {
		c := &doc.Cells[i]
		if c.Baseline || c.Spec.Traffic != measure.Bulk || len(all) > 0 && (c.Group != all[0].cell.Group || c.AtOnce < 2) {
			continue
		}
		if x, ok := choose(c); ok {
			all = append(all, x)
		}
		if len(all) == 2 {
			break
		}
	}
	if len(all) == 2 && all[0].sends == all[1].sends {
		all = all[:1]
	}
	slices.SortStableFunc(all, func(a, b chosenCell) int { return unit.Bit(b.sends != b.server) - unit.Bit(a.sends != a.server) })
	if len(all) == 2 {
		all[1].first = len(all[0].near.Streams)
	}
	return all
}

// choose returns the first complete run of a cell, else the first with any figures.
func choose(c *measure.Cell) (chosenCell, bool) {
	var found chosenCell
	for i := range c.Runs {
		run := &c.Runs[i]
		x := chosenCell{cell: c, run: run, flow: flowOf(c, run)}
		if x.flow == nil || !x.look() {
			continue
		}
		if found.near == nil {
			found = x
		}
		if run.Error == nil && !run.Partial {
			return x, true
		}
	}
	return found, found.near != nil
}

func flowOf(c *measure.Cell, r *measure.Run) *measure.Flow {
	i := slices.IndexFunc(r.Flows, func(f measure.Flow) bool { return f.From == c.From && f.To == c.To })
	if i < 0 && len(r.Flows) == 1 {
		i = 0
	}
	if i < 0 {
		return nil
	}
	return &r.Flows[i]
}

// look selects the end from which the test is seen.
func (x *chosenCell) look() bool {
	x.near, x.far, x.sends = x.flow.Receiver, x.flow.Sender, false
	if x.cell.Spec.DialFrom {
		x.near, x.far, x.sends = x.flow.Sender, x.flow.Receiver, true
	}
	if x.far != nil && len(x.far.Bins) > 0 && (x.near == nil || len(x.near.Bins) == 0) {
		x.near, x.far, x.sends, x.server = x.far, x.near, !x.sends, true
	}
	return x.near != nil
}

func (x *chosenCell) sender() *measure.Evidence   { return x.flow.Sender }
func (x *chosenCell) receiver() *measure.Evidence { return x.flow.Receiver }

// system returns `uname -a` of the end where the command ran, as far as it is known.
func system(doc *measure.Document) string {
	for _, p := range doc.EndPoints {
		f := p.Facts
		if f == nil {
			continue
		}
		var words []string
		machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"} // names that uname prints
		for _, s := range []*string{f.OS, f.Hostname, f.Kernel, f.Arch} {
			if s != nil && *s != "" {
				words = append(words, cmp.Or(machine[*s], *s))
			}
		}
		if len(words) > 0 {
			words[0] = strings.ToUpper(words[0][:1]) + words[0][1:]
		}
		return strings.Join(words, " ")
	}
	return ""
}

func test(t Test, doc *measure.Document, all []chosenCell) Test {
	x := all[0]
	spec := x.cell.Spec
	t.Protocol, t.Streams, t.TOS = strings.ToUpper(x.cell.Protocol), x.cell.Streams, spec.DSCP<<2
	t.Time, t.Cookie = x.run.StartedAt, cookie(doc, x)
	if t.Time.IsZero() {
		t.Time = doc.StartedAt
	}
	t.Host, t.Port = hostPort(x.near.PeerAddr)
	t.Server, t.Bidir = x.server, len(all) == 2
	t.Reverse = !t.Bidir && x.sends == x.server
	t.Duration, t.Bytes = time.Duration(spec.Duration), spec.Amount
	if spec.Amount > 0 {
		t.Duration = 0
	}
	if t.Omit = time.Duration(spec.Ramp); t.Omit == 0 && !spec.NoRamp {
		t.Omit = time.Duration(max(x.near.RampNs, 0))
	}
	t.Interval = measure.Bin
	t.Rate = spec.Rate / int64(max(x.cell.Streams, 1))
	t.BlockSize, t.Window = spec.Length.Recv, spec.Window.Recv
	if x.sends {
		t.BlockSize, t.Window = spec.Length.Send, spec.Window.Send
	}
	for _, c := range all {
		t.Conns = append(t.Conns, conns(c)...)
		for _, s := range c.near.Streams[:min(1, len(c.near.Streams))] {
			t.MSS = max(t.MSS, int64(s.MSS))
			t.BlockSize = cmp.Or(t.BlockSize, s.Length)
			if c.sends {
				t.SendBuffer = s.Window.Granted
			} else {
				t.RecvBuffer = s.Window.Granted
			}
		}
	}
	return t
}

func conns(x chosenCell) []Conn {
	var all []Conn
	for i, s := range x.near.Streams {
		c := Conn{Socket: Socket(x.first + i)}
		c.LocalHost, c.LocalPort = hostPort(s.Local)
		c.RemoteHost, c.RemotePort = hostPort(s.Peer)
		all = append(all, c)
	}
	return all
}

// hostPort splits an address; text that is no address counts as a host.
func hostPort(s string) (string, int) {
	a, err := netip.ParseAddrPort(s)
	if err != nil {
		return s, 0
	}
	return a.Addr().Unmap().String(), int(a.Port())
}

// cookie returns a name of the test in iperf3's alphabet. The document does not hold the wire's own cookie, and other engines have none, so it is a hash of
// what distinguishes the test.
func cookie(doc *measure.Document, x chosenCell) string {
	const length = 36
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s %d", doc.StartedAt.UTC(), x.near.LocalAddr, x.near.PeerAddr, x.run.Index))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:length]
}
