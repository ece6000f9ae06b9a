package iperf3

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"thru/internal/engine"
	"thru/internal/fault"
	"thru/internal/measure"
)

func TestCookie(t *testing.T) {
	a, b := newCookie(), newCookie()
	if a == b || a.check() != nil {
		t.Errorf("cookies %q and %q: %v", a, b, a.check())
	}
	old := cookie([]byte("host.1700000000.123456.1234567890123\x00"))
	if err := old.check(); err != nil {
		t.Errorf("the cookie of an old client: %v", err)
	}
	for _, bad := range []string{"GET / HTTP/1.1\r\nHost: example.com\r\nUse", strings.Repeat("a", cookieSize), "\x16\x03\x01" + strings.Repeat("x", 33) + "\x00"} {
		if k := cookie([]byte(bad)[:cookieSize]); k.check() == nil {
			t.Errorf("%q was taken for a cookie", bad)
		}
	}
}

func TestStreamIDs(t *testing.T) {
	var ids []int
	for i := range 5 {
		ids = append(ids, streamID(i))
	}
	if !slices.Equal(ids, []int{1, 3, 4, 5, 6}) {
		t.Error(ids)
	}
}

func TestHello(t *testing.T) {
	little := binary.LittleEndian.AppendUint32(nil, legacyAsk)
	big := binary.BigEndian.AppendUint32(nil, legacyAsk)
	for _, c := range []struct{ ask, answer []byte }{
		{[]byte(helloAsk), []byte(helloAnswer)},
		{little, binary.LittleEndian.AppendUint32(nil, legacyAnswer)},
		{big, binary.BigEndian.AppendUint32(nil, legacyAnswer)},
		{[]byte("what"), []byte(helloAnswer)},
		{nil, []byte(helloAnswer)},
	} {
		if got := answerTo(c.ask); !bytes.Equal(got, c.answer) || !isAnswer(got) {
			t.Errorf("%q is answered by %q, want %q", c.ask, got, c.answer)
		}
	}
	if isAnswer([]byte(helloAsk)) || isAnswer(nil) || isAnswer([]byte("67890")) {
		t.Error("what is no answer was taken for one")
	}
}

func frame(text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

func TestFrames(t *testing.T) {
	for _, c := range []struct{ in, want, err string }{
		{string(frame(`{"a":1}`)), `{"a":1}`, ""},
		{string(frame(`{"a":-nan,"b":[nan,inf,-Infinity],"c":"-nan \" nan"}`)), `{"a":null,"b":[null,null,null],"c":"-nan \" nan"}`, ""},
		{"\x00\x00", "", "EOF"},
		{"\x00\x00\x00\x00", "", "outside 1 to"},
		{"\xff\xff\xff\xff{}", "", "outside 1 to"},
		{"\x00\x00\x00\x09{}", "", "2 of 9 bytes"},
		{string(frame(strings.Repeat("[", 100))), "", "nested deeper"},
		{string(frame(strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40))), "", "nested deeper"},
	} {
		got, err := readFrame(strings.NewReader(c.in), mostParameters)
		if string(got) != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q gives %q, %v", c.in, got, err)
		}
	}
}

