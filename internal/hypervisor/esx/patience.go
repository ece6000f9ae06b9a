package esx

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"thru/internal/host/platform"
)

// Limits for commands that hang, as all of a kind do when their service
// (hostd) hangs: the time of each, and how many of a kind may hang.
const (
	patience = 20 * time.Second
	mostHung = 2
)

// patient runs the commands of one inventory. Once some of a kind have hung,
// the others of the kind fail at once.
type patient struct {
	platform.Runner
	mu   sync.Mutex
	hung map[string]int
}

func patiently(run platform.Runner) *patient { return &patient{Runner: run, hung: map[string]int{}} }

// answerer returns the service that answers a command.
func answerer(command string) string {
	if command == "esxcli" || command == "vim-cmd" {
		return "hostd"
	}
	return command
}

// Run runs a command.
func (p *patient) Run(ctx context.Context, name string, args ...string) ([]byte, error) {
	kind := answerer(name)
	p.mu.Lock()
	n := p.hung[kind]
	p.mu.Unlock()
	if n >= mostHung {
		return nil, fmt.Errorf("not run: %d other commands gave no answer within %v; %s seems to hang", n, patience, kind)
	}
	own, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := p.Runner.Run(own, name, args...)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		p.mu.Lock()
		p.hung[kind]++
		p.mu.Unlock()
	}
	return out, err
}
