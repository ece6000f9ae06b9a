package measure

import "time"

// Axis is one value of a setting that a plan varies, such as streams: 4.
type Axis struct {
	Name  string `json:"name"`  // as in the plan: "streams", "window", "end_points", "variant"
	Value string `json:"value"` // as people write it: "4", "800K", "cubic"
}

// Recommended is the smallest setting of a path that carries within 5% of the highest rate. It covers the varied ones of streams, window and length.
type Recommended struct {
	From     string  `json:"from"`
	To       string  `json:"to"`
	Rung     string  `json:"rung,omitempty"`
	Use      []Axis  `json:"use"`
	Bps      float64 `json:"goodput_bps"` // goodput with this setting
	Best     []Axis  `json:"best"`        // setting with the highest goodput
	BestBps  float64 `json:"best_bps"`
	Equal    int     `json:"alike"` // settings that the best does not clearly exceed, including itself
	Settings int     `json:"settings"`
	Runs     int     `json:"runs"` // runs of the recommended setting
}

// Timing places a run on the controller's clock, which all runs of a group share. thru compares the clocks of end points before and after the traffic; BoundNs
// bounds the error of that comparison.
type Timing struct {
	StartNs int64 `json:"start_ns"` // start of the measured time at the receiver, since the common start time
	EndNs   int64 `json:"end_ns"`
	BoundNs int64 `json:"clock_bound_ns"`
}

// Group is the total of the cells that ran at the same time.
type Group struct {
	Group     int          `json:"group"` // Cell.Group
	Label     string       `json:"name"`
	Rung      string       `json:"rung,omitempty"`
	Axes      []Axis       `json:"axes,omitempty"`
	Cells     int          `json:"cells"`
	Failed    []Failure    `json:"failed,omitempty"`        // pairs that carried nothing or broke off, and why
	Aggregate *Figure      `json:"aggregate_bps,omitempty"` // goodput of all cells over the time in which all of them ran
	Sum       *float64     `json:"sum_bps,omitempty"`       // sum of the cells' own figures, simultaneous or not
	Overlap   *Overlap     `json:"overlap,omitempty"`
	Fairness  *float64     `json:"jain_fairness,omitempty"` // over the pairs
	Hosts     []Share      `json:"hosts,omitempty"`         // sorted by name
	Labels    []Share      `json:"labels,omitempty"`        // by label of the hosts: "role=db"
	Missing   []NotChecked `json:"not_checked,omitempty"`
	Warnings  []string     `json:"warnings,omitempty"`
}

// Overlap is how simultaneous the cells of a group ran: the worst of the runs that count.
type Overlap struct {
	Ns       int64   `json:"overlap_ns"`     // time in which all of them were measured
	SkewNs   int64   `json:"start_skew_ns"`  // between the first and the last to start
	BoundNs  int64   `json:"clock_bound_ns"` // error bound of the skew
	SharePct float64 `json:"share_pct"`      // of the longest run
}

// Failure is a pair of a group that failed while others continued.
type Failure struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
	// Counted is set where it ran to its end in a repetition that counts: the aggregate includes it.
	Counted bool `json:"counted,omitempty"`
}

// Share is the share of one host, or of all hosts with a label, in a group.
type Share struct {
	Name        string     `json:"name"`
	Flows       int        `json:"flows"`
	SentBps     *float64   `json:"sent_bps,omitempty"`     // goodput of the flows that it sends, measured at their receivers
	ReceivedBps *float64   `json:"received_bps,omitempty"` // over the overlap, where there is one
	CPU         *CPUFigure `json:"cpu,omitempty"`          // of the host while the group ran; for a label, the sum of cores
	Memory      *MemFigure `json:"memory,omitempty"`
	PerCoreBps  *float64   `json:"bps_per_core,omitempty"` // sent and received rate per core used
}

// Target is a requirement of a plan, and its result.
type Target struct {
	What   string   `json:"what"` // "aggregate, 4 streams", "goodput of each pair, 8 pairs"
	Group  int      `json:"group"`
	Wanted float64  `json:"wanted"`
	Got    *float64 `json:"got,omitempty"`
	Unit   string   `json:"unit"` // "bps", "pct" of the ceiling, "ns", "fairness"
	AtMost bool     `json:"at_most,omitempty"`
	Pass   bool     `json:"pass"`
	Reason string   `json:"reason"` // the pair or host that decides it, or why there is no value; empty where the value is enough
	From   string   `json:"from,omitempty"`
	To     string   `json:"to,omitempty"` // pair that decides it
}

// Planned is the plan that a document came from.
type Planned struct {
	Name        string       `json:"name"`
	Run         string       `json:"run"`               // id of the run, for --resume
	SHA256      string       `json:"sha256"`            // of the plan file as it was read
	Order       string       `json:"order"`             // "sequential", "simultaneous", "interleaved", "blocks", "there-and-back"
	Steps       int          `json:"steps"`             // including repeats
	Done        int          `json:"steps_done"`        // less than Steps where it was interrupted
	Began       []time.Time  `json:"began,omitempty"`   // at the start and at each resume
	ManualSteps []ManualStep `json:"by_hand,omitempty"` // manual steps between its blocks, in order
}

// ManualStep is a step that a person carries out to bring a variant into force.
type ManualStep struct {
	Block    int        `json:"block"` // of the plan, from 0
	Variant  string     `json:"variant"`
	Host     string     `json:"host"`
	Commands []string   `json:"commands"`
	Reboot   bool       `json:"reboot,omitempty"`
	Fact     string     `json:"fact,omitempty"`     // fact that confirms it
	Wanted   string     `json:"wanted,omitempty"`   // value of the fact
	Before   *string    `json:"before,omitempty"`   // value at the request; absent: it could not be read
	After    *string    `json:"after,omitempty"`    // value when the block began
	AskedAt  time.Time  `json:"asked_at"`           // time of the request
	DoneAt   *time.Time `json:"done_at,omitempty"`  // absent: not done yet
	How      string     `json:"known_by,omitempty"` // "fact": thru has verified it; "word": a person confirmed it; "was so": nothing had to be done
}

// Ladder compares the rungs, the lowest first: it shows the cost of each layer.
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
	LossPct *float64 `json:"loss_to_lower_pct,omitempty"` // 1 - T(this)/T(next lower rung), methods.md formula 13
	// LossLowPct and LossHighPct bound the loss at 95% for all rungs together, with the assumed variation between runs. Where 0 lies between them, the loss
	// may be chance.
	LossLowPct  *float64 `json:"loss_to_lower_low_pct,omitempty"`
	LossHighPct *float64 `json:"loss_to_lower_high_pct,omitempty"`
	LostBps     *float64 `json:"lost_bps,omitempty"`
	// Limited is set where the next lower rung is not 1.3 times as fast as this one could be. Then the generator may limit this rung.
	Limited bool     `json:"generator_limited,omitempty"`
	Why     string   `json:"why,omitempty"` // in words: the ratio and its reference
	Verdict *Verdict `json:"verdict,omitempty"`
	Error   string   `json:"error,omitempty"`
}
