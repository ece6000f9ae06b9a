package fault

import "context"

// Until runs do, which may block on a pipe without a writer; ctx interrupts it.
func Until[T any](ctx context.Context, path string, do func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := do()
		done <- outcome{value, err}
	}()
	select {
	case x := <-done:
		return x.value, x.err
	case <-ctx.Done():
		var none T
		return none, Failf("", "%s: interrupted", Named(path))
	}
}
