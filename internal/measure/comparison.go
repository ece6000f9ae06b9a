package measure

// Outcomes of a Comparison (docs/result.md). The threshold is a change of 2%.
const (
	Improved   = "improved"   // the whole interval lies above the threshold
	Worse      = "worse"      // the whole interval lies below it
	Equivalent = "equivalent" // the whole interval lies within the threshold, in both directions
	Undecided  = "undecided"  // none of these: more pairs of runs would decide
	// NotCompared marks variants whose figures measure different things, or a variant whose setting was not in force. Such a comparison has no change.
	NotCompared = "not compared"
)

// Comparison is the outcome of an A/B test: one variant of a plan against the first one, from runs in alternating order.
type Comparison struct {
	Base       string      `json:"base"`                 // name of the reference variant
	Variant    string      `json:"variant"`              // name of the variant compared with it
	What       string      `json:"what"`                 // "a -> b", "8 pairs", with the other values that the plan varies
	Groups     [2]int      `json:"groups"`               // Cell.Group of the base and of the variant
	Figure     string      `json:"figure"`               // "goodput_bps", "transactions_per_s": of all flows of the group together
	Pairs      int         `json:"pairs"`                // pairs of runs, one run of each variant; 0 where variants ran in blocks
	Blocks     *Blocks     `json:"blocks,omitempty"`     // where the runs of each variant form blocks, so that there are no pairs
	BaseValue  *float64    `json:"base_value,omitempty"` // mean of the compared runs
	Value      *float64    `json:"variant_value,omitempty"`
	ChangePct  *float64    `json:"change_pct,omitempty"` // Hodges-Lehmann estimate
	LowPct     *float64    `json:"low_pct,omitempty"`    // bound of its confidence interval
	HighPct    *float64    `json:"high_pct,omitempty"`
	LevelPct   *float64    `json:"level_pct,omitempty"` // confidence level of the interval: 95, or more where several variants share the error rate (Holm)
	P          *float64    `json:"p_value,omitempty"`   // of the Wilcoxon signed-rank test, two-sided, corrected (Holm); absent for blocks
	Outcome    string      `json:"outcome"`
	Reason     string      `json:"reason"`
	Guardrails []Guardrail `json:"guardrails,omitempty"` // guardrail metrics: what a gain may have cost
}

// Blocks describes the runs of two variants that could not alternate, because a manual step or a reboot brings each into force. Any other change between the
// blocks looks like an effect of the variant; where the base was measured again at the end, Drift shows it.
type Blocks struct {
	BaseRuns     int      `json:"base_runs"`
	VariantRuns  int      `json:"variant_runs"`
	DriftPct     *float64 `json:"base_drift_pct,omitempty"`      // last block of the base against its first
	DriftLowPct  *float64 `json:"base_drift_low_pct,omitempty"`  // bound of its 95% interval
	DriftHighPct *float64 `json:"base_drift_high_pct,omitempty"` //
}

// Guardrail is a guardrail metric: what a gain in the compared figure may have cost.
type Guardrail struct {
	Name      string   `json:"name"` // "sender CPU per Gb/s", "loss", "RTT under load", "fairness"
	Unit      string   `json:"unit"` // "pct_per_gbps", "pct", "ns", "fairness"
	Base      *float64 `json:"base,omitempty"`
	Variant   *float64 `json:"variant,omitempty"`
	Worse     bool     `json:"worse,omitempty"`       // it got worse by more than its threshold
	NotJudged string   `json:"not_checked,omitempty"` // why one of the figures is missing
}
