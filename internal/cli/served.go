package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"thru/internal/agent"
	"thru/internal/bus"
	"thru/internal/cli/console"
	"thru/internal/fault"
	"thru/internal/service"
)

// logFlags say how a command that serves prints its log.
type logFlags struct {
	Log      string `name:"log" enum:"text,json" default:"text" placeholder:"text|json" help:"Lines for people, or JSON lines: as --json, and errors too. journald gets the level of each line and no time, which it knows."`
	LogLevel string `name:"log-level" enum:"error,warning,info" default:"info" placeholder:"LEVEL" help:"Least important lines to print: error, warning or info."`
}

// begin prepares the log, and returns whether its lines are JSON.
func (f logFlags) begin(e *env, asJSON bool) bool {
	e.Log = console.Log{Most: map[string]console.Level{"error": console.Error, "warning": console.Warning, "info": console.Info}[f.LogLevel], JSON: f.Log == "json"}
	if out, ok := e.Out.(*os.File); ok {
		e.Log.Journal = service.Journal(out)
	}
	return asJSON || e.Log.JSON
}

// ready prints that the command is ready.
func (e *env) ready() {
	if e.Log.Journal {
		return // systemd says so
	}
	e.Say(console.Info, e.Out, "ready "+time.Now().Format("15:04:05"))
}

// showStatus shows a line in the status of the service.
func showStatus(text string) { _ = service.Notify("STATUS=" + fault.Printable(fault.Unsecret(text))) } // the log has it too

// passedSockets returns the sockets of the control port that systemd opened.
func passedSockets(e *env) ([]net.Listener, error) {
	passed, err := service.Listeners()
	if these := e.TypedOf("-p", "-B"); len(passed) > 0 && len(these) > 0 {
		e.Line("warning: systemd has opened the control port: " + fault.And(these) + " has no effect (change the socket: systemctl edit)")
	}
	return passed, err
}

// supervise talks to the service manager while the command serves; SIGHUP makes it read its settings again, and apply
// them by again. It returns a function that waits until the context ends.
func (e *env) supervise(ctx context.Context, status string, alive func(), again func(command) error) (wait func()) {
	events := &console.EventLog{On: e.Console, JSON: e.WantsJSON() || e.Log.JSON}
	was := e.line
	reload := func() {
		wrong := e.loadSettings(e.Args)
		now, err := parse(e, e.Args)
		if err == nil {
			err = cmp.Or(wrong, e.takeSettings(now))
		}
		if err == nil {
			err = again(now.Selected().Target.Addr().Interface().(command))
		}
		if err != nil {
			events.Warn("reloading failed, and nothing changes: " + fault.WithHint(err))
			return
		}
		text := "settings are read again"
		if rest := changed(was, now); len(rest) > 0 {
			text += "; a restart applies " + strings.Join(rest, " ")
		}
		events.Notify("reloaded", text, nil)
	}
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		service.Supervise(ctx, service.Supervised{Status: status, HangUp: e.hangUp, Alive: alive, Reload: reload})
	}()
	return func() { cancel(); <-over }
}

// reloadable are the flags whose values change while an agent serves, or a watch runs.
func reloadable() []string {
	return append(strings.Fields(watchOptions), "max-rate", "max-streams", "max-time", "max-sessions", "label", "budget", "tcp")
}

// changed returns the flags with other values than at the start, which a reload does not apply.
func changed(was, now *kong.Context) (names []string) {
	before := map[string]reflect.Value{}
	for _, f := range was.Flags() {
		before[f.Name] = f.Target
	}
	for _, f := range now.Flags() {
		old, known := before[f.Name]
		if known && !slices.Contains(reloadable(), f.Name) && !reflect.DeepEqual(old.Interface(), f.Target.Interface()) {
			names = append(names, "--"+f.Name)
		}
	}
	return names
}

