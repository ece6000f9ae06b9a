package plan

import (
	"slices"
	"time"

	"thru/internal/measure"
)

// Orders in which all runs of a variant lie together, for variants that take a
// person or a reboot to come into force.
const (
	OrderBlocks       = "blocks"         // all runs of each variant, one variant after the other
	OrderThereAndBack = "there-and-back" // the same, and the rest of the first variant's runs at the end: A B A
	variantAxis       = "variant"        // the axis that names a step's variant
	usualWait         = 30 * time.Minute // for a state to come into force, where the plan does not say
)

// ManualStep is what a person does so that a variant is in force: thru itself sets
// and restarts nothing.
type ManualStep struct {
	Variant  string        // of the plan
	Host     string        // name of an end point of the plan, or where it is, as an end point says it
	At       string        // where it is
	Commands []string      // to be run there
	Reboot   bool          // the host is to be started anew then
	Fact     string        // path into the host's facts by which thru sees it, such as "sysctls.net.core.rmem_max"; empty: it is not seen
	Is       string        // value of that fact when it is in force
	Wait     time.Duration // for that, at most
}

// UsualWait is how long a state is waited for unless the plan says otherwise.
func UsualWait() time.Duration { return usualWait }

// Block is a part of a schedule: turns of one variant that follow each other.
type Block struct {
	Variant string
	Manual  *ManualStep // what brings it into force; nil: nothing is needed
	Turns   []Turn
}

// InBlocks tells whether the runs of a variant lie together.
func (p Plan) InBlocks() bool { return p.Order == OrderBlocks || p.Order == OrderThereAndBack }

// Blocks are the parts of the schedule in order. What stands beside is in the first.
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

// block lists the turns of a variant for some of its runs.
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

// variants are the names of those of the steps, in their order.
func (p Plan) variants() []string {
	var names []string
	for _, s := range p.Steps {
		if name, ok := variantOf(s); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// variantOf is the variant that a step is of.
func variantOf(s Step) (string, bool) {
	i := slices.IndexFunc(s.Axes, func(a measure.Axis) bool { return a.Name == variantAxis })
	if i < 0 {
		return "", false
	}
	return s.Axes[i].Value, true
}
