// Package enginetest helps the tests of all engines.
package enginetest

import (
	"testing"
	"time"

	"thru/internal/engine"
)

// limit bounds each step of a test; it does not assert speed.
const limit = 30 * time.Second

// Finish reads the updates of a session to its end and returns them.
func Finish(t *testing.T, x engine.Session) []engine.Update {
	t.Helper()
	var all []engine.Update
	timeout := time.After(limit)
	for {
		select {
		case u, ok := <-x.Updates():
			if !ok {
				return all
			}
			all = append(all, u)
		case <-timeout:
			t.Fatalf("no end within %v; %d updates came, the last %+v", limit, len(all), all[max(0, len(all)-3):])
		}
	}
}
