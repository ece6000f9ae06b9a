package cli

import (
	"cmp"
	"encoding/json"
	"net"
	"strings"
	"sync"
	"time"

	"thru/internal/agent"
	"thru/internal/cli/console"
	"thru/internal/control"
	"thru/internal/engine"
	"thru/internal/fault"
	"thru/internal/library"
	"thru/internal/measure"
	"thru/internal/report"
	"thru/internal/unit"
)

// callLine returns the line about an iperf client's test, for people.
func callLine(call engine.Call, doc *measure.Document, path string, err error) string {
	line := call.Name
	if call.Program != "" {
		line += " (" + call.Program + ")"
	}
	if doc != nil && library.Measured(doc) {
		line += ": " + report.Answer(doc)
	}
	if err != nil {
		line += ": " + fault.Plain(err.Error())
	}
	if path != "" {
		line += "; stored in " + path
	}
	return line
}

// callRecord is the same for programs: one JSON line.
type callRecord struct {
	Caller  string         `json:"caller"`
	Program string         `json:"program,omitempty"`
	Kept    string         `json:"kept_in,omitempty"`
	Goodput []flowGoodput  `json:"goodput"`
	Error   *measure.Error `json:"error"`
}

type flowGoodput struct {
	From string  `json:"from"`
	To   string  `json:"to"`
	Bps  float64 `json:"goodput_bps"`
}

func newCallRecord(call engine.Call, doc *measure.Document, path string, err error) callRecord {
	r := callRecord{Caller: call.Name, Program: call.Program, Kept: path, Goodput: []flowGoodput{}}
	if doc != nil {
		for _, c := range doc.Cells {
			if c.Goodput != nil {
				r.Goodput = append(r.Goodput, flowGoodput{c.From, c.To, c.Goodput.Value})
			}
		}
	}
	if err != nil {
		r.Error = control.Describe(err)
	}
	return r
}

// testLines prints a line about each test; several may end at once.
type testLines struct {
	e      *env
	asJSON bool
	mu     sync.Mutex
	last   lastTest
}

// lastTest has the rates of a test by direction, sent and received, and its end.
type lastTest struct {
	bps map[string]float64
	at  time.Time
}

// lastTest returns that of thru's clients.
func (t *testLines) lastTest() lastTest {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

func newTestLines(e *env, asJSON bool) *testLines { return &testLines{e: e, asJSON: asJSON} }

func (t *testLines) print(line string, record callRecord) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !t.asJSON:
		t.e.Event(console.Info, t.e.Out, line)
	case t.e.Logs(console.Info):
		json.NewEncoder(t.e.Out).Encode(record)
	}
}

// call prints the test of an iperf client.
func (t *testLines) call(call engine.Call, doc *measure.Document, path string, err error) {
	t.print(callLine(call, doc, path, err), newCallRecord(call, doc, path, err))
}

// flows prints the test of a thru client: all its simultaneous flows.
func (t *testLines) flows(all []agent.Ended) {
	host, _, err := net.SplitHostPort(all[0].Evidence.PeerAddr)
	if err != nil {
		host = "a client"
	}
	r := callRecord{Caller: host, Program: "thru", Goodput: []flowGoodput{}}
	var received, sent, longest int64
	streams, asked, what, why := 0, false, "", ""
	for _, x := range all {
		if why = cmp.Or(why, x.Evidence.Error); x.Spec.Traffic != measure.Bulk {
			asked, longest = true, max(longest, x.Evidence.MeasuredNs)
			continue
		}
		streams, what = streams+x.Spec.Streams, strings.ToUpper(x.Spec.Protocol)
		for _, e := range []*measure.Evidence{&x.Evidence, x.Back} {
			if e == nil || e.MeasuredNs <= 0 {
				continue
			}
			f, sum := flowGoodput{host, control.Local, float64(e.Bytes) * 8 * 1e9 / float64(e.MeasuredNs)}, &received
			if e.Sends {
				f.From, f.To, sum = f.To, f.From, &sent
			}
			*sum, longest, r.Goodput = *sum+int64(f.Bps), max(longest, e.MeasuredNs), append(r.Goodput, f)
		}
	}
	var did []string
	if received > 0 {
		did = append(did, "received "+unit.Rate(float64(received)))
	}
	if sent > 0 {
		did = append(did, "sent "+unit.Rate(float64(sent)))
	}
	if len(did) == 0 && asked {
		did = append(did, "answered requests")
	}
	line := fault.And(did) + " for " + unit.Duration(longest)
	if longest == 0 {
		line = "it ended before the measured time"
	}
	if streams > 0 {
		line += "; " + what + ", " + unit.Plural(streams, "stream")
	}
	if why != "" {
		r.Error = &measure.Error{Message: fault.Plain(why), ExitCode: fault.Failed}
		line += "; " + fault.Plain(why)
	}
	t.remember(map[string]int64{"received": received, "sent": sent})
	t.print(host+": "+line, r)
}

// remember keeps the rates of a test that were measured.
func (t *testLines) remember(bps map[string]int64) {
	last := lastTest{map[string]float64{}, time.Now()}
	for direction, rate := range bps {
		if rate > 0 {
			last.bps[direction] = float64(rate)
		}
	}
	if len(last.bps) > 0 {
		t.mu.Lock()
		t.last = last
		t.mu.Unlock()
	}
}
