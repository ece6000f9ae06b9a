package tune

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"thru/internal/measure"
)

// Environment variables that make the test program another process.
const (
	guardedDir = "THRU_TEST_GUARDED"
	guardDir   = "THRU_TEST_GUARD"
)

// shared is a machine whose values are files, so that processes share it.
type shared string

func (f shared) path(knob string) string { return filepath.Join(string(f), "values", knob) }

func (f shared) Knobs([]string) []measure.KnobState { return nil }

func (f shared) Read(knob, _ string) (string, error) {
	b, err := os.ReadFile(f.path(knob))
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrUnknown
	}
	return string(b), err
}

func (f shared) Set(knob, _, value string) error {
	return os.WriteFile(f.path(knob), []byte(value), 0o600)
}

func sharedConf(dir string) Config {
	c := conf()
	c.socket = "@thru-tune-test-" + filepath.Base(filepath.Dir(dir)) + filepath.Base(dir)
	return c
}

// startGuard starts the test program as the guard, as cli starts thru.
func startGuard(dir string) (func(bool), error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), guardDir+"="+filepath.Dir(dir), guardedDir+"=")
	cmd.Stdin = r
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r.Close()
	return func(orderly bool) {
		if orderly {
			Dismiss(w)
		}
		w.Close()
		cmd.Wait()
	}, nil
}

// beGuarded is the process that tunes, reports it, and waits to be killed.
func beGuarded(dir string) int {
	c := sharedConf(dir)
	c.Guard = startGuard
	d, err := Open(filepath.Join(dir, "tune"), shared(dir), c)
	if err == nil {
		err = d.Begin("a", "alice")
	}
	if err == nil {
		_, err = d.Alter("a", []measure.Setting{{Knob: "cc", Value: "cubic"}, {Knob: "mtu", Value: "9000"}})
	}
	fmt.Println("changed", err)
	said, _ := io.ReadAll(os.Stdin)
	if string(said) == "end" {
		err = errors.Join(err, d.End("a"))
	}
	if err != nil {
		return 1
	}
	return 0
}

// beGuard is the guard's process.
func beGuard(dir string) int {
	d, err := Open(filepath.Join(dir, "tune"), shared(dir), sharedConf(dir))
	if err == nil {
		err = Guard(context.Background(), d, os.Stdin)
	}
	if err != nil {
		return 1
	}
	return 0
}

// TestGuard: where the tuning process is killed, its guard undoes the
// changes; where it ends, the kept changes stay.
func TestGuard(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux: nothing is tuned elsewhere")
	}
	for _, how := range []string{"end", "kill"} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "values"), 0o700); err != nil {
				t.Fatal(err)
			}
			m := shared(dir)
			must(m.Set("cc", "", "bbr"))
			must(m.Set("mtu", "", "1500"))
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), guardedDir+"="+dir)
			in, err := cmd.StdinPipe()
			must(err)
			out, err := cmd.StdoutPipe()
			must(err)
			must(cmd.Start())
			said := make([]byte, 64)
			n, _ := out.Read(said)
			if !bytes.HasPrefix(said[:n], []byte("changed <nil>")) {
				t.Fatalf("%q", said[:n])
			}
			if how == "end" {
				io.WriteString(in, "end")
				in.Close()
				if err := cmd.Wait(); err != nil {
					t.Error(err)
				}
			} else {
				cmd.Process.Kill()
				cmd.Wait()
				in.Close()
			}
			d, err := Open(filepath.Join(dir, "tune"), m, sharedConf(dir))
			must(err)
			want := map[string]int{"end": 2, "kill": 0}[how]
			until := time.Now().Add(20 * time.Second)
			for len(d.Open()) != want && time.Now().Before(until) {
				time.Sleep(10 * time.Millisecond)
			}
			cc, _ := m.Read("cc", "")
			if len(d.Open()) != want || (cc == "bbr") != (how == "kill") {
				t.Errorf("%d are open, and it is %s", len(d.Open()), cc)
			}
		})
	}
}
