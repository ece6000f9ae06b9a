package library

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"thru/internal/fault"
)

// TestRefusedInput: an unreadable input is named as the user named it, and the hint fits
// every command.
func TestRefusedInput(t *testing.T) {
	blank := bytes.Repeat([]byte{' '}, enough)
	for name, want := range map[string]string{"-": "the input is not a result", "x.json": "x.json is not a result"} {
		if err := (&Source{Name: name, begin: blank}).readable(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := fault.Hint(notOpened("/", errors.New("is a directory"))); got != "name a file, or - for stdin" {
		t.Errorf("the hint is %q", got)
	}
}
