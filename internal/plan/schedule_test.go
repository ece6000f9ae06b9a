package plan

import (
	"fmt"
	"slices"
	"testing"
)

// Repetitions lie apart, what is beside runs once, and of interleaved steps each
// pair of blocks goes there and back.
func TestSchedule(t *testing.T) {
	three := []Step{{Label: "a"}, {Label: "b"}, {Label: "beside", Beside: true}}
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
