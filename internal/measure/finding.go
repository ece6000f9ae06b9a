package measure

// Degrees of confidence in a Finding.
const (
	Certain  = "certain"  // its own evidence is there, and similar causes are ruled out
	Likely   = "likely"   // its evidence is there; a similar cause is not ruled out
	Possible = "possible" // a condition for it holds; whether it costs anything was not tested
)

// CauseNone is the finding of a flow that nothing limits as far as the evidence shows, where no link rate is known to compare with.
const CauseNone = "none"

// Places of a Finding.
const (
	AtSender   = "sender"
	AtReceiver = "receiver"
	AtPath     = "path"
	AtTool     = "tool" // thru itself, or its options
)

// Captures that would decide about a cause, in addition to AtSender or AtReceiver.
const (
	CaptureAtOtherEnd = "other_end"
	CaptureHandshake  = "handshake"
)

// Finding names a cause that limits a flow (docs/causes.md), with its evidence. The binding one comes first.
type Finding struct {
	Cause      string  `json:"cause"`                 // stable id, kebab-case; "none" where nothing was found
	Where      Where   `json:"where"`                 // place of the cause
	BecauseOf  string  `json:"because_of,omitempty"`  // cause that leads to this one
	Confidence string  `json:"confidence"`            // "certain", "likely" or "possible"
	Summary    string  `json:"summary"`               // one sentence for a person, without the rate
	Evidence   []Proof `json:"evidence,omitempty"`    // counters that show it
	Effect     *Effect `json:"effect,omitempty"`      // what it costs
	Next       string  `json:"next,omitempty"`        // the test that would decide, where it is not certain
	Fix        *Fix    `json:"remedy,omitempty"`      // what to do
	Healthy    bool    `json:"healthy,omitempty"`     // no fault: the link is full, or nothing was found
	Source     string  `json:"rule_source,omitempty"` // source of threshold and counter
}

// Where is the place of a cause.
type Where struct {
	Place     string `json:"place"`               // "sender", "receiver", "path" or "tool"
	EndPoint  string `json:"end_point,omitempty"` // end point of the sender or receiver
	From      string `json:"from,omitempty"`      // direction of the data
	To        string `json:"to,omitempty"`        // direction of the data
	CPU       *int   `json:"cpu,omitempty"`       // number of the CPU
	Interface string `json:"interface,omitempty"` // interface that it concerns
	Below     string `json:"below,omitempty"`     // name of the hypervisor's host, switch or port group that it concerns
}

// Proof is one counter or fact with its value and its threshold.
type Proof struct {
	EndPoint  string   `json:"end_point,omitempty"` // end point that counted it
	Counter   string   `json:"counter"`             // name as the kernel or this document has it: "tcp_info.rwnd_limited_us of busy_time_us"
	Value     float64  `json:"value"`
	Unit      string   `json:"unit,omitempty"`      // "pct", "bps", "bytes", "ns", "segments", "packets", "per_s"; none for a plain number
	Threshold *float64 `json:"threshold,omitempty"` // threshold in the same unit
	Above     bool     `json:"above,omitempty"`     // values above the threshold support the cause; else values below it
	SpanNs    int64    `json:"span_ns,omitzero"`    // time over which it was counted
	Note      string   `json:"note,omitempty"`      // meaning, where the name does not show it
	Packets   []int64  `json:"packets,omitempty"`   // numbers of the packets that show it, in the capture
	Capture   string   `json:"capture,omitempty"`   // capture that holds them: a file, or the end point that captured
}

// Effect is what a cause costs, and the basis of that figure.
type Effect struct {
	BoundBps *float64 `json:"bound_bps,omitempty"` // rate that the cause allows
	CostPct  *float64 `json:"cost_pct,omitempty"`  // share of the rate without the cause
	Text     string   `json:"text"`                // the same in words
	From     string   `json:"computed_from,omitempty"`
}

// Fix is how to remove a cause at one host.
type Fix struct {
	EndPoint string   `json:"end_point,omitempty"` // where to run the commands
	Platform string   `json:"platform,omitempty"`  // system that the commands are for: "linux"
	Commands []string `json:"commands,omitempty"`  // in order; only commands
	Advice   string   `json:"advice,omitempty"`    // in words, where no command does it, or to read before the commands
	Risk     string   `json:"risk,omitempty"`
}

// Excluded is a cause that the evidence rules out.
type Excluded struct {
	Cause string `json:"cause"`
	Why   string `json:"why"` // figure that rules it out
}

// Unsettled is a cause that the evidence neither confirms nor rules out.
type Unsettled struct {
	Cause string   `json:"cause"`
	Fact  string   `json:"fact"` // missing fact
	Why   string   `json:"why"`  // why it is missing
	Tests []string `json:"tests,omitempty"`
	// Capture would decide: one at the "sender" or "receiver", a second one at the "other_end", or one that holds the "handshake".
	Capture string `json:"capture,omitempty"`
}

// Diagnosis explains what limits a flow. It confirms each cause of the catalogue, rules it out, or names the missing fact.
type Diagnosis struct {
	Findings   []Finding   `json:"findings,omitempty"`
	RuledOut   []Excluded  `json:"causes_ruled_out,omitempty"`
	NotChecked []Unsettled `json:"causes_not_checked,omitempty"`
}

// Step is one step of an explanation: an experiment with its figure and its conclusion.
type Step struct {
	Experiment string   `json:"experiment"` // id: "path", "base", "streams-8"
	Title      string   `json:"title"`      // experiment in words
	From       string   `json:"from,omitempty"`
	To         string   `json:"to,omitempty"`
	Cells      []int    `json:"cells,omitempty"`  // indices of its cells in the document
	Figure     string   `json:"figure,omitempty"` // result in words
	Bps        *float64 `json:"goodput_bps,omitempty"`
	BaseBps    *float64 `json:"base_goodput_bps,omitempty"` // figure to compare with
	Asked      []string `json:"to_tell,omitempty"`          // causes that it tests
	RuledOut   []string `json:"ruled_out,omitempty"`        // causes that it excluded
	Raised     []string `json:"raised,omitempty"`           // causes that it made more likely
	Conclusion string   `json:"says,omitempty"`             // the first finding after it
	ElapsedNs  int64    `json:"elapsed_ns"`
	Error      string   `json:"error,omitempty"` // why it gave no result
}
