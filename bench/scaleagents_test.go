//go:build linux

package bench

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"thru/internal/agent"
	"thru/internal/bus"
	"thru/internal/engine"
	"thru/internal/engine/native"
	"thru/internal/engine/worker"
	"thru/internal/host"
)

// agentsVerb makes this program run a number of agents: FIRST COUNT, and a file with their join string, or with the URL
// of a NATS server whose keys are in the file's folder. Each is a complete agent with its own identity and connection; their workers are separate processes as usual.
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
	servers := strings.HasPrefix(string(text), "tls://")
	if err != nil && !servers {
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
			conf := bus.AttachConfig{Join: &join, Name: fmt.Sprintf("h%d", first+i)}
			if number := first + i; servers {
				dir := filepath.Dir(args[2])
				conf.Join, conf.NATS = nil, &bus.NATSConfig{URL: clusterURL(number % clusterServers), CA: filepath.Join(dir, "cert.pem"), Nkey: filepath.Join(dir, fmt.Sprintf("h%d.nk", number-1))}
			}
			if err := serveAgent(ctx, prog, here, conf); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		})
	}
	wg.Wait()
	return nil
}

// serveAgent runs one of them.
func serveAgent(ctx context.Context, prog *worker.Program, here *host.Host, conf bus.AttachConfig) error {
	var err error
	if conf.State, err = bus.NewState(); err != nil {
		return err
	}
	eng := native.Engine{Program: prog}
	data := []string{"127.0.0.1"}
	a := agent.New(agent.Config{
		Name: conf.Name, Version: "bench", Engines: engine.Table{eng.Name(): eng}, Host: here,
		Limits: agent.DefaultLimits(), DataAddrs: data, Listen: engine.Listen{Addrs: data},
	})
	defer a.Close()
	conf.Version, conf.DataAddrs, conf.CPUs, conf.Busy = "bench", data, 2, a.Busy
	post, err := bus.Attach(ctx, conf, a)
	if err != nil {
		return err
	}
	defer post.Close()
	a.Publisher(post.Publish)
	a.OnBusy(post.Announce)
	<-ctx.Done()
	return nil
}
