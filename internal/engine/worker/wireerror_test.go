package worker

import (
	"errors"
	"io"
	"syscall"
	"testing"

	"thru/internal/fault"
)

// TestPeerGone checks that an end that only saw the other one disconnect reports it as a reason, also over the worker's pipe.
func TestPeerGone(t *testing.T) {
	w := &worker{}
	for err, want := range map[error]fault.Reason{io.EOF: fault.PeerGone, syscall.ECONNRESET: fault.PeerGone, errors.New("other"): ""} {
		if got := fault.ReasonOf(toWire(w.early(&stream{err: err})).err()); got != want {
			t.Errorf("%v: the reason is %q, want %q", err, got, want)
		}
	}
}
