//go:build linux

package bench

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"

	"thru/internal/agent"
	"thru/internal/bus"
	"thru/internal/engine"
	"thru/internal/engine/native"
	"thru/internal/engine/worker"
	"thru/internal/host"
)

// agentsVerb makes this program run a number of agents: FIRST COUNT, and their join string on stdin. Each is
// a complete agent with its own identity and connection; their workers are separate processes as usual.
const agentsVerb = "agents"

// serveAgents serves until SIGTERM.
func serveAgents(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(args) != 3 {
		return fmt.Errorf("bench: %s FIRST COUNT FILE, which holds the join string", agentsVerb)
	}
	first, err1 := strconv.Atoi(args[0])
	count, err2 := strconv.Atoi(args[1])
	text, err3 := os.ReadFile(args[2])
	if err1 != nil || err2 != nil || err3 != nil {
		return fmt.Errorf("bench: %q: %w", args, err3)
	}
	join, err := bus.ParseJoin(string(text))
	if err != nil {
		return err
	}
	prog, err := worker.Self()
	if err != nil {
		return err
	}
	defer prog.Close()
	here := host.New()
	var wg sync.WaitGroup
	for i := range count {
		wg.Go(func() {
			if err := serveAgent(ctx, prog, here, join, fmt.Sprintf("h%d", first+i)); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		})
	}
	wg.Wait()
	return nil
}

// serveAgent runs one of them.
func serveAgent(ctx context.Context, prog *worker.Program, here *host.Host, join bus.Join, name string) error {
	state, err := bus.NewState()
	if err != nil {
		return err
	}
	eng := native.Engine{Program: prog}
	data := []string{"127.0.0.1"}
	a := agent.New(agent.Config{
		Name: name, Version: "bench", Engines: engine.Table{eng.Name(): eng}, Host: here,
		Limits: agent.DefaultLimits(), DataAddrs: data, Listen: engine.Listen{Addrs: data},
	})
	defer a.Close()
	post, err := bus.Attach(ctx, bus.AttachConfig{
		Join: &join, State: state, Name: name, Version: "bench", DataAddrs: data, CPUs: 2, Busy: a.Busy,
	}, a)
	if err != nil {
		return err
	}
	defer post.Close()
	a.Publisher(post.Publish)
	a.OnBusy(post.Announce)
	<-ctx.Done()
	return nil
}
