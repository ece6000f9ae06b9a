package plan

import (
	"slices"
	"time"

	"thru/internal/measure"
)

// Orders that group all runs of a variant, for variants that need a manual step or a reboot to come into
// force.
const (
	OrderBlocks       = "blocks"         // all runs of each variant, one variant after the other
	OrderThereAndBack = "there-and-back" // the same, and the rest of the first variant's runs at the end: A B A
	variantAxis       = "variant"        // the axis that names a step's variant
	usualWait         = 30 * time.Minute // limit for a state to come into force, if the plan sets none
)

// ManualStep is what the user does to bring a variant into force: thru itself sets and restarts nothing.
type ManualStep struct {
	Variant  string        // of the plan
	Host     string        // name of an end point of the plan, or its address
	At       string        // address of the host
	Commands []string      // to run there
	Reboot   bool          // the host must restart afterwards
	Fact     string        // path into the host's facts that confirms the step, such as "sysctls.net.core.rmem_max"; empty: none
	Is       string        // value of that fact when the variant is in force
	Wait     time.Duration // limit of the wait for that
}

// UsualWait returns how long thru waits for a state unless the plan sets a limit.
func UsualWait() time.Duration { return usualWait }

// Block is a part of a schedule: consecutive turns of one variant.
type Block struct {
	Variant string
	Manual  *ManualStep // brings it into force; nil: nothing is needed
	Turns   []Turn
}

// InBlocks reports whether the order groups the runs of a variant.
func (p Plan) InBlocks() bool { return p.Order == OrderBlocks || p.Order == OrderThereAndBack }

// Blocks returns the parts of the schedule in order. The first block includes the baselines.
func (p Plan) Blocks() []Block {
	if !p.InBlocks() {
		return []Block{{Turns: p.Schedule()}}
	}
	var blocks []Block
	names, runs := p.variants(), max(p.Repeat.Max, 1)
	for i, name := range names {
		to := runs
		if i == 0 && p.Order == OrderThereAndBack {
			to = (runs + 1) / 2
		}
		blocks = append(blocks, p.block(name, 0, to, i == 0))
	}
	if p.Order == OrderThereAndBack && len(names) > 0 && runs > 1 {
		blocks = append(blocks, p.block(names[0], (runs+1)/2, runs, false))
	}
	return blocks
}

// block returns the turns of a variant for the runs from, inclusive, to to, exclusive.
func (p Plan) block(name string, from, to int, first bool) Block {
	b := Block{Variant: name}
	for i := range p.ManualSteps {
		if p.ManualSteps[i].Variant == name {
			b.Manual = &p.ManualSteps[i]
		}
	}
	for run := from; run < to; run++ {
		for i, s := range p.Steps {
			own, named := variantOf(s)
			if named && own == name || first && run == from && (s.Baseline || !named) {
				b.Turns = append(b.Turns, Turn{i, run})
			}
		}
	}
	return b
}

// variants returns the names of the steps' variants in order.
func (p Plan) variants() []string {
	var names []string
	for _, s := range p.Steps {
		if name, ok := variantOf(s); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// variantOf returns the variant of a step.
func variantOf(s Step) (string, bool) {
	i := slices.IndexFunc(s.Axes, func(a measure.Axis) bool { return a.Name == variantAxis })
	if i < 0 {
		return "", false
	}
	return s.Axes[i].Value, true
}
