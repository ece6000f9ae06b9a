package report

import (
	"strings"
	"testing"

	"thru/internal/measure"
)

// silentTest is a file of connections without any figure.
func silentTest(conns ...measure.Connection) *measure.Document {
	d := zeroWindowTest()
	c := &d.Cells[0]
	c.Goodput, c.Runs[0].Goodput, c.Findings = nil, nil, []measure.Finding{{Cause: "none", Confidence: measure.Possible, Summary: "cannot be told"}}
	f := &c.Runs[0].Flows[0]
	f.Sender, f.Receiver = nil, nil
	f.Captures[0].Conns, f.Captures[0].SpanNs = conns, 60e9
	return d
}

// TestAnswerWithoutAFigure: connections without data are reported, on the terminal and on the page.
func TestAnswerWithoutAFigure(t *testing.T) {
	syn := func(again int64) *measure.Opening { return &measure.Opening{Again: measure.Count{N: again}} }
	conn := func(set func(*measure.Connection)) measure.Connection {
		c := measure.Connection{From: "10.0.0.1:4000", To: "10.0.0.2:80"}
		set(&c)
		return c
	}
	unanswered := conn(func(c *measure.Connection) { c.SYN = syn(5) })
	refused := conn(func(c *measure.Connection) { c.SYN, c.EndedBy = syn(0), "rst from 10.0.0.2:80" })
	for _, tt := range []struct {
		name, want string
		conns      []measure.Connection
	}{
		{"never answered", "no data passed 10.0.0.1 -> 10.0.0.2: SYN sent 6 times, never answered\n", []measure.Connection{unanswered}},
		{"the capture ends at once", "SYN sent 6 times, never answered before the capture ends\n", []measure.Connection{conn(func(c *measure.Connection) { c.SYN, c.SpanNs = syn(5), 60e9 })}},
		{"refused", "no data passed 10.0.0.1 -> 10.0.0.2: SYN sent once, refused by RST from 10.0.0.2:80\n", []measure.Connection{refused}},
		{"nothing came back", ": data was sent, 648 B and 5 times again, without any reply\n", []measure.Connection{conn(func(c *measure.Connection) { c.Data.New, c.Data.Again.N = 648, 5 })}},
		{"never acknowledged", ": data was sent, 648 B, never acknowledged\n", []measure.Connection{conn(func(c *measure.Connection) {
			c.Data.New, c.Acks.Packets, c.Timeline = 648, 1, &measure.Trace{Acked: []int64{-1, 0}}
		})}},
		{"a scan", "no data passed 10.0.0.1 -> 10.0.0.2: 2 connections: SYN sent, never answered; 1 connection: SYN sent, refused\n", []measure.Connection{unanswered, unanswered, refused}},
		{"opened", ": opened, without data\n", []measure.Connection{conn(func(c *measure.Connection) { c.SYN, c.SYNACK = syn(0), syn(0) })}},
		{"too little", "no rate measurable 10.0.0.1 -> 10.0.0.2: too little data: 18 B in 1 s\n", []measure.Connection{conn(func(c *measure.Connection) { c.Data.New, c.Acks.Packets, c.SpanNs = 18, 1, 1e9 })}},
		{"no payload", ": the captured packets have no payload\n", []measure.Connection{conn(func(*measure.Connection) {})}},
	} {
		d := silentTest(tt.conns...)
		printed := textFace(t, d, TextOptions{})
		if first, _, _ := strings.Cut(printed, "\n"); !strings.HasSuffix(first+"\n", tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, first, tt.want)
		}
		if !strings.Contains(printed, "\nPacket analysis\n") || strings.Contains(printed, "not checked") || strings.Contains(printed, "not measured") || strings.Contains(printed, "goodput       -") {
			t.Errorf("%s:\n%s", tt.name, printed)
		}
		if page := pageOf(t, d); strings.Contains(page, "No result") || strings.Contains(page, "<h2>Figures") || !strings.Contains(page, "Packet analysis") {
			t.Errorf("%s: the page has no answer", tt.name)
		}
	}
}

