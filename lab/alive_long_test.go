//go:build long

package lab_test

import (
	"fmt"
	"testing"
)

// TestControlSurvivesOften runs 20 s of each trouble. Neither end may declare its peer gone, and each test
// must end with a result.
func TestControlSurvivesOften(t *testing.T) {
	for _, x := range troubles() {
		t.Run(x.name, func(t *testing.T) {
			for seed := range uint64(20) {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					t.Parallel()
					if said := x.ends(t, seed, 20); said != "" {
						t.Error(said)
					}
				})
			}
		})
	}
}