// Our server understands our client's parameters.
func TestParametersGoRound(t *testing.T) {
	base := measure.Spec{From: "a", To: "b", DialFrom: true, Engine: measure.IPerf3, Protocol: measure.TCP, Streams: 3, Duration: 5e9, Ramp: 2e9}
	for name, c := range map[string]struct {
		change func(*measure.Spec)
		sends  bool
	}{
		"plain":   {func(*measure.Spec) {}, true},
		"reverse": {func(s *measure.Spec) { s.DialFrom = false }, false},
		"both":    {func(s *measure.Spec) { s.Duplex = true }, true},
		"options": {func(s *measure.Spec) {
			s.Window, s.MSS, s.NoDelay, s.DSCP, s.Congestion = measure.Pair{Send: 1 << 20, Recv: 1 << 20}, 1000, true, 46, "cubic"
			s.ReceiverCPU, s.FarOutput, s.Rate = new(1), true, 300e6
		}, true},
		"lean": {func(s *measure.Spec) { s.IO = measure.IOLean }, true},
		"zero copy": {func(s *measure.Spec) {
			s.IO, s.DialFrom, s.SenderCPU = measure.IOSendfile, false, new(0)
		}, false},
		"udp": {func(s *measure.Spec) { s.Protocol, s.Rate, s.DontFragment = measure.UDP, 30e6, true }, true},
	} {
		spec := base
		c.change(&spec)
		length := int64(1400)
		spec.Length = measure.Pair{Send: length, Recv: length}
		b, err := json.Marshal(ask(engine.End{Spec: spec, Sends: c.sends, Dials: true}, time.Duration(spec.Ramp), length, ""))
		if err != nil {
			t.Fatal(err)
		}
		p, err := readParameters(b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := p.specs("client", Limits{})[0]
		got.From, got.To, got.Interval, got.Together = spec.From, spec.To, 0, false
		if !sameSpec(got, spec) {
			t.Errorf("%s: %s\nasked for %+v\n      got %+v", name, b, spec, got)
		}
		if two := len(p.specs("client", Limits{})) == 2; two != spec.Duplex {
			t.Errorf("%s: two flows: %v", name, two)
		}
	}
}

func sameSpec(a, b measure.Spec) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}

func TestParametersAsked(t *testing.T) {
	spec := measure.Spec{Protocol: measure.TCP, Streams: 4, Duration: 1.5e9, Rate: 100e6, Amount: 1e6}
	p := ask(engine.End{Spec: spec, Sends: true}, 1200*time.Millisecond, 131072, "")
	if p.Omit != 2 || p.Time != 0 || p.Amount != 1e6 || p.Rate != 25e6 {
		t.Errorf("%+v", p)
	}
	spec.Amount, spec.Rate = 0, 1
	if p := ask(engine.End{Spec: spec}, 0, 131072, ""); p.Time != 2 || p.Rate != 1 || !p.Reverse {
		t.Errorf("%+v", p)
	}
	b, _ := json.Marshal(p)
	for _, never := range []string{"burst", "flowlabel", "server_affinity", "authtoken"} {
		if bytes.Contains(b, []byte(never)) {
			t.Errorf("%s is sent: %s", never, b)
		}
	}
}

func TestParametersRefused(t *testing.T) {
	for _, c := range []struct {
		json string
		code int32
		says string
	}{
		{`{"tcp":true,"time":-1,"parallel":1,"len":1}`, codeDuration, "time is -1"},
		{`{"tcp":true,"time":86401,"len":1}`, codeDuration, "outside 0 to 86400"},
		{`{"tcp":true,"time":1e30,"len":1}`, codeDuration, "outside 0 to"},
		{`{"tcp":true,"time":1.5,"len":1}`, codeDuration, "not a whole number"},
		{`{"tcp":true,"time":"10","len":1}`, codeDuration, "not a whole number"},
		{`{"tcp":true,"omit":601}`, codeOmit, "omit"},
		{`{"tcp":true,"parallel":0}`, codeStreams, "parallel"},
		{`{"tcp":true,"parallel":129}`, codeStreams, "parallel"},
		{`{"tcp":true,"parallel":-9223372036854775808}`, codeStreams, "parallel"},
		{`{"tcp":true,"len":1048577}`, codeLength, "len"},
		{`{"tcp":true,"num":-5}`, codeParameters, "num"},
		{`{"tcp":true,"blockcount":1e18,"len":1000}`, codeParameters, "too many"},
		{`{"tcp":true,"num":1,"blockcount":1}`, codeParameters, "bytes and blocks"},
		{`{"tcp":true,"MSS":40000}`, codeMSS, "MSS"},
		{`{"tcp":true,"window":536870913}`, codeWindow, "window"},
		{`{"tcp":true,"bandwidth":-1}`, codeParameters, "bandwidth"},
		{`{"tcp":true,"TOS":256}`, codeTOS, "TOS"},
		{`{"tcp":true,"server_affinity":-2}`, codeAffinity, "server_affinity"},
		{`{"tcp":true,"congestion":"../../etc"}`, codeParameters, "congestion"},
		{`{"tcp":true,"congestion":7}`, codeParameters, "not text"},
		{`{"tcp":true,"nodelay":[]}`, codeParameters, "nodelay"},
		{`{"tcp":true,"reverse":true,"bidirectional":true}`, codeParameters, "both"},
		{`{"udp":true,"len":15}`, codeDatagram, "datagrams"},
		{`{"udp":true,"len":65508}`, codeDatagram, "datagrams"},
		{`{"sctp":true}`, codeProtocol, "SCTP"},
		{`{"tcp":true,"udp":true}`, codeProtocol, "TCP and UDP"},
		{`{}`, codeProtocol, "TCP and UDP"},
		{`[1]`, codeParameters, "cannot unmarshal"},
		{`{"tcp":`, codeParameters, "unexpected end"},
	} {
		_, err := readParameters([]byte(c.json))
		if code, _ := codeOf(err); err == nil || code != c.code || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: code %d, %v; want %d, %q", c.json, code, err, c.code, c.says)
		}
	}
	if _, err := readParameters([]byte(`{"tcp":true,"time":1e1,"len":131072,"nodelay":null,"window":null,"new_key":{"a":[1]}}`)); err != nil {
		t.Errorf("what newer clients may say is refused: %v", err)
	}
}

