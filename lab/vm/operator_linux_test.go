//go:build vmlab

package vm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
	"thru/lab"
)

// commandLimit bounds a command of thru, far above the usual time.
const commandLimit = 4 * time.Minute

// theImage is built once for all tests; TestMain removes it.
var theImage struct {
	*Image
	folder string
}

// TestMain builds the image that all VMs boot.
func TestMain(m *testing.M) {
	os.Setenv(lab.RequireVariable, "1") // missing requirements fail instead of skipping
	code := 1
	if err := prepare(); err != nil {
		fmt.Println(err)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(theImage.folder)
	os.Exit(code)
}

// prepare fetches the kernel, where that was not done before, and builds the image.
func prepare() error {
	program := os.Getenv("THRU_BINARY")
	if program == "" {
		return errors.New("vm: THRU_BINARY names no program (make vmlab does)")
	}
	begin := time.Now()
	kernel, err := theKernel(context.Background())
	if err != nil {
		return err
	}
	if theImage.folder, err = os.MkdirTemp("", "thru-vm-image-"); err != nil {
		return err
	}
	theImage.Image, err = Build(context.Background(), kernel, program, theImage.folder)
	fmt.Printf("image of %s in %.1f s\n", kernel.Name, time.Since(begin).Seconds())
	return err
}

// theKernel returns the kernel in the user's cache, and fetches it there if need be.
func theKernel(ctx context.Context) (Kernel, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return Kernel{}, err
	}
	return FetchKernel(ctx, filepath.Join(cache, "thru-vmlab"))
}

// operator is a user who runs thru at a host of a site.
type operator struct {
	t    *testing.T
	host *lab.Host
	home string
	site *Site
}

// newOperator is an operator at the peer of a new site.
func newOperator(t *testing.T) *operator {
	s := NewSite(t, theImage.Image)
	return &operator{t: t, host: s.Peer, home: t.TempDir(), site: s}
}

// boot starts VMs, waits until all serve, and joins each by its name.
func (o *operator) boot(specs ...Spec) []*VM {
	o.t.Helper()
	begin := time.Now()
	var all []*VM
	var models []string
	for _, spec := range specs {
		models = append(models, spec.NIC)
		v, err := o.site.Start(context.Background(), spec)
		if err != nil {
			o.t.Fatal(err)
		}
		o.t.Cleanup(func() { o.close(v) })
		all = append(all, v)
	}
	for _, v := range all {
		if err := v.Ready(context.Background()); err != nil {
			o.t.Fatal(err)
		}
		joins, err := v.Joins(context.Background())
		if err != nil {
			o.t.Fatal(err)
		}
		if out, code := o.thru(joins.More["tune"], "join", "--replace", v.Name); code != 0 {
			o.t.Fatalf("thru join ended with exit %d: %s", code, out)
		}
	}
	say("  (ready after %.0f s: %s)", time.Since(begin).Seconds(), strings.Join(models, ", "))
	return all
}

// serve starts an end point at a host and joins it by a name, with the rights that it allows. `ip netns exec`
// hides control groups, so it mounts them again, of either version.
func (o *operator) serve(h *lab.Host, name, allow string) {
	o.t.Helper()
	const groups = `mount -t tmpfs none /sys/fs/cgroup && mkdir /sys/fs/cgroup/cpu && mount -t cgroup -o cpu none /sys/fs/cgroup/cpu ||
		{ umount /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; }; exec "$0" "$@"`
	said := filepath.Join(o.t.TempDir(), "said")
	out, err := os.Create(said)
	if err != nil {
		o.t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := h.Command(ctx, "sh", "-c", groups, os.Getenv("THRU_BINARY"), "serve", "--json", "--allow", allow)
	cmd.Env = append(os.Environ(), "HOME="+o.t.TempDir(), "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "XDG_DATA_HOME=", "XDG_CACHE_HOME=")
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { cancel(); _ = cmd.Wait() }) // killed: its error says so
	var joins Joins
	lab.Eventually(o.t, 15*time.Second, "thru serve at "+h.Name+" is ready", func() bool {
		text, err := os.ReadFile(said)
		line, _, whole := bytes.Cut(text, []byte("\n"))
		return err == nil && whole && json.Unmarshal(line, &joins) == nil && joins.Join != ""
	})
	if out, code := o.thru(joins.More[allow], "join", "--replace", name); code != 0 {
		o.t.Fatalf("thru join ended with exit %d: %s", code, out)
	}
}

// close ends a VM before the test does.
func (o *operator) close(v *VM) {
	o.t.Helper()
	if err := v.Close(); err != nil {
		o.t.Error(err)
	}
}

// run runs a line in a guest.
func (o *operator) run(v *VM, line string) string {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	out, err := v.Run(ctx, line)
	if err != nil {
		o.t.Fatal(err)
	}
	return out
}

// thru runs the program and returns its output and exit code.
func (o *operator) thru(stdin string, args ...string) (string, int) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	cmd := o.host.Command(ctx, os.Getenv("THRU_BINARY"), args...)
	cmd.Env = append(os.Environ(), "HOME="+o.home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "XDG_DATA_HOME=", "XDG_CACHE_HOME=")
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		o.t.Fatalf("thru %s: %v", strings.Join(args, " "), err)
	}
	if stdout.Len() == 0 {
		return stderr.String(), cmd.ProcessState.ExitCode()
	}
	return stdout.String(), cmd.ProcessState.ExitCode()
}

// measure returns the document of a command that must succeed.
func (o *operator) measure(args ...string) *measure.Document {
	o.t.Helper()
	d, code := o.document(args...)
	if code != 0 {
		o.t.Fatalf("thru %s: exit %d: %+v", strings.Join(args, " "), code, d.Error)
	}
	return d
}

// document runs a command of thru and returns its document and exit code. VMLAB_KEEP names a folder to keep
// documents in.
func (o *operator) document(args ...string) (*measure.Document, int) {
	o.t.Helper()
	out, code := o.thru("", append(slices.Clone(args), "--json")...)
	var d measure.Document
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		o.t.Fatalf("thru %s: exit %d, no document: %v: %.1000s", strings.Join(args, " "), code, err, out)
	}
	if folder := os.Getenv("VMLAB_KEEP"); folder != "" {
		name := fmt.Sprintf("%s-%s-%d.json", strings.ReplaceAll(o.t.Name(), "/", "-"), args[0], time.Now().Unix())
		if err := os.WriteFile(filepath.Join(folder, name), []byte(out), 0o644); err != nil {
			o.t.Error(err)
		}
	}
	return &d, code
}

// say prints a line at once.
func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// base is the cell of the requested traffic, sent by an end point.
func base(t *testing.T, d *measure.Document, from string) *measure.Cell {
	t.Helper()
	for i := range d.Cells {
		c := &d.Cells[i]
		if c.From == from && !c.Baseline && (c.Experiment == "" || c.Experiment == diagnose.Base) {
			if c.Goodput == nil {
				t.Fatalf("no goodput from %s: %+v", from, c.Error)
			}
			return c
		}
	}
	t.Fatalf("no cell from %s", from)
	return nil
}