// TestFilesAreShort: a result of two files shows the answer, the finding and the handshake on one screen,
// repeats nothing, and uses common words.
func TestFilesAreShort(t *testing.T) {
	d := brokenTSOTest()
	c := &d.Cells[0]
	warn(c, measure.Warning{Code: measure.SingleRun, Text: "single run", Means: "how far runs differ is not known"})
	c.Findings[0].Evidence = append(c.Findings[0].Evidence, measure.Proof{Counter: "tcp_info.opt_sack"}, measure.Proof{Counter: "tcp_info.total_retrans of data_segs_out", Value: 22.3, Unit: "pct", Threshold: new(0.001), Above: true})
	c.Findings = append(c.Findings, measure.Finding{Cause: "loss", Confidence: measure.Certain, BecauseOf: "broken-tso", Summary: "a part is lost", Fix: &measure.Fix{Advice: "find what loses"}})
	c.NotChecked = []measure.Unsettled{{Cause: "cpu-steal", Why: "a capture does not report it"}, {Cause: "asymmetric-route", Why: "one capture does not", Capture: measure.CaptureAtOtherEnd}}
	f := &c.Runs[0].Flows[0]
	f.Crossing.Conns[0].Data.Lost.N += 38
	f.Crossing.Conns[0].Acks.Delay = &measure.Delay{Min: 20e6, P50: 24e6, Max: 31e6, Samples: 9}
	printed := textFace(t, d, TextOptions{Width: 80})
	all := strings.Split(printed, "\n")
	if n := len(all) - 1; n > 60 { // it has a line of every kind
		t.Errorf("%d lines", n)
	}
	if !strings.Contains(strings.Join(all[:24], "\n"), "  handshake ") {
		t.Error("the handshake is not among the first lines")
	}
	wide := textFace(t, d, TextOptions{Width: 1000})
	for _, want := range []string{
		"packets 45, 72, 99, 126, 153, ... of the sender's;", "; SACK at both ends: no;", "retransmitted segments 22.3% of all (threshold > 0.001%)",
		"  loss: certain, because of broken-tso: a part is lost\n", "single segments 0 of 31 560, 38 partly\n",
		"forward median 10.1 ms (10 ms to 14.1 ms), reverse median 24 ms (20 ms to 31 ms), ±21 µs\n",
		"not checked   asymmetric-route (a second capture at the other end would decide); 1 that these packets cannot decide\n",
		"CPU of each end",
	} {
		if want == "CPU of each end" == strings.Contains(wide, want) {
			t.Errorf("%q in\n%s", want, wide)
		}
	}
	for _, not := range []string{"single run", "find what loses", "total_retrans", "retransmits", "(bar"} {
		if strings.Contains(wide, not) {
			t.Errorf("%q in\n%s", not, wide)
		}
	}
	for file, want := range map[string]int{"sender.pcapng": 1, "receiver.pcap": 2} { // with the gap's own words
		if n := strings.Count(wide, file); n != want {
			t.Errorf("%s is named %d times, want %d:\n%s", file, n, want, wide)
		}
	}
}

// TestOneFileIsNotNamedAgain: packets of the only file need no file name.
func TestOneFileIsNotNamedAgain(t *testing.T) {
	if s := textFace(t, zeroWindowTest(), TextOptions{Width: 1000}); strings.Count(s, "mirror.pcap") != 1 {
		t.Error(s)
	}
}

// TestNothingFound: a missing cause is printed in words, not as the name of a cause.
func TestNothingFound(t *testing.T) {
	if s := textFace(t, capturedTest(), TextOptions{}); !strings.Contains(s, "  nothing found: likely, path\n") || strings.Contains(s, "  none") {
		t.Error(s)
	}
}

// TestPageNamesTheCaptureDrawn: the page names which of two captures it draws.
func TestPageNamesTheCaptureDrawn(t *testing.T) {
	if page := pageOf(t, brokenTSOTest()); !strings.Contains(page, "over time, from sender.pcapng</summary>") {
		t.Error("not named")
	}
	if page := pageOf(t, zeroWindowTest()); strings.Contains(page, "over time, from") {
		t.Error("named, though there is but one")
	}
}
