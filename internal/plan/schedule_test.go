package plan

import (
	"fmt"
	"slices"
	"testing"

	"thru/internal/measure"
)

// TestSchedule: repetitions are spread over time, baselines run once, and each pair of blocks of interleaved
// steps runs forward and back.
func TestSchedule(t *testing.T) {
	three := []Step{{Label: "a"}, {Label: "b"}, {Label: "beside", Baseline: true}}
	got := Plan{Steps: three, Repeat: Repeat{Min: 2, Max: 2}}.Schedule()
	if want := []Turn{{0, 0}, {1, 0}, {2, 0}, {0, 1}, {1, 1}}; !slices.Equal(got, want) {
		t.Errorf("sequential: %v, want %v", got, want)
	}
	firsts := map[int]bool{}
	for seed := range uint64(20) {
		p := Plan{Steps: three[:2], Order: OrderInterleaved, Seed: seed, Repeat: Repeat{Max: 4}}
		turns := p.Schedule()
		if fmt.Sprint(turns) != fmt.Sprint(p.Schedule()) {
			t.Error("the same plan gives two orders")
		}
		for block := 0; block < 4; block += 2 {
			b := turns[2*block : 2*block+4]
			if b[0].Step != b[3].Step || b[1].Step != b[2].Step || b[0].Step == b[1].Step {
				t.Errorf("block %v is not there and back", b)
			}
			firsts[b[0].Step] = true
		}
	}
	if len(firsts) != 2 {
		t.Error("every block begins with the same step")
	}
}

// TestBlocks: orders in blocks group all runs of a variant; with there-and-back the rest of the first
// variant's runs come last. Baselines run once, in the first block.
func TestBlocks(t *testing.T) {
	of := func(name string) []measure.Axis {
		return []measure.Axis{{Name: "streams", Value: "1"}, {Name: variantAxis, Value: name}}
	}
	p := Plan{Order: OrderBlocks, Repeat: Repeat{Min: 3, Max: 3}, ManualSteps: []ManualStep{{Variant: "b", Host: "h"}},
		Steps: []Step{{Label: "beside", Baseline: true}, {Axes: of("a")}, {Axes: of("b")}, {Axes: of("a")}, {Axes: of("b")}}}
	if got, want := fmt.Sprint(p.Schedule()), "[{0 0} {1 0} {3 0} {1 1} {3 1} {1 2} {3 2} {2 0} {4 0} {2 1} {4 1} {2 2} {4 2}]"; got != want {
		t.Errorf("blocks: %s, want %s", got, want)
	}
	p.Order = OrderThereAndBack
	if got, want := fmt.Sprint(p.Schedule()), "[{0 0} {1 0} {3 0} {1 1} {3 1} {2 0} {4 0} {2 1} {4 1} {2 2} {4 2} {1 2} {3 2}]"; got != want {
		t.Errorf("there and back: %s, want %s", got, want)
	}
	blocks := p.Blocks()
	if len(blocks) != 3 || blocks[0].Manual != nil || blocks[1].Manual == nil || blocks[1].Manual.Host != "h" || blocks[2].Variant != "a" {
		t.Errorf("%+v", blocks)
	}
	if p.Repeat.Max = 1; len(p.Blocks()) != 2 {
		t.Errorf("with one run: %+v", p.Blocks())
	}
}
