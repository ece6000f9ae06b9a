package control

import (
	"context"
	"errors"
	"time"

	"thru/internal/measure"
	"thru/internal/plan"
)

// Tuning says how a path is tuned.
type Tuning struct {
	Budget    time.Duration     // no change is begun that it does not hold
	TargetBps float64           // rate of each direction at which it ends; 0: none
	DryRun    bool              // measures and advises, and changes nothing
	AA        int               // instead of changes so many comparisons of the state with itself
	Try       []measure.Setting // are tried before all proposals; no EndPoint: at each end
	Only      []string          // ids of the knobs that may be changed; none: all
	Seed      uint64            // of the order of runs
	// Accept is asked of each change that has a risk (Proposal.Risk, Cuts); nil
	// declines those that may cut the connection.
	Accept func(measure.Proposal) bool
}

// Tune measures the plan's traffic, changes one setting at a time at the end
// points, and keeps what is shown to help.
func (r *Runner) Tune(ctx context.Context, p plan.Plan, how Probing, t Tuning) (*measure.Document, error) {
	return nil, errors.New("control: not built yet")
}
