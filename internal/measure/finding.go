package measure

// Degrees of confidence of a Finding.
const (
	Certain  = "certain"  // its own evidence is there, and what it could be mistaken for is ruled out
	Likely   = "likely"   // its evidence is there; a neighbour is not ruled out
	Possible = "possible" // a condition for it holds; whether it costs anything was not tried
)

// CauseNone is the finding of a flow that nothing holds back as far as the
// evidence goes, where no link rate is known that it could be held against.
const CauseNone = "none"

// Places of a Finding.
const (
	AtSender   = "sender"
	AtReceiver = "receiver"
	AtPath     = "path"
	AtTool     = "tool" // thru itself, or how it was called
)

// Captures that would tell of a cause, beside one AtSender or AtReceiver.
const (
	CaptureAtOtherEnd = "other_end"
	CaptureHandshake  = "handshake"
)

// Finding names a cause of why a flow carries no more (docs/causes.md), with
// what it was seen by. The binding one stands first.
type Finding struct {
	Cause      string  `json:"cause"`                 // stable id, kebab-case; "none" where nothing was found
	Where      Where   `json:"where"`                 // place of the cause
	BecauseOf  string  `json:"because_of,omitempty"`  // cause that brings this one along
	Confidence string  `json:"confidence"`            // "certain", "likely" or "possible"
	Summary    string  `json:"summary"`               // one sentence for a person, without the rate
	Evidence   []Proof `json:"evidence,omitempty"`    // counters that show it
	Effect     *Effect `json:"effect,omitempty"`      // what it costs
	Next       string  `json:"next,omitempty"`        // the test that would tell, where it is not certain
	Fix        *Fix    `json:"remedy,omitempty"`      // what to do
	Healthy    bool    `json:"healthy,omitempty"`     // no fault: the link is full, or nothing was found
	Source     string  `json:"rule_source,omitempty"` // where threshold and counter come from
}

// Where is the place of a cause.
type Where struct {
	Place     string `json:"place"`               // "sender", "receiver", "path" or "tool"
	EndPoint  string `json:"end_point,omitempty"` // of the sender or receiver
	From      string `json:"from,omitempty"`      // direction of the data
	To        string `json:"to,omitempty"`        // direction of the data
	CPU       *int   `json:"cpu,omitempty"`       // number of the CPU
	Interface string `json:"interface,omitempty"` // where it is about one
	Below     string `json:"below,omitempty"`     // name of the hypervisor's host, switch or port group that it is about
}

// Proof is one counter or fact with its value, and the bar that it was held against.
type Proof struct {
	EndPoint  string   `json:"end_point,omitempty"` // who counted it
	Counter   string   `json:"counter"`             // name as the kernel or this document has it: "tcp_info.rwnd_limited_us of busy_time_us"
	Value     float64  `json:"value"`
	Unit      string   `json:"unit,omitempty"`      // "pct", "bps", "bytes", "ns", "segments", "packets", "per_s"; none of a bare number
	Threshold *float64 `json:"threshold,omitempty"` // bar in the same unit
	Above     bool     `json:"above,omitempty"`     // the value speaks for the cause above the bar; else below it
	SpanNs    int64    `json:"span_ns,omitzero"`    // time over which it was counted
	Note      string   `json:"note,omitempty"`      // what it says, where the name does not
	Packets   []int64  `json:"packets,omitempty"`   // numbers of the packets that show it, in the capture
	Capture   string   `json:"capture,omitempty"`   // that they are in: a file, or where there is none the end point that captured
}

// Effect is what a cause costs, and what that was computed from.
type Effect struct {
	BoundBps *float64 `json:"bound_bps,omitempty"` // rate that the cause allows
	CostPct  *float64 `json:"cost_pct,omitempty"`  // share of what would pass without it
	Text     string   `json:"text"`                // the same in words
	From     string   `json:"computed_from,omitempty"`
}

// Fix is what to do against a cause at one host.
type Fix struct {
	EndPoint string   `json:"end_point,omitempty"` // where the commands are to be run
	Platform string   `json:"platform,omitempty"`  // system that the commands are of: "linux"
	Commands []string `json:"commands,omitempty"`  // in order; nothing but commands
	Advice   string   `json:"advice,omitempty"`    // in words, where no command does it, or before one
	Risk     string   `json:"risk,omitempty"`
}

// Excluded is a cause that the evidence speaks against.
type Excluded struct {
	Cause string `json:"cause"`
	Why   string `json:"why"` // the figure that speaks against it
}

// Unsettled is a cause of which it is not known whether it holds.
type Unsettled struct {
	Cause string   `json:"cause"`
	Fact  string   `json:"fact"` // what is missing
	Why   string   `json:"why"`  // why it is
	Tests []string `json:"tests,omitempty"`
	// Capture that would tell: at the "sender" or "receiver", a second one at the
	// "other_end", or one that has the "handshake".
	Capture string `json:"capture,omitempty"`
}

// Diagnosis is what is said of why a flow carries no more: of every cause of
// the catalogue that it holds, that it does not, or what is missing to tell.
type Diagnosis struct {
	Findings   []Finding   `json:"findings,omitempty"`
	RuledOut   []Excluded  `json:"causes_ruled_out,omitempty"`
	NotChecked []Unsettled `json:"causes_not_checked,omitempty"`
}

// Step is one step of an explanation: an experiment with its figure, and what
// it says.
type Step struct {
	Experiment string   `json:"experiment"` // id: "path", "base", "streams-8"
	Title      string   `json:"title"`      // what was tried
	From       string   `json:"from,omitempty"`
	To         string   `json:"to,omitempty"`
	Cells      []int    `json:"cells,omitempty"`  // indices of its cells in the document
	Figure     string   `json:"figure,omitempty"` // what came of it, in words
	Bps        *float64 `json:"goodput_bps,omitempty"`
	BaseBps    *float64 `json:"base_goodput_bps,omitempty"` // what it is held against
	Asked      []string `json:"to_tell,omitempty"`          // causes for whose sake it was made
	RuledOut   []string `json:"ruled_out,omitempty"`        // causes that it excluded
	Raised     []string `json:"raised,omitempty"`           // causes that it made likelier
	Conclusion string   `json:"says,omitempty"`             // the first finding after it
	ElapsedNs  int64    `json:"elapsed_ns"`
	Error      string   `json:"error,omitempty"` // why it told nothing
}
