package console

import "testing"

// TestFolded: a line breaks between words, and only if the terminal is narrower.
func TestFolded(t *testing.T) {
	const line = "thru: no service runs: the manager knows no unit"
	for width, want := range map[int]string{
		len(line): line,
		30:        "thru: no service runs: the\n      manager knows no unit",
	} {
		if got := folded(line, width); got != want {
			t.Errorf("%d: %q", width, got)
		}
	}
}
