package worker

import (
	"errors"
	"io"
	"syscall"
	"testing"

	"thru/internal/fault"
)

// TestPeerGone holds that an end which only saw the other one go says so as a
// value, over the worker's pipe too.
func TestPeerGone(t *testing.T) {
	w := &worker{}
	for err, want := range map[error]fault.Reason{io.EOF: fault.PeerGone, syscall.ECONNRESET: fault.PeerGone, errors.New("other"): ""} {
		if got := fault.ReasonOf(toWire(w.early(&stream{err: err})).err()); got != want {
			t.Errorf("%v: the reason is %q, want %q", err, got, want)
		}
	}
}