func TestLimits(t *testing.T) {
	l := Limits{Streams: 4, Duration: 10 * time.Second, RateBps: 100e6}
	for _, c := range []struct {
		json string
		code int32
	}{
		{`{"tcp":true,"parallel":4,"time":10}`, 0},
		{`{"tcp":true,"parallel":5,"time":10}`, codeStreams},
		{`{"tcp":true,"time":10,"omit":1}`, codeTooLong},
		{`{"tcp":true,"time":1,"parallel":4,"bandwidth":25000001}`, codeRate},
		{`{"tcp":true,"time":1,"parallel":4,"bandwidth":25000000,"bidirectional":true}`, codeRate},
		{`{"udp":true,"time":1}`, codeRate},
		{`{"udp":true,"time":1,"reverse":true}`, 0},
	} {
		p, err := readParameters([]byte(c.json))
		if err != nil {
			t.Fatal(err)
		}
		if code, _ := codeOf(l.admit(p)); code != c.code {
			t.Errorf("%s: code %d, want %d", c.json, code, c.code)
		}
	}
	p, _ := readParameters([]byte(`{"tcp":true,"num":1000,"len":100,"omit":3}`))
	if s := p.specs("x", l)[0]; s.Duration != int64(7*time.Second) || s.Amount != 1000 {
		t.Errorf("an amount is to pass in %v: %+v", time.Duration(s.Duration), s)
	}
}

// Results of real versions: 3.12 prints -1 as an unsigned number, older ones -nan.
const (
	results312 = `{"cpu_util_total":12.5,"cpu_util_user":2.5,"cpu_util_system":10,"sender_has_retransmits":18446744073709551615,"congestion_used":"cubic","streams":[{"id":1,"bytes":12345678901234,"retransmits":18446744073709551615,"jitter":0,"errors":0,"packets":0,"start_time":0,"end_time":10.000123}]}`
	resultsOld = `{"cpu_util_total":-nan,"cpu_util_user":nan,"cpu_util_system":-nan,"sender_has_retransmits":1,"streams":[{"id":1,"bytes":100.7,"retransmits":3,"jitter":-nan,"errors":1e1,"packets":20}]}`
	resultsNew = `{"cpu_util_total":1,"cpu_util_user":1,"cpu_util_system":0,"sender_has_retransmits":-1,"server_output_json":{"start":{"version":"iperf 3.21"}},"streams":[{"id":1,"bytes":5,"retransmits":-1,"jitter":0.00001,"errors":3,"omitted_errors":1,"packets":9,"omitted_packets":4,"start_time":0,"end_time":1}]}`
)

