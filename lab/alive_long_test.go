//go:build long

package lab_test

import (
	"fmt"
	"testing"
)

// TestControlSurvivesOften: 20 of 20 tests end with a result, through 20 s of
// each trouble.
func TestControlSurvivesOften(t *testing.T) {
	for _, x := range troubles() {
		t.Run(x.name, func(t *testing.T) {
			for seed := range uint64(20) {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					t.Parallel()
					x.survives(t, seed, 20)
				})
			}
		})
	}
}
