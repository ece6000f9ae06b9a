package fault

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestHintAndCode(t *testing.T) {
	inner := Usagef("inner hint", "inner: %w", io.EOF)
	for name, c := range map[string]struct {
		err  error
		hint string
		code int
	}{
		"nil":             {nil, "", OK},
		"plain":           {io.EOF, "", Failed},
		"usage":           {inner, "inner hint", Usage},
		"wrapped":         {fmt.Errorf("outer: %w", inner), "inner hint", Usage},
		"outer wins":      {Failf("outer hint", "outer: %w", inner), "outer hint", Failed},
		"outer is silent": {Failf("", "outer: %w", inner), "inner hint", Failed},
		"joined":          {errors.Join(inner, io.ErrClosedPipe), "inner hint", Usage},
	} {
		if Hint(c.err) != c.hint || Code(c.err) != c.code {
			t.Errorf("%s: hint %q, code %d", name, Hint(c.err), Code(c.err))
		}
	}
	if !errors.Is(inner, io.EOF) || inner.Error() != "inner: EOF" {
		t.Errorf("%v does not wrap its cause", inner)
	}
}
