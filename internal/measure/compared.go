package measure

import "time"

// ComparedSchema names the version of a Compared.
const ComparedSchema = "thru.comparison/1"

// Compared holds what results show of a change: those before next to those after. It is the stable JSON of `thru compare --json`, described in
// docs/comparison.md and docs/comparison.schema.json.
type Compared struct {
	Schema     string       `json:"schema"`
	Thru       string       `json:"thru_version"`
	Arguments  []string     `json:"arguments,omitempty"` // as given
	ComparedAt *time.Time   `json:"compared_at,omitempty"`
	Before     ComparedSide `json:"before"`
	After      ComparedSide `json:"after"`
	BarPct     float64      `json:"bar_pct"`          // threshold: smaller changes count as none
	Anyway     bool         `json:"anyway,omitempty"` // --anyway: compared although settings differ
	Outcome    string       `json:"outcome"`          // the worst outcome of all main flows
	Regression bool         `json:"regression"`       // `thru compare` exits with code 3
	Reason     string       `json:"reason"`           // reason of outcome and regression, in a sentence

	Cells     []ComparedCell  `json:"cells"`
	Unmatched []UnmatchedCell `json:"unmatched,omitempty"`
	Facts     []FactChange    `json:"facts_changed,omitempty"` // facts that affect a rate most first
	Causes    []CauseChange   `json:"causes_changed,omitempty"`
	Gates     []GateChange    `json:"gates_changed,omitempty"`
	Warnings  []string        `json:"warnings,omitempty"`
}

// ComparedSide are the results of one side, the oldest first.
type ComparedSide struct {
	Name    string           `json:"name"` // as given: "last~1", "last-week", a file
	Results []ComparedResult `json:"results"`
}

// ComparedResult is one result of a side.
type ComparedResult struct {
	Name      string    `json:"name"` // its id or its file
	Command   string    `json:"command"`
	Thru      string    `json:"thru_version"`
	StartedAt time.Time `json:"started_at"`
	Hosts     []string  `json:"hosts,omitempty"` // host names of its machines: "local is vm1"
	Error     string    `json:"error,omitempty"` // why it failed, where it did
}

// Sample is the value of a figure on one side.
type Sample struct {
	Value float64 `json:"value"` // mean of the units (geometric, as the change is a ratio)
	Low   float64 `json:"low"`   // smallest of them
	High  float64 `json:"high"`
	Units int     `json:"units"` // runs of a result, or results of a range
}

// Bases of a ComparedCell: what counts as one value.
const (
	OfRuns    = "runs"        // runs of one result on each side
	OfResults = "results"     // results of a range: each is one value
	OfSingles = "single runs" // one run on each side: indicative
)

// ComparedCell is one flow, disk pattern or transfer layer with its figure before and after.
type ComparedCell struct {
	From       string         `json:"from"` // name in the results of after
	To         string         `json:"to"`
	Place      string         `json:"place,omitempty"`  // of a disk: its folder
	What       string         `json:"what"`             // "TCP, 4 streams"
	Baseline   bool           `json:"beside,omitempty"` // baseline of a main figure: it decides nothing
	Figure     string         `json:"figure"`           // "goodput_bps", "transactions_per_s", "capacity_bps", "bytes_per_s", "iops"
	Before     *Sample        `json:"before,omitempty"`
	After      *Sample        `json:"after,omitempty"`
	Basis      string         `json:"basis,omitempty"`
	Indicative bool           `json:"indicative,omitempty"` // too few values to know their variation: one on a side, under 3 on both, or runs of one session each, where the assumed variation between sessions decides
	ChangePct  *float64       `json:"change_pct,omitempty"`
	LowPct     *float64       `json:"low_pct,omitempty"` // bound of its confidence interval
	HighPct    *float64       `json:"high_pct,omitempty"`
	LevelPct   *float64       `json:"level_pct,omitempty"` // confidence level of the interval: 95, or more where several flows share the error rate (Holm)
	Outcome    string         `json:"outcome"`             // "improved", "worse", "equivalent", "undecided", "not compared"
	Reason     string         `json:"reason"`
	Failed     bool           `json:"failed,omitempty"`   // measured before, failed after
	Settings   []SettingDiff  `json:"settings,omitempty"` // settings that differ
	Guards     []ComparedRail `json:"guardrails,omitempty"`
}

// SettingDiff is a measurement setting that differs.
type SettingDiff struct {
	Name    string `json:"name"` // "streams", "window", "measured time"
	Before  string `json:"before"`
	After   string `json:"after"`
	Refuses bool   `json:"refuses,omitempty"` // figures with this difference cannot be compared
	Affects bool   `json:"affects,omitempty"` // the user chose it, and it affects the figure: the change may be its effect
}

// ComparedRail is a guardrail metric of the compared figure: more of it is worse.
type ComparedRail struct {
	Name      string   `json:"name"` // "CPU per Gb/s, sender", "RTT under load", "loss"
	Unit      string   `json:"unit"` // "pct_per_gbps", "ns", "pct", "segments_per_gb"
	Before    float64  `json:"before"`
	After     float64  `json:"after"`
	ChangePct *float64 `json:"change_pct,omitempty"` // none where it was 0
	Worse     bool     `json:"worse,omitempty"`      // it rose by more than its threshold
	Better    bool     `json:"better,omitempty"`     // it fell by more than its threshold
	Bar       string   `json:"bar"`                  // threshold in words
}

// UnmatchedCell is a cell that only one side measured.
type UnmatchedCell struct {
	Side  string `json:"side"` // "before" or "after"
	From  string `json:"from"`
	To    string `json:"to"`
	Place string `json:"place,omitempty"` // of a disk: its folder
	What  string `json:"what"`
}

// FactChange is a fact of a host or of a path that changed. Where the results of a range differ in it, Before and After list all their values.
type FactChange struct {
	Of     string `json:"of"`              // end point, or path "a -> b"
	Fact   string `json:"fact"`            // key in the result: "interfaces[eth0].mtu_bytes"
	Name   string `json:"name"`            // for people: "MTU of eth0"
	Before string `json:"before"`          // for people, in its unit
	After  string `json:"after"`           //
	Minor  bool   `json:"minor,omitempty"` // hardly affects a rate
}

// CauseChange is the cause that limits a flow before, and the one after.
type CauseChange struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Before  string `json:"before"` // id of the first finding (docs/causes.md)
	After   string `json:"after"`
	Summary string `json:"says,omitempty"` // summary of the finding after
}

// GateChange is a gate whose status changed.
type GateChange struct {
	ID     string `json:"id"`
	Of     string `json:"of,omitempty"` // end point with interface, or path "a -> b"
	Before string `json:"before"`
	After  string `json:"after"`
	Fact   string `json:"fact,omitempty"` // fact found after
}
