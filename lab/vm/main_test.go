//go:build !vmlab

package vm

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails where a goroutine outlives the tests. With the tag vmlab another TestMain boots virtual
// machines.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