func TestResults(t *testing.T) {
	read := func(s string) results {
		b, err := nullNaN([]byte(s))
		if err != nil {
			t.Fatal(err)
		}
		r, err := readResults(b, []int{1}, mostOutput)
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		return r
	}
	if r := read(results312); r.Retransmits || r.Streams[0].Retransmits != -1 || r.Streams[0].Bytes != 12345678901234 || r.Congestion != "cubic" || r.Streams[0].End != 10.000123 {
		t.Errorf("3.12: %+v", r)
	}
	if r := read(resultsOld); !r.Retransmits || r.CPUTotal != 0 || r.Streams[0].Bytes != 100 || r.Streams[0].Errors != 10 || r.Streams[0].OmittedErrors != nil {
		t.Errorf("old: %+v", r)
	}
	if r := read(resultsNew); r.Version != "3.21" || *r.Streams[0].OmittedErrors != 1 || *r.Streams[0].OmittedPackets != 4 {
		t.Errorf("new: %+v", r)
	}
	again, err := json.Marshal(read(resultsNew).json())
	if err != nil {
		t.Fatal(err)
	}
	if r := read(string(again)); r.Streams[0].Packets != 9 || *r.Streams[0].OmittedPackets != 4 {
		t.Errorf("gone round: %+v", r)
	}
}

func TestResultsRefused(t *testing.T) {
	for json, says := range map[string]string{
		`{"streams":[]}`:                                        "are missing",
		`{"streams":[{"id":2,"bytes":1}]}`:                      "not of this test",
		`{"streams":[{"id":1,"bytes":1},{"id":1,"bytes":1}]}`:   "is repeated",
		`{"streams":[{"id":1}]}`:                                "no bytes",
		`{"streams":[{"id":1,"bytes":-2}]}`:                     "-2 bytes",
		`{"streams":[{"id":1,"bytes":"many"}]}`:                 "not a number",
		`{"streams":[{"id":1,"bytes":{"a":1}}]}`:                "not a number",
		`{"streams":{"id":1}}`:                                  "not a list",
		`{}`:                                                    "not a list",
		`{"cpu_util_total":[],"streams":[{"id":1,"bytes":1}]}`:  "not a number",
		`{"streams":[{"id":99999999999999999999,"bytes":1.0}]}`: "not of this test",
		`nonsense`: "invalid",
	} {
		_, err := readResults([]byte(json), []int{1}, mostOutput)
		if code, _ := codeOf(err); err == nil || code != codeResults || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", json, err)
		}
	}
}

// Whatever a peer reports, little of it is kept.
func TestResultsBounded(t *testing.T) {
	const stream = `"streams":[{"id":1,"bytes":1}]`
	long := strings.Repeat("é", mostOutput)
	for name, c := range map[string]struct {
		json string
		most int
		kept int // bytes of output
		cut  int
	}{
		"a long name":        {`{"congestion_used":"` + long + `",` + stream + `}`, mostOutput, 0, 0},
		"no name":            {`{"congestion_used":"../x",` + stream + `}`, mostOutput, 0, 0},
		"a long version":     {`{"server_output_json":{"start":{"version":"iperf ` + long[:1000] + `"}},` + stream + `}`, mostOutput, 1030, 0},
		"an output":          {`{"server_output_text":"` + long[:1000] + `",` + stream + `}`, 1001, 1000, 0},
		"a long output":      {`{"server_output_text":"` + long + `",` + stream + `}`, 1001, 1000, 2 * mostOutput},
		"a long JSON":        {`{"server_output_json":{"a":"` + long + `"},` + stream + `}`, mostOutput, 0, 2*mostOutput + 8},
		"text as long JSON":  {`{"server_output_text":" {` + long + `",` + stream + `}`, mostOutput, 0, 2*mostOutput + 2},
		"a client's output":  {`{"server_output_text":"` + long + `",` + stream + `}`, 0, 0, 0},
		"a client's output,": {`{"server_output_json":{"a":"b"},` + stream + `}`, 0, 0, 0},
	} {
		r, err := readResults([]byte(c.json), []int{1}, c.most)
		if err != nil || r.Congestion != "" || r.Version != "" || len(r.Output) != c.kept || r.Cut != c.cut {
			t.Errorf("%s: %v, %d letters of congestion, %d of version, %d of output, %d whole", name, err, len(r.Congestion), len(r.Version), len(r.Output), r.Cut)
		}
		e := direction{ids: []int{1}, spec: measure.Spec{Protocol: measure.TCP, Streams: 1}}.reported(r)
		if lacks(e, "output") != (c.cut > 0) {
			t.Errorf("%s: %+v", name, e.Missing)
		}
	}
}

