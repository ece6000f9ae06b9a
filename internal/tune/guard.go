package tune

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"thru/internal/measure"
)

// Times of a guard.
const (
	guardTime = 10 * time.Minute // how long it retries
	guardWait = time.Second      // between two tries
)

// orderly is what a guard reads before the end of its pipe where the tuning
// has ended normally.
const orderly = "end\n"

// Dismiss tells a guard, by the pipe that it reads, that the tuning has ended
// normally.
func Dismiss(w io.Writer) error {
	_, err := io.WriteString(w, orderly)
	return err
}

// Guard waits for the end of in, a pipe whose other end the tuning process
// holds. Where the pipe ends without Dismiss, the process has died: Guard
// undoes the tuning from its journal as soon as nobody else tunes the host.
func Guard(ctx context.Context, d *Tuner, in io.Reader) error {
	said, _ := io.ReadAll(io.LimitReader(in, 64)) // a read error means the end too
	if string(said) == orderly {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, guardTime)
	defer cancel()
	for {
		left, err := d.Recover()
		if err == nil && !anyFailed(left) && !d.isCutOff() {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("tune: reverting the tuning of a dead process: %w", errors.Join(err, leftError(left)))
		case <-time.After(guardWait):
		}
	}
}

// isCutOff reports whether a guard has something left to undo.
func (d *Tuner) isCutOff() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.cutOff()) > 0
}

// Restored reports whether a rollback restored everything: no change failed,
// and none was left as another's.
func Restored(all []measure.Changed) bool {
	for _, c := range all {
		if c.Outcome == measure.Failed || c.Outcome == measure.Foreign {
			return false
		}
	}
	return true
}
