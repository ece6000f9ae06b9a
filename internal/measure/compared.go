package measure

import "time"

// ComparedSchema names the version of a Compared.
const ComparedSchema = "thru.comparison/1"

// Compared is what results say of a change: those of before beside those of
// after. It is the stable JSON of `thru compare --json`, described in
// docs/comparison.md and docs/comparison.schema.json.
type Compared struct {
	Schema     string       `json:"schema"`
	Thru       string       `json:"thru_version"`
	Arguments  []string     `json:"arguments,omitempty"` // as given
	ComparedAt *time.Time   `json:"compared_at,omitempty"`
	Before     ComparedSide `json:"before"`
	After      ComparedSide `json:"after"`
	BarPct     float64      `json:"bar_pct"`          // a change within it is none
	Anyway     bool         `json:"anyway,omitempty"` // --anyway: compared although settings differ
	Outcome    string       `json:"outcome"`          // of all main flows: the worst of theirs
	Regression bool         `json:"regression"`       // what ends `thru compare` by exit code 3
	Reason     string       `json:"reason"`           // of both, in a sentence

	Cells     []ComparedCell  `json:"cells"`
	Unmatched []UnmatchedCell `json:"unmatched,omitempty"`
	Facts     []FactChange    `json:"facts_changed,omitempty"` // what matters most to a rate first
	Causes    []CauseChange   `json:"causes_changed,omitempty"`
	Gates     []GateChange    `json:"gates_changed,omitempty"`
	Warnings  []string        `json:"warnings,omitempty"`
}

// ComparedSide are the results of one side, the oldest first.
type ComparedSide struct {
	Name    string           `json:"name"` // as it was asked for: "last~1", "last-week", a file
	Results []ComparedResult `json:"results"`
}

// ComparedResult is one result of a side.
type ComparedResult struct {
	Name      string    `json:"name"` // its id or its file
	Command   string    `json:"command"`
	Thru      string    `json:"thru_version"`
	StartedAt time.Time `json:"started_at"`
	Hosts     []string  `json:"hosts,omitempty"` // its machines by their own names: "local is vm1"
	Error     string    `json:"error,omitempty"` // how it ended, where it failed
}

// Sample is what one side says of a figure.
type Sample struct {
	Value float64 `json:"value"` // mean of the units (geometric, as the change is a ratio)
	Low   float64 `json:"low"`   // the least of them
	High  float64 `json:"high"`
	Units int     `json:"units"` // runs of a result, or results of a range
}

// Bases of a ComparedCell: what counts as one value.
const (
	OfRuns    = "runs"        // of one result each side
	OfResults = "results"     // of a range: each result is one value
	OfSingles = "single runs" // one run each side: indicative
)

// ComparedCell is one flow, pattern of a disk, or layer of a transfer with its
// figure before and after.
type ComparedCell struct {
	From       string         `json:"from"` // names of after
	To         string         `json:"to"`
	Place      string         `json:"place,omitempty"`  // of a disk: its folder
	What       string         `json:"what"`             // "TCP, 4 streams"
	Baseline   bool           `json:"beside,omitempty"` // a figure beside the main ones: it decides nothing
	Figure     string         `json:"figure"`           // "goodput_bps", "transactions_per_s", "capacity_bps", "bytes_per_s", "iops"
	Before     *Sample        `json:"before,omitempty"`
	After      *Sample        `json:"after,omitempty"`
	Basis      string         `json:"basis,omitempty"`
	Indicative bool           `json:"indicative,omitempty"` // too few values to know what they vary by: one on a side, under 3 on both, or runs of one session each, where what sessions are taken to differ by decides
	ChangePct  *float64       `json:"change_pct,omitempty"`
	LowPct     *float64       `json:"low_pct,omitempty"` // its interval
	HighPct    *float64       `json:"high_pct,omitempty"`
	LevelPct   *float64       `json:"level_pct,omitempty"` // of the interval: 95, or more where several flows share the doubt (Holm)
	Outcome    string         `json:"outcome"`             // "improved", "worse", "equivalent", "undecided", "not compared"
	Reason     string         `json:"reason"`
	Failed     bool           `json:"failed,omitempty"`   // measured before, and not after, where it failed
	Settings   []SettingDiff  `json:"settings,omitempty"` // in which the two differ
	Guards     []ComparedRail `json:"guardrails,omitempty"`
}

// SettingDiff is a setting of the measurement that was not the same.
type SettingDiff struct {
	Name    string `json:"name"` // "streams", "window", "measured time"
	Before  string `json:"before"`
	After   string `json:"after"`
	Refuses bool   `json:"refuses,omitempty"` // figures under it are of different things
}

// ComparedRail is a figure beside the compared one, of which more is worse.
type ComparedRail struct {
	Name      string   `json:"name"` // "CPU per Gb/s, sender", "RTT under load", "loss"
	Unit      string   `json:"unit"` // "pct_per_gbps", "ns", "pct", "segments_per_gb"
	Before    float64  `json:"before"`
	After     float64  `json:"after"`
	ChangePct *float64 `json:"change_pct,omitempty"` // none where it was 0
	Worse     bool     `json:"worse,omitempty"`      // it grew by more than its bar
	Better    bool     `json:"better,omitempty"`     // it fell by as much
	Bar       string   `json:"bar"`                  // in words
}

// UnmatchedCell is what only one side measured.
type UnmatchedCell struct {
	Side  string `json:"side"` // "before" or "after"
	From  string `json:"from"`
	To    string `json:"to"`
	Place string `json:"place,omitempty"` // of a disk: its folder
	What  string `json:"what"`
}

// FactChange is a fact of a host or of a path that is not what it was. Where
// results of a range differ in it, all their values are named.
type FactChange struct {
	Of     string `json:"of"`              // end point, or of a path "a -> b"
	Fact   string `json:"fact"`            // key in the result: "interfaces[eth0].mtu_bytes"
	Name   string `json:"name"`            // for people: "MTU of eth0"
	Before string `json:"before"`          // for people, in its unit
	After  string `json:"after"`           //
	Minor  bool   `json:"minor,omitempty"` // hardly bears on a rate
}

// CauseChange is what held a flow back before, and what does after.
type CauseChange struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Before  string `json:"before"` // id of the first finding (docs/causes.md)
	After   string `json:"after"`
	Summary string `json:"says,omitempty"` // summary of the finding of after
}

// GateChange is a gate whose status is not what it was.
type GateChange struct {
	ID     string `json:"id"`
	Of     string `json:"of,omitempty"` // end point with interface, or of a path "a -> b"
	Before string `json:"before"`
	After  string `json:"after"`
	Fact   string `json:"fact,omitempty"` // what was found after
}
