package iperf3

import (
	"cmp"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"thru/internal/engine"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Limits of iperf3's own server, in addition to those that measure.Spec shares.
const (
	mostOmit         = 600     // seconds
	mostTime         = 86400   // seconds
	mostLength       = 1 << 20 // bytes of a TCP call
	mostMSS          = 32767   // bytes
	mostCPU          = 1024    // number of a CPU
	mostAmount       = 1 << 60 // bytes
	mostName         = 15      // letters in the name of a congestion control
	clientVersionKey = "thru"  // client_version: servers store it and ignore it
)

// parameters are the client's request in iperf3's JSON: one test in one or both directions. Times are whole seconds, because older versions read nothing else;
// some flags are the number 1.
type parameters struct {
	TCP           bool   `json:"tcp,omitempty"`
	UDP           bool   `json:"udp,omitempty"`
	Omit          int64  `json:"omit"`
	Affinity      *int   `json:"server_affinity,omitempty"`
	Time          int64  `json:"time"`
	Amount        int64  `json:"num"`
	Blocks        int64  `json:"blockcount"`
	MSS           int64  `json:"MSS,omitzero"`
	NoDelay       bool   `json:"nodelay,omitempty"`
	Parallel      int    `json:"parallel"`
	Reverse       bool   `json:"reverse,omitempty"`
	Bidirectional bool   `json:"bidirectional,omitempty"`
	Window        int64  `json:"window,omitzero"`
	Length        int64  `json:"len"`
	Rate          int64  `json:"bandwidth,omitzero"` // bit/s of each stream
	PacedRate     int64  `json:"fqrate,omitzero"`    // bit/s of each stream, paced by the kernel
	TOS           int    `json:"TOS,omitzero"`
	Congestion    string `json:"congestion,omitempty"`
	Output        int    `json:"get_server_output,omitzero"`
	Counters64    int    `json:"udp_counters_64bit,omitzero"`
	ZeroCopy      int    `json:"zerocopy,omitzero"`
	DontFragment  int    `json:"dont_fragment,omitzero"`
	SkipCopy      int    `json:"skip_rx_copy,omitzero"`
	Token         string `json:"authtoken,omitempty"`
	Title         string `json:"title,omitempty"`
	Extra         string `json:"extra_data,omitempty"`
	Version       string `json:"client_version,omitempty"`
}

// ask returns the parameters of a test. e is our end; ramp and length are settled. token authenticates the user, where the server requires it.
func ask(e engine.End, ramp time.Duration, length int64, token string) parameters {
	s := e.Spec
	p := parameters{
		TCP: s.Protocol == measure.TCP, UDP: s.Protocol == measure.UDP,
		Omit: seconds(ramp), Time: seconds(time.Duration(s.Duration)), Amount: s.Amount,
		MSS: int64(s.MSS), NoDelay: s.NoDelay, Parallel: s.Streams,
		Reverse: !e.Sends && !s.Duplex, Bidirectional: s.Duplex,
		Length: length, Rate: s.Rate / int64(s.Streams), TOS: s.DSCP << 2, Congestion: s.Congestion,
		Output: unit.Bit(s.FarOutput), Counters64: unit.Bit(s.Protocol == measure.UDP), DontFragment: unit.Bit(s.DontFragment),
		ZeroCopy: unit.Bit(s.IO == measure.IOSendfile || s.IO == measure.IOLean), SkipCopy: unit.Bit(s.IO == measure.IOLean),
		Token: token, Version: clientVersionKey, Title: s.Title, Extra: s.Extra,
	}
	if s.Amount > 0 {
		p.Time = 0 // as iperf3 does: its server then sets no limit of its own
	}
	if s.Rate > 0 {
		p.Rate = max(p.Rate, 1)
	}
	p.Window, p.Affinity = s.Window.Send, s.SenderCPU
	if e.Sends {
		p.Window, p.Affinity = s.Window.Recv, s.ReceiverCPU
	}
	p.Window = cmp.Or(p.Window, s.Window.Send, s.Window.Recv)
	return p
}

// seconds returns a time in whole seconds, rounded up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// readParameters reads and checks a client's request. Its errors carry the numbers that iperf3 clients know.
func readParameters(b []byte) (parameters, error) {
	f := fields{}
	if err := json.Unmarshal(b, &f.all); err != nil {
		return parameters{}, refuse(codeParameters, "reading parameters: %w", err)
	}
	p := parameters{
		TCP: f.flag("tcp"), UDP: f.flag("udp"), NoDelay: f.flag("nodelay"), Reverse: f.flag("reverse"), Bidirectional: f.flag("bidirectional"),
		Omit: f.number("omit", 0, mostOmit, codeOmit), Time: f.number("time", 0, mostTime, codeDuration),
		Amount: f.number("num", 0, mostAmount, codeParameters), Blocks: f.number("blockcount", 0, mostAmount, codeParameters),
		MSS: f.number("MSS", 0, mostMSS, codeMSS), Window: f.number("window", 0, measure.MaxWindow, codeWindow),
		Parallel: int(f.number("parallel", 1, measure.MaxStreams, codeStreams)), Length: f.number("len", 0, mostLength, codeLength),
		Rate: f.number("bandwidth", 0, measure.MaxRate, codeParameters), PacedRate: f.number("fqrate", 0, measure.MaxRate, codeParameters),
		TOS: int(f.number("TOS", 0, 255, codeTOS)), Congestion: f.text("congestion"), Token: f.text("authtoken"), Version: f.text("client_version"), Title: f.text("title"), Extra: f.text("extra_data"),
		Output: unit.Bit(f.flag("get_server_output")), Counters64: unit.Bit(f.flag("udp_counters_64bit")), ZeroCopy: unit.Bit(f.flag("zerocopy")),
		DontFragment: unit.Bit(f.flag("dont_fragment")), SkipCopy: unit.Bit(f.flag("skip_rx_copy")),
	}
	if f.has("server_affinity") {
		p.Affinity = new(int(f.number("server_affinity", 0, mostCPU, codeAffinity)))
	}
	if !f.has("parallel") {
		p.Parallel = 1
	}
	if f.flag("sctp") {
		f.fail(codeProtocol, "thru supports TCP and UDP, not SCTP")
	}
	if f.err == nil {
		f.err = p.check()
	}
	return p, f.err
}

// check refuses contradictory parameters.
func (p parameters) check() error {
	switch {
	case p.TCP == p.UDP:
		return refuse(codeProtocol, "reading parameters: exactly one of TCP and UDP is required")
	case p.Reverse && p.Bidirectional:
		return refuse(codeParameters, "reading parameters: reverse and bidirectional are both set")
	case p.Amount > 0 && p.Blocks > 0:
		return refuse(codeParameters, "reading parameters: bytes and blocks are both set")
	case p.UDP && p.Length != 0 && (p.Length < measure.MinDatagram || p.Length > measure.MaxDatagram):
		return refuse(codeDatagram, "reading parameters: datagrams of %d bytes are outside %d to %d", p.Length, measure.MinDatagram, measure.MaxDatagram)
	case p.Blocks > mostAmount/max(p.Length, 1):
		return refuse(codeParameters, "reading parameters: %d blocks of %d bytes are too many", p.Blocks, p.Length)
	case !isName(p.Congestion):
		return refuse(codeParameters, "reading parameters: %q is not a congestion control", p.Congestion)
	}
	return nil
}

// isName reports whether s is a valid name of a congestion control, or empty.
func isName(s string) bool {
	return len(s) <= mostName && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

// fields reads a JSON object; it keeps the first error.
type fields struct {
	all map[string]json.RawMessage
	err error
}

func (f *fields) fail(code int32, format string, args ...any) {
	if f.err == nil {
		f.err = refuse(code, "reading parameters: "+format, args...)
	}
}

// has reports whether a key exists and is not null.
func (f *fields) has(key string) bool {
	b, ok := f.all[key]
	return ok && string(b) != "null"
}

// flag returns true where the key is true, or a number other than zero.
func (f *fields) flag(key string) bool {
	switch b := string(f.all[key]); b {
	case "true":
		return true
	case "", "null", "false":
		return false
	default:
		n, err := strconv.ParseFloat(b, 64)
		if err != nil {
			f.fail(codeParameters, "%s is %.40s", key, b)
		}
		return n != 0
	}
}

// number returns a whole number from least to most; 0 without the key.
func (f *fields) number(key string, least, most int64, code int32) int64 {
	if !f.has(key) {
		return 0
	}
	n, err := strconv.ParseFloat(string(f.all[key]), 64)
	switch {
	case err != nil || math.Trunc(n) != n:
		f.fail(code, "%s is %.40s, not a whole number", key, f.all[key])
	case n < float64(least) || n > float64(most):
		f.fail(code, "%s is %.40s, outside %d to %d", key, f.all[key], least, most)
	default:
		return int64(n)
	}
	return 0
}

func (f *fields) text(key string) (s string) {
	if !f.has(key) {
		return ""
	}
	if err := json.Unmarshal(f.all[key], &s); err != nil {
		f.fail(codeParameters, "%s is not text", key)
	}
	return s
}

// Limits are the maximum values that a server grants its clients; zero means no limit beyond that of thru itself.
type Limits struct {
	Streams  int           // in one direction
	Duration time.Duration // including the time that does not count
	RateBps  int64         // of all streams, in both directions
}

// admit refuses parameters above the limits, as iperf3's own server does.
func (l Limits) admit(p parameters) error {
	span := time.Duration(p.Omit+p.Time) * time.Second
	asked := p.rate() * int64(p.directions())
	switch {
	case l.Streams > 0 && p.Parallel > l.Streams:
		return refuse(codeStreams, "%d streams exceed the limit of %d", p.Parallel, l.Streams)
	case l.Duration > 0 && span > l.Duration:
		return refuse(codeTooLong, "%v exceed the limit of %v", span, l.Duration)
	case l.RateBps > 0 && asked > l.RateBps:
		return refuse(codeRate, "%d bit/s exceed the limit of %d", asked, l.RateBps)
	case l.RateBps > 0 && asked == 0 && p.UDP && !p.Reverse:
		return refuse(codeRate, "an unlimited rate exceeds the limit of %d bit/s", l.RateBps)
	}
	return nil
}

// rate returns the rate of all streams in one direction, in bit/s; 0: no limit.
func (p parameters) rate() int64 {
	return min(cmp.Or(p.Rate, p.PacedRate)*int64(p.Parallel), measure.MaxRate)
}

func (p parameters) directions() int { return 1 + unit.Bit(p.Bidirectional) }

// specs returns the flows of a client's test: to this end, from it, or both. name is that of the client; "local" is this end.
func (p parameters) specs(name string, l Limits) []measure.Spec {
	s := measure.Spec{
		From: name, To: "local", DialFrom: true, Engine: measure.IPerf3, Protocol: measure.TCP, Streams: p.Parallel,
		Window: measure.Pair{Send: p.Window, Recv: p.Window}, Length: measure.Pair{Send: p.Length, Recv: p.Length},
		Duration: p.Time * int64(time.Second), Ramp: p.Omit * int64(time.Second), NoRamp: p.Omit == 0, Interval: int64(time.Second),
		Amount: p.amount(), Rate: p.rate(), DontFragment: p.DontFragment != 0,
		Congestion: p.Congestion, MSS: int(p.MSS), NoDelay: p.NoDelay, DSCP: p.TOS >> 2, ReceiverCPU: p.Affinity,
		Duplex: p.Bidirectional, FarOutput: p.Output != 0, Together: true, Title: p.Title, Extra: p.Extra,
	}
	if p.UDP {
		s.Protocol = measure.UDP
	}
	if p.TCP && p.SkipCopy != 0 {
		s.IO = measure.IOLean
	}
	if s.Duration == 0 || s.Amount > 0 { // the client signals the end
		s.Duration = int64(measure.MaxDuration)
		if l.Duration > 0 {
			s.Duration = int64(max(min(l.Duration, measure.MaxDuration)-time.Duration(s.Ramp), measure.MinDuration))
		}
	}
	back := s
	back.From, back.To, back.DialFrom = s.To, s.From, false
	back.ReceiverCPU, back.SenderCPU, back.IO = nil, p.Affinity, ""
	if p.TCP && p.ZeroCopy != 0 {
		back.IO = measure.IOSendfile
	}
	switch {
	case p.Bidirectional:
		back.IO = s.IO // one worker moves both directions
		return []measure.Spec{s, back}
	case p.Reverse:
		return []measure.Spec{back}
	}
	return []measure.Spec{s}
}

// amount returns how much the client wants to move in each direction.
func (p parameters) amount() int64 { return cmp.Or(p.Amount, p.Blocks*p.Length) }
