package iperfdoc

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/stat"
)

// Old documents are written by hand after the output of the versions: 3.1 to 3.9 are no longer available as programs.
const (
	// 3.1: no `sender` in the rows, no requested rates, no congestion control.
	tcp31 = `{
	"start":	{
		"connected":	[{"socket": 4, "local_host": "10.9.8.1", "local_port": 40000, "remote_host": "10.9.8.2", "remote_port": 5201}],
		"version":	"iperf 3.1.3",
		"system_info":	"Linux old 3.10.0-514.el7.x86_64 #1 SMP x86_64",
		"timestamp":	{"time": "Tue, 07 Mar 2017 10:00:00 GMT", "timesecs": 1488880800},
		"connecting_to":	{"host": "server.example", "port": 5201},
		"cookie":	"old.1488880800.000000.0123456789abcdef",
		"tcp_mss_default":	1448,
		"test_start":	{"protocol": "TCP", "num_streams": 1, "blksize": 131072, "omit": 0, "duration": 2, "bytes": 0, "blocks": 0, "reverse": 0}
	},
	"intervals":	[
		{"streams": [{"socket": 4, "start": 0, "end": 1.000, "seconds": 1.000, "bytes": 1000000, "bits_per_second": 8e6, "retransmits": 3, "snd_cwnd": 144800, "omitted": false}],
		 "sum": {"start": 0, "end": 1, "seconds": 1, "bytes": 1000000, "bits_per_second": 8e6, "retransmits": 3, "omitted": false}},
		{"streams": [{"socket": 4, "start": 1.000, "end": 2.000, "seconds": 1.000, "bytes": 1200000, "bits_per_second": 9.6e6, "retransmits": 1, "snd_cwnd": 144800, "omitted": false}],
		 "sum": {"start": 1, "end": 2, "seconds": 1, "bytes": 1200000, "bits_per_second": 9.6e6, "retransmits": 1, "omitted": false}}],
	"end":	{
		"streams": [{"sender": {"socket": 4, "start": 0, "end": 2, "seconds": 2, "bytes": 2200000, "bits_per_second": 8.8e6, "retransmits": 4},
		             "receiver": {"socket": 4, "start": 0, "end": 2, "seconds": 2, "bytes": 2100000, "bits_per_second": 8.4e6}}],
		"sum_sent": {"start": 0, "end": 2, "seconds": 2, "bytes": 2200000, "bits_per_second": 8.8e6, "retransmits": 4},
		"sum_received": {"start": 0, "end": 2, "seconds": 2, "bytes": 2100000, "bits_per_second": 8.4e6},
		"cpu_utilization_percent": {"host_total": 5, "host_user": 1, "host_system": 4, "remote_total": 8, "remote_user": 2, "remote_system": 6}
	}
}
`
	// 3.6: for UDP only `sum`, which covers the sent datagrams.
	udp36 = `{"start": {"connected": [{"socket": 5, "local_host": "10.9.8.1", "local_port": 40000, "remote_host": "10.9.8.2", "remote_port": 5201}],
		"version": "iperf 3.6", "system_info": "Linux old 5.4.0 #1 x86_64", "timestamp": {"time": "Tue, 07 Jan 2020 10:00:00 GMT", "timesecs": 1578391200},
		"connecting_to": {"host": "10.9.8.2", "port": 5201}, "cookie": "abc", "sock_bufsize": 0, "sndbuf_actual": 212992, "rcvbuf_actual": 212992,
		"test_start": {"protocol": "UDP", "num_streams": 1, "blksize": 1000, "omit": 0, "duration": 1, "bytes": 0, "blocks": 0, "reverse": 0, "tos": 184}},
	"intervals": [{"streams": [{"socket": 5, "start": 0, "end": 1, "seconds": 1, "bytes": 100000, "bits_per_second": 800000, "packets": 100, "omitted": false}],
		"sum": {"start": 0, "end": 1, "seconds": 1, "bytes": 100000, "bits_per_second": 800000, "packets": 100, "omitted": false}}],
	"end": {"streams": [{"udp": {"socket": 5, "start": 0, "end": 1, "seconds": 1, "bytes": 100000, "bits_per_second": 800000, "jitter_ms": 0.5, "lost_packets": 25, "packets": 100, "lost_percent": 25, "out_of_order": 2}}],
		"sum": {"start": 0, "end": 1, "seconds": 1, "bytes": 100000, "bits_per_second": 800000, "jitter_ms": 0.5, "lost_packets": 25, "packets": 100, "lost_percent": 25},
		"cpu_utilization_percent": {"host_total": -nan, "host_user": nan, "host_system": -nan, "remote_total": 1, "remote_user": 0.5, "remote_system": 0.5}}}`
	// 3.7: both directions have sums of the same name.
	bidir37 = `{"start": {"connected": [{"socket": 5, "local_host": "::1", "local_port": 1, "remote_host": "::1", "remote_port": 5201}, {"socket": 7, "local_host": "::1", "local_port": 2, "remote_host": "::1", "remote_port": 5201}],
		"version": "iperf 3.7", "timestamp": {"timesecs": 1600000000}, "connecting_to": {"host": "::1", "port": 5201}, "cookie": "b",
		"test_start": {"protocol": "TCP", "num_streams": 1, "blksize": 131072, "omit": 0, "duration": 1, "reverse": 0}},
	"intervals": [{"streams": [{"socket": 5, "start": 0, "end": 1, "seconds": 1, "bytes": 1000, "retransmits": 0, "snd_cwnd": 65483, "omitted": false, "sender": true}, {"socket": 7, "start": 0, "end": 1, "seconds": 1, "bytes": 2000, "omitted": false, "sender": false}],
		"sum": {"bytes": 1000, "sender": true}, "sum": {"bytes": 2000, "sender": false}}],
	"end": {"streams": [{"sender": {"socket": 5, "seconds": 1, "bytes": 1000, "retransmits": 0, "sender": true}, "receiver": {"socket": 5, "seconds": 1, "bytes": 900, "sender": true}},
		{"sender": {"socket": 7, "seconds": 1, "bytes": 2000, "retransmits": 18446744073709551615, "sender": false}, "receiver": {"socket": 7, "seconds": 1, "bytes": 1900, "sender": false}}],
		"sum_sent": {"seconds": 1, "bytes": 1000, "sender": true}, "sum_received": {"seconds": 1, "bytes": 900, "sender": true},
		"sum_sent": {"seconds": 1, "bytes": 2000, "sender": false}, "sum_received": {"seconds": 1, "bytes": 1900, "sender": false}}}`
)

