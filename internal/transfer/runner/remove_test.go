package runner

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"thru/internal/transfer"
)

// stubborn is a server that does not remove some files.
type stubborn struct {
	*shelf
	refuse map[string]error
}

func (s stubborn) Open(context.Context) (transfer.Session, error) {
	return stubbornVisit{visit{s.shelf}, s}, nil
}

type stubbornVisit struct {
	visit
	of stubborn
}

func (v stubbornVisit) Remove(ctx context.Context, path string) error {
	if err := v.of.refuse[path]; err != nil {
		return err
	}
	return v.visit.Remove(ctx, path)
}

// TestRemove: files that are left are reported, and one failed file or
// session affects no other.
func TestRemove(t *testing.T) {
	const files = 300
	denied := errors.New("denied")
	for name, c := range map[string]struct {
		refuse   map[string]error
		sessions int
		shut     int // sessions that are not admitted
		left     int
		cause    error
	}{
		"all go":              {sessions: 8},
		"one session":         {sessions: 1},
		"some are not let in": {sessions: 8, shut: 7},
		"nobody is let in":    {sessions: 8, shut: 8, left: files, cause: transfer.ErrLogin},
		"two stay":            {refuse: map[string]error{"f3": denied, "f9": denied}, sessions: 4, left: 2, cause: denied},
		"gone already":        {refuse: map[string]error{"f3": transfer.ErrMissing}, sessions: 4},
		"one goes silent":     {refuse: map[string]error{"f3": transfer.ErrSilent}, sessions: 4, left: 1, cause: transfer.ErrSilent},
		"all go silent":       {refuse: map[string]error{"f0": transfer.ErrSilent}, sessions: 1, left: files, cause: transfer.ErrSilent},
	} {
		t.Run(name, func(t *testing.T) {
			server := stubborn{&shelf{files: map[string][]byte{}}, c.refuse}
			var names []string
			for i := range files {
				names = append(names, fmt.Sprint("f", i))
				server.files[names[i]] = nil
			}
			var clients []transfer.Client
			for i := range c.sessions {
				if i < c.shut {
					clients = append(clients, &shelf{deny: transfer.ErrLogin})
				} else {
					clients = append(clients, server)
				}
			}
			left, err := Remove(t.Context(), clients, names)
			if len(left) != c.left || !errors.Is(err, c.cause) || c.cause == nil && err != nil {
				t.Errorf("%d are left, want %d; %v, want %v", len(left), c.left, err, c.cause)
			}
			for _, n := range left {
				if _, there := server.files[n]; !there {
					t.Errorf("%s is reported as left", n)
				}
			}
		})
	}
}
