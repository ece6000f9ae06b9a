package runner

import (
	"context"
	"errors"
	"sync"

	"thru/internal/transfer"
)

// removal holds files to remove, by some sessions at once.
type removal struct {
	mu     sync.Mutex
	names  []string // not taken by a session yet
	left   []string
	cause  error // why the first of those left could not be removed
	closed error // why a session could not be opened
}

// Remove removes files at the server by one new session for each client, and
// returns those left with the reason of the first. A file that does not exist
// is not left. A silent session takes no more files; the others go on.
func Remove(ctx context.Context, clients []transfer.Client, names []string) (left []string, err error) {
	r := &removal{names: names}
	var all sync.WaitGroup
	for _, c := range clients[:min(len(clients), len(names))] {
		all.Go(func() { r.session(ctx, c) })
	}
	all.Wait()
	left = append(r.left, r.names...)
	if err = r.cause; err == nil && len(left) > 0 {
		err = r.closed
	}
	return left, err
}

func (r *removal) session(ctx context.Context, c transfer.Client) {
	s, err := c.Open(ctx)
	if err != nil { // the server may have admitted others
		r.mu.Lock()
		defer r.mu.Unlock()
		r.closed = err
		return
	}
	defer s.Close()
	for name := r.next(); name != ""; name = r.next() {
		err := s.Remove(ctx, name)
		if err == nil || errors.Is(err, transfer.ErrMissing) {
			continue
		}
		r.stays(name, err)
		if ctx.Err() != nil || errors.Is(err, transfer.ErrSilent) {
			return
		}
	}
}

// next returns a name that no session has taken; "" where there is none.
func (r *removal) next() (name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.names) > 0 {
		name, r.names = r.names[0], r.names[1:]
	}
	return name
}

func (r *removal) stays(name string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = append(r.left, name)
	if r.cause == nil {
		r.cause = err
	}
}
