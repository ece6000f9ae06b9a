package vm

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Files in a VM's folder, and the guest's file with the output of thru serve.
const (
	consoleFile   = "console"
	shellSocket   = "shell"
	monitorSocket = "monitor"
	serveFile     = "/run/serve.json"
)

// shellMark begins the line after the output of a command; the exit code follows.
const shellMark = "vm: exit "

// shell is the guest's shell, at a port that QEMU offers as a socket. It runs one line at a time.
type shell struct {
	conn net.Conn
	in   *bufio.Reader
}

// dialShell connects to the shell by QEMU's socket.
func dialShell(ctx context.Context, path string) (*shell, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("vm: connecting to the shell: %w", err)
	}
	return &shell{conn: conn, in: bufio.NewReader(conn)}, nil
}

func (s *shell) close() { _ = s.conn.Close() }

// run runs a line and returns its output and exit code.
func (s *shell) run(ctx context.Context, line string) (string, int, error) {
	defer context.AfterFunc(ctx, func() { _ = s.conn.SetDeadline(time.Unix(1, 0)) })()
	// The command must not read the next line, so its input is empty. Its output may lack a last newline.
	if _, err := fmt.Fprintf(s.conn, "{ %s\n} </dev/null; code=$?; echo; echo '%s'$code\n", line, shellMark); err != nil {
		return "", 0, err
	}
	var out strings.Builder
	for {
		text, err := s.in.ReadString('\n')
		if err != nil {
			return out.String() + text, 0, err
		}
		if code, found := strings.CutPrefix(text, shellMark); found {
			n, err := strconv.Atoi(strings.TrimSpace(code))
			return strings.TrimSuffix(out.String(), "\n"), n, err
		}
		out.WriteString(text)
	}
}

// monitor makes QEMU run a command of its machine protocol (QMP, docs/interop/qmp-spec.txt).
func monitor(ctx context.Context, path, command string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return fmt.Errorf("vm: connecting to the monitor: %w", err)
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	in := json.NewDecoder(conn)
	if err := in.Decode(&struct{}{}); err != nil { // QEMU's greeting
		return fmt.Errorf("vm: greeting of the monitor: %w", err)
	}
	for _, word := range []string{"qmp_capabilities", command} { // the first ends the negotiation
		if err := json.NewEncoder(conn).Encode(map[string]string{"execute": word}); err != nil {
			return fmt.Errorf("vm: asking the monitor for %s: %w", word, err)
		}
		var reply struct {
			Error *struct{ Desc string } `json:"error"`
		}
		if err := in.Decode(&reply); err != nil {
			return fmt.Errorf("vm: reply of the monitor to %s: %w", word, err)
		}
		if reply.Error != nil {
			return fmt.Errorf("vm: the monitor refuses %s: %s", word, reply.Error.Desc)
		}
	}
	return nil
}