// summarised returns the documents of a text with their figures.
func summarised(t testing.TB, text string) ([]*measure.Document, []string) {
	t.Helper()
	docs, warnings, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range docs {
		for i := range d.Cells {
			stat.Summarise(&d.Cells[i], nil, stat.Link{})
		}
	}
	return docs, warnings
}

func goodputs(d *measure.Document) string {
	var all []string
	for _, c := range d.Cells {
		s := fmt.Sprintf("%s->%s", c.From, c.To)
		if c.Goodput != nil {
			s += fmt.Sprintf(" %.0f", c.Goodput.Value)
		}
		if c.Retransmits != nil {
			s += fmt.Sprintf(" retr %d", *c.Retransmits)
		}
		if d := c.Datagrams; d != nil {
			s += fmt.Sprintf(" lost %d/%d", d.Lost, d.Sent)
		}
		all = append(all, s)
	}
	return strings.Join(all, ", ")
}

// TestReadVersions checks the results of documents of all versions.
func TestReadVersions(t *testing.T) {
	real := func(name string) string { return string(recorded(t, name)[name]) }
	for _, tt := range []struct{ name, text, want string }{
		{"3.1", tcp31, "local->server.example 8400000 retr 4"},
		{"3.1, nothing heard of the receiver", strings.ReplaceAll(tcp31, `"bytes": 2100000, "bits_per_second": 8.4e6`, `"bytes": 0, "bits_per_second": 0`), "local->server.example 8800000 retr 4"},
		{"3.6 UDP", udp36, "local->10.9.8.2 600000 lost 25/100"},
		{"3.7 both ways", bidir37, "local->::1 7200 retr 0, ::1->local 15200"},
		{"3.12", real("3.12-tcp.json"), "local->192.0.2.2 191265099 retr 852"},
		{"3.21", real("3.21-tcp.json"), "local->192.0.2.2 190995258 retr 758"},
		{"3.21 reverse", real("3.21-reverse.json"), "192.0.2.2->local 191312796 retr 489"},
		{"3.21 both ways", real("3.21-bidir.json"), "local->192.0.2.2 187574137 retr 61, 192.0.2.2->local 188096628 retr 100"},
		{"3.21 UDP", real("3.21-udp-loss.json"), "local->192.0.2.2 194580267 lost 18061/51799"},
		{"3.21 line by line", real("3.21-stream-bidir.json"), "local->192.0.2.2 187103203 retr 0, 192.0.2.2->local 188148472 retr 128"},
		{"3.21 server", real("3.21-serverside.json"), "192.0.2.1->local 190585233"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			docs, warnings := summarised(t, tt.text)
			if len(docs) != 1 || len(warnings) > 0 {
				t.Fatalf("%d documents, %q", len(docs), warnings)
			}
			if got := goodputs(docs[0]); !roughly(got, tt.want) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// roughly compares words, numbers to 0.01%.
func roughly(got, want string) bool {
	g, w := strings.Fields(got), strings.Fields(want)
	if len(g) != len(w) {
		return false
	}
	for i := range g {
		var a, b float64
		_, errA := fmt.Sscanf(g[i], "%g", &a)
		_, errB := fmt.Sscanf(w[i], "%g", &b)
		if errA != nil || errB != nil {
			if g[i] != w[i] {
				return false
			}
			continue
		}
		if diff := a - b; diff > b*1e-4 || diff < -b*1e-4 {
			return false
		}
	}
	return true
}

// TestReadDetails checks the full result of a 3.1 document.
func TestReadDetails(t *testing.T) {
	docs, _ := summarised(t, tcp31)
	d := docs[0]
	c := d.Cells[0]
	s, r := c.Runs[0].Flows[0].Sender, c.Runs[0].Flows[0].Receiver
	if d.Command != "import" || d.Schema != measure.Schema || d.StartedAt.Unix() != 1488880800 || d.ElapsedNs != 2e9 {
		t.Errorf("document %+v", d)
	}
	if e := d.EndPoints; len(e) != 2 || e[0].Name != "local" || e[0].Speaks != "iperf3 3.1.3" || *e[0].Facts.Hostname != "old" || e[1].Name != "server.example" || e[1].Addr != "server.example:5201" {
		t.Errorf("end points %+v", e)
	}
	if c.Spec.Engine != measure.IPerf3 || !c.Spec.DialFrom || !c.Spec.NoRamp || c.Spec.Duration != 2e9 || c.Length.Send != 128<<10 {
		t.Errorf("spec %+v", c.Spec)
	}
	if s.Reported != "iperf3 3.1.3" || !s.Dialled || s.LocalAddr != "10.9.8.1:40000" || len(s.Bins) != 2 || s.Worker.SystemNs != 80e6 || *s.Bins[1].TCP[0].Retrans != 4 || *s.Bins[0].TCP[0].Cwnd != 100 {
		t.Errorf("sender %+v", s)
	}
	if r.Reported == "" || r.Dialled || r.LocalAddr != "10.9.8.2:5201" || r.Bytes != 2_100_000 || len(r.Bins) > 0 || len(r.Missing) == 0 {
		t.Errorf("receiver %+v", r)
	}
	docs, _ = summarised(t, udp36)
	s, r = docs[0].Cells[0].Runs[0].Flows[0].Sender, docs[0].Cells[0].Runs[0].Flows[0].Receiver
	if s.Worker != nil || r.Worker == nil || docs[0].Cells[0].Spec.DSCP != 46 || s.Streams[0].Window.Usable != 106496 {
		t.Errorf("nan is no CPU: %+v, %+v, spec %+v", s.Worker, r.Worker, docs[0].Cells[0].Spec)
	}
}

// TestReadBroken reads files as scripts, terminals and crashes leave them.
func TestReadBroken(t *testing.T) {
	lines := string(recorded(t, "3.21-stream-tcp.json")["3.21-stream-tcp.json"])
	cut := tcp31[:strings.Index(tcp31, `"end":	{`)]
	const full = "local->server.example 8400000 retr 4"
	second := strings.Replace(tcp31, "old.1488880800", "old.1488880999", 1)
	for _, tt := range []struct {
		name, text string
		want       []string // for each document
		warns      string
	}{
		{"byte order mark", "\xef\xbb\xbf" + tcp31, []string{full}, ""},
		{"UTF-16", utf16LE(tcp31), []string{full}, ""},
		{"CRLF", strings.ReplaceAll(tcp31, "\n", "\r\n"), []string{full}, ""},
		{"log lines around", "iperf3: getsockopt - Protocol not available\n" + tcp31 + "iperf3: interrupt - the client has terminated {1}\n", []string{full}, ""},
		{"commas too many", strings.ReplaceAll(strings.Replace(tcp31, "}],\n\t\"end\"", "},],\n\t\"end\"", 1), `"sender.example",`, ``), []string{full}, ""},
		{"one after the other", tcp31 + second + udp36, []string{full, full, "local->10.9.8.2 600000 lost 25/100"}, ""},
		{"in a list", "[" + tcp31 + "," + second + "]", []string{full, full}, ""},
		{"twice", tcp31 + tcp31, []string{full}, "ignored repeated"},
		{"cut, then whole", cut + "\n" + tcp31, []string{full}, "ignored repeated"},
		{"cut in the end", cut, []string{"local->server.example 8800000 retr 4"}, "is damaged"},
		{"cut in an interval", tcp31[:strings.Index(tcp31, `"bytes": 1200000`)], []string{"local->server.example 8000000 retr 3"}, "is damaged"},
		{"cut, then another", cut + "\n" + second, []string{"local->server.example 8800000 retr 4", full}, "is damaged"},
		{"garbage inside", strings.Replace(tcp31, `"end":	{`, `iperf3: error`, 1), []string{"local->server.example 8800000 retr 4"}, "is damaged"},
		{"lines without the last", lines[:strings.LastIndex(lines, `{"event":"end"`)], []string{"local->192.0.2.2 1"}, "is damaged"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			docs, warnings := summarised(t, tt.text)
			if len(docs) != len(tt.want) {
				t.Fatalf("%d documents, want %d", len(docs), len(tt.want))
			}
			all := strings.Join(warnings, "\n")
			for i, d := range docs {
				all += strings.Join(d.Warnings, "\n")
				if got := goodputs(d); !roughly(got, tt.want[i]) && !strings.HasPrefix(got, tt.want[i]) {
					t.Errorf("document %d: %s, want %s", i, got, tt.want[i])
				}
			}
			if !strings.Contains(all, tt.warns) || tt.warns == "" && all != "" {
				t.Errorf("warnings %q, want %q", all, tt.warns)
			}
		})
	}
}

func utf16LE(s string) string {
	out := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		out = append(out, byte(u), byte(u>>8))
	}
	return string(out)
}

// TestReadErrors: iperf3's error is the document's error; a file without an iperf3 document is a usage error.
func TestReadErrors(t *testing.T) {
	for _, name := range []string{"3.12-refused.json", "3.21-refused.json", "3.21-stream-refused.json"} {
		docs, _ := summarised(t, string(recorded(t, name)[name]))
		if d := docs[0]; d.Error == nil || !strings.Contains(d.Error.Message, "Connection refused") || len(d.Cells) > 0 {
			t.Errorf("%s: %+v", name, d.Error)
		}
	}
	deep := `{"start": ` + strings.Repeat(`[`, 100_000)
	for _, text := range []string{"", "hello", "{}", `{"start": 1, "end": 2}`, "\xff\xfe", "[1, 2]", deep, `{"schema": "thru.result/1"}`, "{{{{", `{"start"`} {
		_, _, err := Read(strings.NewReader(text))
		if err == nil || fault.Code(err) != fault.Usage || fault.Hint(err) == "" {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	if _, _, err := Read(bytes.NewReader(make([]byte, MaxFile+1))); err == nil || !strings.Contains(err.Error(), "64 MiB") {
		t.Errorf("too large: %v", err)
	}
	var many strings.Builder
	for i := range 2 * maxStreams {
		fmt.Fprintf(&many, `{"socket": %d},`, i)
	}
	if _, _, err := Read(strings.NewReader(`{"start": {"connected": [` + many.String() + `]}, "intervals": [], "end": {}}`)); err == nil || !strings.Contains(err.Error(), "streams") {
		t.Errorf("too many streams: %v", err)
	}
}

// TestReadShortIntervals joins the intervals of -i 0.1 to seconds.
func TestReadShortIntervals(t *testing.T) {
	var rows []string
	for i := range 20 {
		rows = append(rows, fmt.Sprintf(`{"streams": [{"socket": 4, "start": %g, "end": %g, "seconds": 0.1, "bytes": 100, "retransmits": 1, "omitted": false}]}`, float64(i)/10, float64(i+1)/10))
	}
	text := tcp31[:strings.Index(tcp31, `"intervals":`)] + `"intervals": [` + strings.Join(rows, ",") + `], ` + tcp31[strings.Index(tcp31, `"end":	{`):]
	docs, _ := summarised(t, text)
	bins := docs[0].Cells[0].Runs[0].Flows[0].Sender.Bins
	if len(bins) != 2 || bins[0].Bytes != 1000 || bins[1].Span != 1e9 || *bins[1].TCP[0].Retrans != 20 {
		t.Errorf("bins %+v", bins)
	}
}

// FuzzRead checks that no bytes make Read, the figures over its result, or the conversion back panic.
func FuzzRead(f *testing.F) {
	for _, text := range recorded(f, "3.*.json") {
		f.Add(text)
	}
	for _, text := range []string{tcp31, udp36, bidir37, utf16LE(udp36), udp36 + "\n" + tcp31[:900] + "\n" + bidir37} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		docs, _, err := Read(bytes.NewReader(text))
		if err != nil {
			if fault.Hint(err) == "" {
				t.Errorf("no hint: %v", err)
			}
			return
		}
		for _, d := range docs {
			for i := range d.Cells {
				stat.Summarise(&d.Cells[i], nil, stat.Link{RateBps: 1e9})
			}
			var out bytes.Buffer
			if err := Write(&out, d); err != nil {
				t.Fatal(err)
			}
			r := FromDocument(d)
			l := NewLayout(&out, LayoutOptions{Verbose: true})
			l.Start(r.Test)
			for _, i := range r.Intervals {
				l.Interval(i)
			}
			l.End(r.End, true)
		}
	})
}
