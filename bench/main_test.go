//go:build linux && bench

package bench

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"

	"thru/internal/engine/worker"
)

// TestMain measures instead of running tests. This program also provides the agents of a fleet, and their
// workers.
func TestMain(*testing.M) {
	if err := begin(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func begin(args []string) error {
	switch {
	case len(args) > 0 && args[0] == worker.Verb:
		return worker.Main(os.Stdin, os.Stdout)
	case len(args) > 0 && args[0] == agentsVerb:
		return serveAgents(args[1:])
	}
	runtime.LockOSThread() // children inherit this thread's CPUs, and end with it
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := parse(args)
	if err != nil {
		return err
	}
	return run(ctx, s)
}
