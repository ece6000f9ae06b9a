package measure

// Outcomes of a Comparison (docs/result.md). The bar is a change of 2%.
const (
	Improved   = "improved"   // the whole interval lies above the bar
	Worse      = "worse"      // the whole interval lies below it
	Equivalent = "equivalent" // the whole interval lies within the bar, whichever way
	Undecided  = "undecided"  // neither: more pairs of runs would tell
	// NotCompared is of variants whose figures are of different things, or of which
	// one setting was not in force. Then there is no change.
	NotCompared = "not compared"
)

// Comparison is the outcome of an A/B test: one variant of a plan against the
// first one, by runs that were made in turns.
type Comparison struct {
	Base       string      `json:"base"`                 // name of the variant that the others are held against
	Variant    string      `json:"variant"`              // that is compared with it
	What       string      `json:"what"`                 // "a -> b", "8 pairs", with what else the plan varies
	Groups     [2]int      `json:"groups"`               // Cell.Group of the base and of the variant
	Figure     string      `json:"figure"`               // "goodput_bps", "transactions_per_s": of all flows of the group together
	Pairs      int         `json:"pairs"`                // of runs, one of each variant; 0 of variants that ran in blocks
	Blocks     *Blocks     `json:"blocks,omitempty"`     // of variants whose runs lay together, so that there are no pairs
	BaseValue  *float64    `json:"base_value,omitempty"` // means of the runs that are compared
	Value      *float64    `json:"variant_value,omitempty"`
	ChangePct  *float64    `json:"change_pct,omitempty"` // Hodges-Lehmann estimate
	LowPct     *float64    `json:"low_pct,omitempty"`    // its interval
	HighPct    *float64    `json:"high_pct,omitempty"`
	LevelPct   *float64    `json:"level_pct,omitempty"` // of the interval: 95, or more where several variants share the doubt (Holm)
	P          *float64    `json:"p_value,omitempty"`   // of the Wilcoxon signed-rank test, two-sided, corrected (Holm); none of blocks
	Outcome    string      `json:"outcome"`
	Reason     string      `json:"reason"`
	Guardrails []Guardrail `json:"guardrails,omitempty"` // what a gain may have cost
}

// Blocks are the runs of two variants that could not take turns, since a person or
// a reboot brings each into force. What else changed between the blocks looks like
// the variant; where the base was measured again at the end, Drift tells of it.
type Blocks struct {
	BaseRuns     int      `json:"base_runs"`
	VariantRuns  int      `json:"variant_runs"`
	DriftPct     *float64 `json:"base_drift_pct,omitempty"`      // of the base's last block against its first
	DriftLowPct  *float64 `json:"base_drift_low_pct,omitempty"`  // its interval, at 95%
	DriftHighPct *float64 `json:"base_drift_high_pct,omitempty"` //
}

// Guardrail is a figure beside the compared one: what a gain may have cost.
type Guardrail struct {
	Name      string   `json:"name"` // "sender CPU per Gb/s", "loss", "RTT under load", "fairness"
	Unit      string   `json:"unit"` // "pct_per_gbps", "pct", "ns", "fairness"
	Base      *float64 `json:"base,omitempty"`
	Variant   *float64 `json:"variant,omitempty"`
	Worse     bool     `json:"worse,omitempty"`       // it got worse by more than its bar
	NotJudged string   `json:"not_checked,omitempty"` // why there are not both figures
}