// An endless list of streams takes no more memory than the text itself.
func TestResultsManyStreams(t *testing.T) {
	for name, one := range map[string]string{"empty": `{},`, "good": `{"id":1,"bytes":1},`, "numbers": `1,`} {
		b := []byte(`{"streams":[` + strings.Repeat(one, 100_000) + `{}]}`)
		took := testing.AllocsPerRun(1, func() {
			if _, err := readResults(b, []int{1}, mostOutput); err == nil {
				t.Errorf("%s: they are taken", name)
			}
		})
		if took > 500 {
			t.Errorf("%s: took %.0f allocations", name, took)
		}
	}
	if n := mostResultBytes(2 * measure.MaxStreams); n > 1<<19 {
		t.Errorf("a client may tell %d bytes", n)
	}
}

// Figures that old servers omit are listed as missing, and not counted as zero.
func TestFarEvidence(t *testing.T) {
	udp := measure.Spec{Protocol: measure.UDP, Streams: 1, Length: measure.Pair{Send: 100, Recv: 100}}
	w := direction{ids: []int{1}, spec: udp, omit: time.Second, ours: measure.Evidence{Sends: true, Dialled: true}, speak: "iperf3"}
	old := w.reported(results{CPUUser: 50, Streams: []streamResult{{ID: 1, Bytes: 1000, Packets: 25, Errors: 5, Retransmits: -1, Jitter: 0.001, End: 2}}})
	x := old.Streams[0]
	if x.Datagrams.Packets != 10 || x.DatagramsAll.Packets != 20 || x.DatagramsAll.Lost != 5 || old.TotalBytes != 2000 || old.MeasuredNs != 2e9 || old.Worker.UserNs != 1e9 {
		t.Errorf("%+v, %+v, %+v", old, *x.Datagrams, *x.DatagramsAll)
	}
	if !lacks(old, "streams.datagrams.lost") || !lacks(old, "bins") {
		t.Errorf("%+v", old.Missing)
	}
	newer := w.reported(results{Streams: []streamResult{{ID: 1, Bytes: 1000, Packets: 25, Errors: 5, OmittedErrors: new(int64(4)), OmittedPackets: new(int64(14)), End: 2}}})
	if d := newer.Streams[0].Datagrams; d.Packets != 10 || d.Lost != 1 || lacks(newer, "streams.datagrams.lost") || newer.Worker != nil || !lacks(newer, "worker") {
		t.Errorf("%+v, %+v", *d, newer.Missing)
	}
	tcp := direction{ids: []int{1}, spec: measure.Spec{Protocol: measure.TCP, Streams: 1}, ours: measure.Evidence{MeasuredNs: 7}, omit: time.Second}
	e := tcp.reported(results{Retransmits: true, Streams: []streamResult{{ID: 1, Bytes: 9, Retransmits: 3}}})
	if *e.Streams[0].TCP.Retrans != 3 || e.TotalBytes != 0 || !lacks(e, "total_bytes") || !lacks(e, "measured_ns") || e.MeasuredNs != 7 {
		t.Errorf("%+v", e)
	}
}

func lacks(e *measure.Evidence, fact string) bool {
	return slices.ContainsFunc(e.Missing, func(m measure.NotChecked) bool { return m.Fact == fact })
}

func TestServersErrors(t *testing.T) {
	for _, c := range []struct {
		code, errno int32
		says, hint  string
	}{
		{codeAuth, 0, "user", "clocks"}, {codeTooLong, 0, "time limit", "-t"}, {141, 22, "invalid argument", "rmem_max"}, {-5, -7, "error -5", "output of the iperf3"},
	} {
		err := explain(c.code, c.errno, false)
		if !strings.Contains(err.Error(), c.says) || !strings.Contains(fault.Hint(err), c.hint) {
			t.Errorf("%d: %v (%s)", c.code, err, fault.Hint(err))
		}
	}
}

