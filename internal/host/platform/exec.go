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

// Local returns a runner for this machine: without a shell, and in the
// language C, so that outputs are not translated.
func Local() Runner { return local{} }

// Run also finds programs in administrators' folders that a user's PATH
// lacks.
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
	return output(ctx, func(ctx context.Context) *exec.Cmd {
		cmd := exec.CommandContext(ctx, file, args...)
		cmd.Env = append(os.Environ(), "LC_ALL=C")
		return cmd
	})
}

// output runs a command within the limits of a Runner and kills one that
// exceeds them.
func output(ctx context.Context, start func(context.Context) *exec.Cmd) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	cmd := start(ctx)
	cmd.WaitDelay = time.Second // a grandchild may keep the pipes open
	out, said := &bounded{most: commandSize, full: cancel}, &bounded{most: 4 << 10}
	cmd.Stdout, cmd.Stderr = out, said
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return out.kept.Bytes(), nil
	case out.over:
		return nil, fmt.Errorf("platform: running %s: more than %d bytes", filepath.Base(cmd.Path), commandSize)
	case ctx.Err() != nil:
		return out.kept.Bytes(), fmt.Errorf("platform: running %s: %w", filepath.Base(cmd.Path), ctx.Err())
	case errors.As(err, &exit) && exit.Exited():
		return out.kept.Bytes(), fmt.Errorf("platform: %w", // for ssh this is the exit of the remote command
			&Exit{Code: exit.ExitCode(), Stderr: strings.TrimSpace(said.kept.String())})
	}
	return out.kept.Bytes(), fmt.Errorf("platform: running %s: %w", filepath.Base(cmd.Path), err)
}

// bounded keeps a limited number of the written bytes and discards the rest;
// the first excess byte calls full where it is set. It does not embed the
// buffer, whose ReadFrom would bypass the limit.
type bounded struct {
	kept bytes.Buffer
	most int
	full func()
	over bool
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	room := b.most - b.kept.Len()
	b.kept.Write(p[:min(len(p), room)])
	if len(p) > room && b.full != nil {
		b.over = true
		b.full()
	}
	return len(p), nil
}
