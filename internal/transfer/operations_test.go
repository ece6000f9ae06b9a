package transfer

import (
	"context"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
)

// TestEnded: the writer's failure comes first, then the end of the context, then what is missing.
func TestEnded(t *testing.T) {
	over, cancel := context.WithCancelCause(t.Context())
	cancel(ErrSilent)
	for name, c := range map[string]struct {
		ctx  context.Context
		sink Noting
		size int64
		err  error
		want error
		says string
	}{
		"whole":                    {sink: Noting{N: 3}, size: 3},
		"of a length nobody said":  {sink: Noting{N: 3}, size: -1},
		"short":                    {sink: Noting{N: 2}, size: 3, want: ErrShort, says: "2 of 3 (unexpected EOF)"},
		"short, by an error":       {sink: Noting{N: 2}, size: 3, err: syscall.ECONNRESET, want: ErrShort, says: "2 of 3 (connection reset"},
		"cut, nobody said how far": {sink: Noting{N: 2}, size: -1, err: io.ErrUnexpectedEOF, want: ErrShort, says: "after 2 bytes (unexpected EOF)"},
		"refused by the writer":    {sink: Noting{N: 2, Err: ErrFull}, size: 3, err: io.ErrShortWrite, want: ErrFull},
		"silent":                   {ctx: over, sink: Noting{N: 2}, size: 3, want: ErrSilent},
		"refused after all":        {sink: Noting{N: 3}, size: 3, err: ErrDenied, want: ErrDenied},
	} {
		if c.ctx == nil {
			c.ctx = t.Context()
		}
		err := c.sink.Ended(c.ctx, c.size, c.err)
		if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v, %q", name, err, c.want, c.says)
		}
	}
}
