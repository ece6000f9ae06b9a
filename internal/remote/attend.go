package remote

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"thru/internal/agent"
	"thru/internal/bus"
	"thru/internal/engine"
	"thru/internal/engine/worker"
	"thru/internal/fault"
	"thru/internal/node"
)

// AttendVerb is the hidden command that `ssh://` end points start at the far end.
const AttendVerb = "attend"

// The default data ports of an agent.
const firstDataPort, lastDataPort = 5202, 5233

// Attend runs an agent for the one client at the other end of stdin and stdout: it
// has no control port and no secret, leaves no file except, as root, the journal of
// changed settings, and ends with stdin and stdout. Its arguments are the folder of
// its program, which it removes, and the mark of the line after which the client
// expects the control plane.
func Attend(ctx context.Context, version string, args []string, in io.Reader, out io.Writer) error {
	if len(args) != 2 {
		return fault.Usagef("use the end point ssh://HOST, which starts it", "thru attend is not for manual use")
	}
	prog, err := worker.Self()
	if err != nil {
		return err
	}
	defer prog.Close()
	if prog.ProgramHeld() {
		removeOwn(args[0])
	}
	tuner, _ := node.OwnTuner(version, prog) // without a state folder it measures, but cannot tune
	server, err := bus.Memory()
	if err != nil {
		return err
	}
	defer server.Close()
	a := node.NewAgent(version, node.Hostname(), node.Answering{}.Engines(prog), agent.DefaultLimits(), reachedAt(os.Getenv("SSH_CONNECTION")),
		engine.Listen{First: firstDataPort, Last: lastDataPort}, node.TunedBy(tuner))
	service, err := bus.Serve(server, a)
	if err != nil {
		return err
	}
	a.Publisher(service.Publish)
	if _, err := fmt.Fprintf(out, "%s ready\n", args[1]); err != nil {
		return fmt.Errorf("remote: answering over ssh: %w", err)
	}
	conn := overPipes(in, unclosed{out})
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	server.Carry(conn)
	service.Close()
	a.Close()
	return nil
}

// unclosed is stdout, which ends with the process.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// removeOwn removes only the folder that was made for this program.
func removeOwn(dir string) {
	exe, err := os.Executable()
	if err == nil && filepath.Dir(exe) == dir && strings.HasPrefix(filepath.Base(dir), "thru-") {
		os.RemoveAll(dir) // the shell that started this process removes what is left
	}
}

// reachedAt returns the address at which ssh has reached this host, for data: the
// third word of SSH_CONNECTION (ssh(1)). None where others cannot use it.
func reachedAt(connection string) []string {
	w := strings.Fields(connection)
	if len(w) != 4 {
		return nil
	}
	a, err := netip.ParseAddr(w[2])
	if err != nil || a.Zone() != "" {
		return nil
	}
	return []string{a.Unmap().String()}
}
