package node

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"thru/internal/agent"
	"thru/internal/bus"
	"thru/internal/engine/worker"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/tune"
)

// TuneFolder holds the journals of changed settings, in the state folder.
const TuneFolder = "tune"

// GuardVerb is the hidden command that reverts a tuning whose process has died.
// Its argument is the folder of the journals.
const GuardVerb = "tune-guard"

// guardEnd is the time limit for a guard to end after it was dismissed.
const guardEnd = 2 * time.Second

// OpenTuner opens the tuner of this host's settings. Its journals are in the state
// folder; only lists the allowed knobs, empty for all.
func OpenTuner(version string, prog *worker.Program, state string, only []string) (*tune.Tuner, error) {
	return tune.Open(filepath.Join(state, TuneFolder), tune.New(), tune.Config{
		Version: version, Only: only,
		Guard: func(dir string) (func(bool), error) { return startGuard(prog, dir) },
	})
}

// OwnTuner opens the tuner with the user's state folder. Without one nothing can be
// changed, but all else works: the tuner is nil, and the error says why.
func OwnTuner(version string, prog *worker.Program) (*tune.Tuner, error) {
	state, err := bus.DefaultState()
	if err != nil {
		return nil, err
	}
	return OpenTuner(version, prog, state, nil)
}

// TunedBy sets the tuner of an agent, if there is one.
func TunedBy(d *tune.Tuner) func(*agent.Config) {
	return func(c *agent.Config) {
		if d != nil {
			c.Tuner = d
		}
	}
}

// startGuard starts the process that reverts a tuning if this one dies. It has its
// own session, so that a signal to this one's session does not end it.
func startGuard(prog *worker.Program, dir string) (stop func(orderly bool), err error) {
	cmd := prog.Command(GuardVerb, dir)
	cmd.SysProcAttr = newSession()
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("node: starting the guard of a tuning: %w", err)
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	return func(orderly bool) {
		if !orderly { // it reverts the changes, also after this process has ended
			in.Close()
			return
		}
		tune.Dismiss(in) // fails only where the guard has ended
		in.Close()
		select {
		case <-ended:
		case <-time.After(guardEnd):
			cmd.Process.Kill()
			<-ended
		}
	}, nil
}

// GuardTuning is the hidden command: it waits for the end of its input.
func GuardTuning(args []string, in io.Reader, errw io.Writer) int {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP) // it ends when its pipe does
	if len(args) != 1 {
		fmt.Fprintln(errw, "thru tune-guard is an internal command")
		return fault.Usage
	}
	d, err := tune.Open(args[0], tune.New(), tune.Config{})
	if err == nil {
		err = tune.Guard(context.Background(), d, in)
	}
	if err != nil {
		fmt.Fprintln(errw, err)
		return fault.Failed
	}
	return fault.OK
}

// Recovered reverts what a crash left of an earlier tuning, and returns lines about it.
func Recovered(d *tune.Tuner) (said []string) {
	changed, err := d.Recover()
	if err != nil {
		return []string{fault.WithHint(err)}
	}
	for _, c := range changed {
		s := "an earlier tuning was interrupted; " + changedLine(c)
		if c.Outcome == measure.Failed {
			s += " (thru tune --rollback tries again)"
		}
		said = append(said, s)
	}
	return said
}

// changedLine returns the result of a reverted change in a line.
func changedLine(c measure.Changed) string {
	name := strings.TrimSpace(c.Knob + " " + c.Interface)
	switch {
	case c.Outcome == measure.Settled && c.Error != "":
		return fmt.Sprintf("%s: %s", name, c.Error)
	case c.Outcome == measure.Undone:
		return fmt.Sprintf("%s is restored to %s", name, shortly(c.Before))
	case c.Outcome == measure.Settled:
		return fmt.Sprintf("%s was already restored to %s", name, shortly(c.Before))
	}
	return strings.TrimSpace(fmt.Sprintf("%s is not undone: %s", name, c.Error))
}

// shortly shortens a value to fit in a line.
func shortly(v string) string {
	const most = 60
	if len(v) > most {
		v = v[:most] + "..."
	}
	return v
}
