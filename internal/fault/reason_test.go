package fault

import (
	"errors"
	"fmt"
	"testing"
)

func TestReason(t *testing.T) {
	plain := errors.New("full")
	if ReasonOf(plain) != "" || Because("", plain) != plain || Because("full", nil) != nil {
		t.Error("a reason out of nothing")
	}
	err := fmt.Errorf("writing: %w", Because("full", plain))
	if ReasonOf(err) != "full" || !errors.Is(err, plain) || err.Error() != "writing: full" {
		t.Errorf("%v, %q", err, ReasonOf(err))
	}
}