// FuzzParameters: any parameters of a client are refused or within the limits.
func FuzzParameters(f *testing.F) {
	f.Add([]byte(`{"tcp":true,"omit":0,"time":10,"num":0,"blockcount":0,"parallel":1,"len":131072,"pacing_timer":1000,"client_version":"3.12"}`))
	f.Add([]byte(`{"udp":true,"bidirectional":true,"parallel":128,"len":1460,"bandwidth":1048576,"TOS":184,"server_affinity":1,"fqrate":1e9}`))
	f.Add([]byte(`{"tcp":true,"num":18446744073709551615,"time":-nan}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		fixed, err := nullNaN(b)
		if err != nil {
			return
		}
		p, err := readParameters(fixed)
		if err != nil {
			if _, ok := codeOf(err); !ok {
				t.Errorf("%s: no number for %v", b, err)
			}
			return
		}
		for _, s := range p.specs("x", Limits{Duration: time.Minute}) {
			if err := check(engine.End{Spec: s}); err != nil {
				t.Errorf("%s is let in and refused later: %v", b, err)
			}
		}
	})
}

// FuzzResults: any results of a peer become evidence without a negative count.
func FuzzResults(f *testing.F) {
	for _, s := range []string{results312, resultsOld, resultsNew, `{"streams":[{"id":1,"bytes":1e300,"packets":-1,"jitter":1e308,"end_time":1e300,"omitted_packets":5,"omitted_errors":1e99}]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		fixed, err := nullNaN(b)
		if err != nil {
			return
		}
		r, err := readResults(fixed, []int{1}, 100)
		if err != nil {
			return
		}
		for _, protocol := range []string{measure.TCP, measure.UDP} {
			for _, omit := range []time.Duration{0, time.Second} {
				for _, sends := range []bool{false, true} {
					w := direction{ids: []int{1}, spec: measure.Spec{Protocol: protocol, Streams: 1, Length: measure.Pair{Send: 100}}, omit: omit, ours: measure.Evidence{Sends: sends}}
					e := w.reported(r)
					if _, err := json.Marshal(e); err != nil || e.Bytes < 0 || e.MeasuredNs < 0 {
						t.Errorf("%s: %+v, %v", b, e, err)
					}
					for _, d := range []*measure.Datagrams{e.Streams[0].Datagrams, e.Streams[0].DatagramsAll} {
						if d != nil && (d.Packets < 0 || d.Lost < 0 || d.JitterNs != nil && *d.JitterNs < 0) {
							t.Errorf("%s: %+v", b, *d)
						}
					}
				}
			}
		}
	})
}

// TestReportsAllDatagrams: the data of the last call after the measured time arrives, so it is reported too; in a test with a ramp it is not known separately.
func TestReportsAllDatagrams(t *testing.T) {
	x := measure.Stream{Bytes: 800, TotalBytes: 1000}
	for _, tt := range []struct {
		protocol string
		sends    bool
		omit     time.Duration
		want     int64
	}{{measure.UDP, true, 0, 1000}, {measure.UDP, true, time.Second, 800}, {measure.UDP, false, 0, 800}, {measure.TCP, true, 0, 800}} {
		w := direction{spec: measure.Spec{Protocol: tt.protocol}, omit: tt.omit, ours: measure.Evidence{Sends: tt.sends}}
		var s streamResult
		if w.fillStream(&s, x); s.Bytes != tt.want {
			t.Errorf("%+v: %d bytes", tt, s.Bytes)
		}
	}
}

// FuzzFrame: any bytes are a frame or an error, in limited memory.
func FuzzFrame(f *testing.F) {
	f.Add(frame(`{"a":-nan}`))
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Add(frame(`"\`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := readFrame(bytes.NewReader(b), mostParameters)
		if err == nil && len(got) > 2*mostParameters {
			t.Errorf("%d bytes became %d", len(b), len(got))
		}
	})
}
