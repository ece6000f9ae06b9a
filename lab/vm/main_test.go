//go:build !vmlab

package vm

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails where a goroutine outlives the tests; with the tag vmlab there is
// another one, which boots virtual machines.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