// reload applies the settings that can change while sessions run.
func (c *serveCmd) reload(now *serveCmd, a *agent.Agent, server *bus.Server, place *member, state *bus.State, s *serving) error {
	limits, _, err := now.parse()
	if err != nil {
		return err
	}
	labels, err := now.labels()
	if err != nil {
		return err
	}
	if err := server.Reload(); err != nil {
		return err
	}
	a.Set(limits, labels)
	if place != nil {
		s.Labels = labels
		place.post.Relabel(labels)
	}
	*s = c.invited(*s, server)
	return keepJoin(state, *s)
}

// joinFile is the file in the state folder with what a running command announced.
const joinFile = "serving.json"

// keepJoin stores what the command announces, with its join strings, for --print-join.
func keepJoin(state *bus.State, announced any) error {
	b, err := json.Marshal(announced)
	if err != nil {
		return fmt.Errorf("cli: keeping the join strings: %w", err)
	}
	return bus.WritePrivate(filepath.Join(state.Dir(), joinFile), append(b, '\n'), true)
}

func forgetJoin(state *bus.State) { _ = os.Remove(filepath.Join(state.Dir(), joinFile)) } // a stale file does no harm

// printJoin prints the join string of the command that serves on this host.
func printJoin(ctx context.Context, e *env, named, role, privilege string, asJSON bool) error {
	_, j, all, err := joinHere(ctx, e, named, role, privilege)
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(e.Out).Encode(map[string]any{"join_strings": all})
	}
	_, err = fmt.Fprintln(e.Out, j.String())
	return err
}

// joinHere returns the state folder and the join strings of the command that serves on this host.
func joinHere(ctx context.Context, e *env, named, role, privilege string) (folder string, j bus.Join, all map[string]string, err error) {
	dirs, err := stateFolders(named, role)
	if err != nil {
		return "", j, nil, err
	}
	for _, dir := range dirs {
		b, rerr := os.ReadFile(filepath.Join(dir, joinFile))
		switch {
		case errors.Is(rerr, fs.ErrPermission):
			err = fault.Failf("run it as root", "cli: the state folder %s belongs to another user", dir)
			continue
		case rerr != nil:
			continue
		}
		var s struct {
			JoinString string            `json:"join_string"`
			More       map[string]string `json:"join_strings"`
		}
		if jerr := json.Unmarshal(b, &s); jerr != nil {
			return "", j, nil, fault.Failf("restart the service", "cli: reading %s: %w", filepath.Join(dir, joinFile), jerr)
		}
		if s.More == nil {
			s.More = map[string]string{}
		}
		if s.JoinString != "" {
			s.More[bus.PrivilegeMeasure] = s.JoinString
		}
		j, perr := bus.ParseJoin(s.More[privilege])
		if perr != nil {
			return "", j, nil, fault.Failf("connect through its controller; -p PORT opens a port here", "cli: the thru %s of %s has no join string: it opens no control port, or needs no authentication", role, dir)
		}
		if !answers(ctx, e, j) {
			continue // it was killed
		}
		return dir, j, s.More, nil
	}
	if err != nil {
		return "", bus.Join{}, nil, err
	}
	return "", bus.Join{}, nil, fault.Failf("start it (thru "+role+", or thru service status "+role+"), or name its folder: --state DIR", "cli: no thru %s runs on this host (looked in %s)", role, strings.Join(dirs, ", "))
}

// stateFolders returns the named folder, or those where a command of this user and a service keep their state.
func stateFolders(named, role string) ([]string, error) {
	within := ""
	if role == "control" {
		within = role
	}
	own, err := stateFolder(named, within)
	dirs := []string{own}
	if err != nil {
		dirs = nil
	}
	if named != "" {
		return dirs, err
	}
	if p, perr := (service.Unit{Role: role}).Plan(); perr == nil {
		return append(dirs, p.State), nil
	}
	return dirs, err
}

// answers reports whether the owner of a join string runs: whoever has its certificate.
func answers(ctx context.Context, e *env, j bus.Join) bool {
	client, err := bus.Dial(ctx, bus.DialConfig{Addrs: j.Control, Secret: j.Secret, Pin: j.Pin, Version: e.Version})
	if err == nil {
		client.Close()
	}
	return err == nil || errors.Is(err, bus.ErrSecret) // a controller has other logins
}
