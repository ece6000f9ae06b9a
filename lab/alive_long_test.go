//go:build long

package lab_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

// pausesOf20 is how many of 20 tests may end since their data has stopped: where
// half of the packets are lost, TCP pauses for longer than a worker waits, with
// nothing heard meanwhile, in about one run of 40 (measured: 2 of 80).
const pausesOf20 = 2

// TestControlSurvivesOften: through 20 s of each trouble no end point is called
// gone, and the tests end with a result.
func TestControlSurvivesOften(t *testing.T) {
	for _, x := range troubles() {
		t.Run(x.name, func(t *testing.T) {
			var paused atomic.Int32
			t.Run("all", func(t *testing.T) {
				for seed := range uint64(20) {
					t.Run(fmt.Sprint(seed), func(t *testing.T) {
						t.Parallel()
						said := x.ends(t, seed, 20)
						switch {
						case said == "":
						case x.bad.Loss > 0 && strings.Contains(said, "the data stopped"):
							paused.Add(1)
						default:
							t.Error(said)
						}
					})
				}
			})
			if n := paused.Load(); n > pausesOf20 {
				t.Errorf("the data of %d tests stopped", n)
			}
		})
	}
}
