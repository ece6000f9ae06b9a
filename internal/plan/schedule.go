package plan

import (
	"math/rand/v2"
)

// Turn is one run of one step.
type Turn struct{ Step, Run int }

// Schedule lists the runs in order. It goes through the whole list of steps once per repetition, which
// spreads the repetitions of one step over time; baselines run once. Interleaved steps run forward and back,
// so that a drift of the path affects all equally, and every second block begins at the other end, by the
// plan's seed (methods.md). With orders in blocks it returns the turns of Blocks.
func (p Plan) Schedule() []Turn {
	var turns []Turn
	if p.InBlocks() {
		for _, b := range p.Blocks() {
			turns = append(turns, b.Turns...)
		}
		return turns
	}
	forward := true
	random := rand.New(rand.NewPCG(p.Seed, p.Seed))
	for run := range max(p.Repeat.Max, 1) {
		if p.Order == OrderInterleaved {
			if run%2 == 0 {
				forward = random.IntN(2) == 0
			} else {
				forward = !forward
			}
		}
		for i := range p.Steps {
			if !forward {
				i = len(p.Steps) - 1 - i
			}
			if !p.Steps[i].Baseline || run == 0 {
				turns = append(turns, Turn{i, run})
			}
		}
	}
	return turns
}
