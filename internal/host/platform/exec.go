package platform

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// local runs programs of this machine.
type local struct{}

// Local returns the runner of this machine: without a shell, and in the
// language C, so that outputs are not translated.
func Local() Runner { return local{} }

// Run finds the program also where it lies beside an ordinary user's PATH.
func (local) Run(ctx context.Context, name string, args ...string) ([]byte, error) {
	file, err := exec.LookPath(name)
	for _, dir := range []string{"/usr/sbin", "/sbin", "/usr/libexec/ApplicationFirewall"} {
		if err != nil {
			file, err = exec.LookPath(filepath.Join(dir, name))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("platform: looking for %s: %w", name, exec.ErrNotFound)
	}
	cmd := exec.CommandContext(ctx, file, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	return output(ctx, cmd)
}

// output runs a command within the bounds of a Runner.
func output(ctx context.Context, cmd *exec.Cmd) ([]byte, error) {
	cmd.WaitDelay = time.Second // for a grandchild that keeps the pipes open
	out, said := &bounded{most: commandSize}, &bounded{most: 4 << 10, rest: true}
	cmd.Stdout, cmd.Stderr = out, said
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return out.Bytes(), nil
	case out.over:
		return nil, fmt.Errorf("platform: running %s: more than %d bytes", filepath.Base(cmd.Path), commandSize)
	case ctx.Err() != nil:
		return out.Bytes(), fmt.Errorf("platform: running %s: %w", filepath.Base(cmd.Path), ctx.Err())
	case errors.As(err, &exit) && exit.Exited():
		return out.Bytes(), fmt.Errorf("platform: running %s: %w", filepath.Base(cmd.Path),
			&Exit{Code: exit.ExitCode(), Stderr: strings.TrimSpace(said.String())})
	}
	return out.Bytes(), fmt.Errorf("platform: running %s: %w", filepath.Base(cmd.Path), err)
}

// bounded is a buffer that takes so many bytes: the rest is an error, which
// ends the program that writes, or goes nowhere.
type bounded struct {
	bytes.Buffer
	most       int
	rest, over bool
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	room := min(len(p), b.most-b.Len())
	b.Buffer.Write(p[:room])
	if room == len(p) || b.rest {
		return len(p), nil
	}
	b.over = true
	return room, errors.New("too much output")
}
