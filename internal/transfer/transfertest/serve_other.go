//go:build !unix

package transfertest

import "testing"

// Serve skips the test: its servers are Unix programs.
func Serve(t testing.TB, argv ...string) { t.Skipf("%s runs on Unix", argv[0]) }

// Apart has nothing to offer here.
func Apart(testing.TB, string) []string { return nil }
