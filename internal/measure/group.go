package measure

import "time"

// Axis is one value of a thing that a plan varies, such as streams: 4.
type Axis struct {
	Name  string `json:"name"`  // as in the plan: "streams", "window", "end_points", "variant"
	Value string `json:"value"` // as people write it: "4", "800K", "cubic"
}

// Recommended is the least setting of a path that carries within 5% of the most that
// was carried there: of streams, window and length those that were varied.
type Recommended struct {
	From     string  `json:"from"`
	To       string  `json:"to"`
	Rung     string  `json:"rung,omitempty"`
	Use      []Axis  `json:"use"`
	Bps      float64 `json:"goodput_bps"` // that it has carried
	Best     []Axis  `json:"best"`        // the setting that carried most
	BestBps  float64 `json:"best_bps"`
	Equal    int     `json:"alike"` // settings that the best does not clearly exceed, itself included
	Settings int     `json:"settings"`
	Runs     int     `json:"runs"` // of the setting to use
}

// Timing places a run on the controller's clock, which all runs of a group
// share. The clocks of end points are compared before and after the traffic;
// BoundNs is how far off the comparison can be at most.
type Timing struct {
	StartNs int64 `json:"start_ns"` // of the measured time at the receiver, since the moment at which all should start
	EndNs   int64 `json:"end_ns"`
	BoundNs int64 `json:"clock_bound_ns"`
}

// Group is what the cells of one group, which ran at the same time, carried together.
type Group struct {
	Group     int          `json:"group"` // Cell.Group
	Label     string       `json:"name"`
	Rung      string       `json:"rung,omitempty"`
	Axes      []Axis       `json:"axes,omitempty"`
	Cells     int          `json:"cells"`
	Failed    []Failure    `json:"failed,omitempty"`        // its pairs that carried nothing, or not to the end, and why
	Aggregate *Figure      `json:"aggregate_bps,omitempty"` // goodput of all cells over the time in which all ran
	Sum       *float64     `json:"sum_bps,omitempty"`       // of the cells' own figures, whether they ran at once or not
	Overlap   *Overlap     `json:"overlap,omitempty"`
	Fairness  *float64     `json:"jain_fairness,omitempty"` // over the pairs
	Hosts     []Share      `json:"hosts,omitempty"`         // in the order of their names
	Labels    []Share      `json:"labels,omitempty"`        // of hosts with a label: "role=db"
	Missing   []NotChecked `json:"not_checked,omitempty"`
	Warnings  []string     `json:"warnings,omitempty"`
}

// Overlap says how simultaneous the cells of a group were: of the runs that
// count, the worst.
type Overlap struct {
	Ns       int64   `json:"overlap_ns"`     // in which all of them were measured
	SkewNs   int64   `json:"start_skew_ns"`  // between the first and the last to start
	BoundNs  int64   `json:"clock_bound_ns"` // how far off that can be
	SharePct float64 `json:"share_pct"`      // of the longest run
}

// Failure is a pair of a group that failed while others went on.
type Failure struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
	// Counted is set where it ran to its end in a repetition that counts: it is in the aggregate.
	Counted bool `json:"counted,omitempty"`
}

// Share is the part of one host, or of all hosts with a label, in a group.
type Share struct {
	Name        string     `json:"name"`
	Flows       int        `json:"flows"`
	SentBps     *float64   `json:"sent_bps,omitempty"`     // goodput of the flows that it sends, at their receivers
	ReceivedBps *float64   `json:"received_bps,omitempty"` // over the overlap where there is one
	CPU         *CPUFigure `json:"cpu,omitempty"`          // of the host while the group ran; of a label, the sum of cores
	Memory      *MemFigure `json:"memory,omitempty"`
	PerCoreBps  *float64   `json:"bps_per_core,omitempty"` // sent and received over the cores used
}

// Target is what a plan demands, and what came of it.
type Target struct {
	What   string   `json:"what"` // "aggregate, 4 streams", "goodput of each pair, 8 pairs"
	Group  int      `json:"group"`
	Wanted float64  `json:"wanted"`
	Got    *float64 `json:"got,omitempty"`
	Unit   string   `json:"unit"` // "bps", "pct" of the ceiling, "ns", "fairness"
	AtMost bool     `json:"at_most,omitempty"`
	Pass   bool     `json:"pass"`
	Reason string   `json:"reason"` // which pair or host it is, or why there is no value; empty where the value says all
	From   string   `json:"from,omitempty"`
	To     string   `json:"to,omitempty"` // pair that it is decided by
}

// Planned is the plan that a document came from.
type Planned struct {
	Name        string       `json:"name"`
	Run         string       `json:"run"`               // names the run, for --resume
	SHA256      string       `json:"sha256"`            // of the plan file as it was read
	Order       string       `json:"order"`             // "sequential", "simultaneous", "interleaved", "blocks", "there-and-back"
	Steps       int          `json:"steps"`             // with repeats
	Done        int          `json:"steps_done"`        // less than Steps where it was interrupted
	Began       []time.Time  `json:"began,omitempty"`   // once, and each time that it was resumed
	ManualSteps []ManualStep `json:"by_hand,omitempty"` // what a person has done between its blocks, in order
}

// ManualStep is what a person was asked for so that a variant came into force.
type ManualStep struct {
	Block    int        `json:"block"` // of the plan, from 0
	Variant  string     `json:"variant"`
	Host     string     `json:"host"`
	Commands []string   `json:"commands"`
	Reboot   bool       `json:"reboot,omitempty"`
	Fact     string     `json:"fact,omitempty"`     // by which it was seen
	Wanted   string     `json:"wanted,omitempty"`   // value of the fact
	Before   *string    `json:"before,omitempty"`   // value when it was asked for; absent: it could not be read
	After    *string    `json:"after,omitempty"`    // value when the block began
	AskedAt  time.Time  `json:"asked_at"`           //
	DoneAt   *time.Time `json:"done_at,omitempty"`  // absent: it is still waited for
	How      string     `json:"known_by,omitempty"` // "fact": thru has seen it; "word": a person said so; "was so": nothing was to be done
}

// Ladder is the comparison of rungs, the lowest first: what each layer costs.
type Ladder struct {
	Rungs []Rung   `json:"rungs"`
	Notes []string `json:"notes,omitempty"`
}

// Rung is one path of a ladder with its best cell.
type Rung struct {
	Name    string   `json:"name"` // "localhost", "virtual switch", "LAN", "interconnect"
	From    string   `json:"from"`
	To      string   `json:"to"`
	Best    *Figure  `json:"best_bps,omitempty"`
	Label   string   `json:"best_cell,omitempty"` // "4 streams, default window"
	Ceiling *Ceiling `json:"ceiling,omitempty"`
	LossPct *float64 `json:"loss_to_lower_pct,omitempty"` // 1 - T(this)/T(the rung below), methods.md formula 13
	// LossLowPct and LossHighPct bound it at 95% for all rungs together, with what
	// runs are taken to differ by. Where 0 lies between them, it may be chance.
	LossLowPct  *float64 `json:"loss_to_lower_low_pct,omitempty"`
	LossHighPct *float64 `json:"loss_to_lower_high_pct,omitempty"`
	LostBps     *float64 `json:"lost_bps,omitempty"`
	// Limited is set where the rung below is not 1.3 times what this one could
	// carry: then the generator may be what is measured here.
	Limited bool     `json:"generator_limited,omitempty"`
	Why     string   `json:"why,omitempty"` // in words: the ratio and what it is held against
	Verdict *Verdict `json:"verdict,omitempty"`
	Error   string   `json:"error,omitempty"`
}
