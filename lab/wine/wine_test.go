//go:build wine

// Package wine runs thru's Windows program under wine, on loopback, with thru and iperf3 of Linux at the other end.
// It shows that the program works with Windows' interfaces as wine has them, not how fast Windows is.
package wine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"thru/internal/measure"
)

// commandLimit ends a command that hangs, far above the usual time.
const commandLimit = 2 * time.Minute

// host is a Windows of wine, with the program.
type host struct {
	folder string
	env    []string
	exe    string
}

// theHost is made once for all tests; TestMain removes it.
var theHost host

func TestMain(m *testing.M) {
	code := 1
	if err := theHost.prepare(); err != nil {
		fmt.Println(err)
	} else {
		code = m.Run()
	}
	theHost.remove()
	os.Exit(code)
}

// prepare makes a new Windows. Wine before 9 lacks the function that Go takes random numbers from (ProcessPrng, in
// bcryptprimitives.dll). A library without code then names the older one of the same bytes and arguments instead.
func (h *host) prepare() (err error) {
	if h.exe = os.Getenv("THRU_EXE"); h.exe == "" {
		return errors.New("wine: THRU_EXE names no program (make wine does)")
	}
	begin := time.Now()
	if h.folder, err = os.MkdirTemp("", "thru-wine-"); err != nil {
		return err
	}
	h.env = append(os.Environ(), "WINEPREFIX="+filepath.Join(h.folder, "prefix"), "WINEDEBUG=-all", "WINEDLLOVERRIDES=mscoree,mshtml,winemenubuilder.exe=")
	if out, err := h.command(context.Background(), "wineboot", "--init").CombinedOutput(); err != nil {
		return fmt.Errorf("wine: making a Windows: %w\n%s", err, out)
	}
	library := filepath.Join(h.folder, "prefix/drive_c/windows/system32/bcryptprimitives.dll")
	if _, err := os.Stat(library); err == nil {
		fmt.Printf("wine in %.0f s\n", time.Since(begin).Seconds())
		return nil
	}
	exports := filepath.Join(h.folder, "exports.def")
	if err := os.WriteFile(exports, []byte("LIBRARY bcryptprimitives.dll\nEXPORTS\n  ProcessPrng = advapi32.SystemFunction036\n"), 0o600); err != nil {
		return err
	}
	if out, err := exec.Command("ld", "-m", "i386pep", "-shared", "-e", "0", "-o", library, exports).CombinedOutput(); err != nil {
		return fmt.Errorf("wine: making bcryptprimitives.dll: %w\n%s", err, out)
	}
	fmt.Printf("wine in %.0f s, with ProcessPrng, which it lacks\n", time.Since(begin).Seconds())
	return nil
}

func (h *host) remove() {
	if h.folder == "" {
		return
	}
	_ = h.command(context.Background(), "wineserver", "--kill").Run() // of this folder alone; it may have ended
	_ = os.RemoveAll(h.folder)
}

func (h *host) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = h.env
	return cmd
}

// outcome is what a command has printed, and its exit code.
type outcome struct {
	out, err string
	code     int
}

// finish runs a command to its end.
func finish(t *testing.T, cmd *exec.Cmd) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	begin := time.Now()
	err := cmd.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		t.Fatal(err)
	}
	t.Logf("%.1f s, exit %d: %s", time.Since(begin).Seconds(), cmd.ProcessState.ExitCode(), strings.Join(cmd.Args, " "))
	return outcome{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// thru runs the Windows program.
func thru(t *testing.T, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
	defer cancel()
	return finish(t, theHost.command(ctx, "wine", append([]string{theHost.exe}, args...)...))
}

// linux runs a program of this machine; thru has a home of its own.
func linux(t *testing.T, name string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "XDG_DATA_HOME=")
	return finish(t, cmd)
}

// document reads a result that follows the schema.
func (o outcome) document(t *testing.T) (d measure.Document) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(o.out))
	if err != nil {
		t.Fatalf("exit %d, no document: %v\n%s\n%s", o.code, err, o.out, o.err)
	}
	s, err := jsonschema.NewCompiler().Compile("../../docs/result.schema.json")
	if err == nil {
		err = s.Validate(v)
	}
	if err == nil {
		err = json.Unmarshal([]byte(o.out), &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// measured fails unless there are n cells or more, and each has a rate.
func (o outcome) measured(t *testing.T, n int) {
	t.Helper()
	d := o.document(t)
	if o.code != 0 || d.Error != nil || len(d.Cells) < n {
		t.Fatalf("exit %d, error %v, %d cells\n%s", o.code, d.Error, len(d.Cells), o.err)
	}
	for _, c := range d.Cells {
		switch {
		case c.Goodput != nil && c.Goodput.Value > 0:
			t.Logf("%s -> %s, %d streams: %.0f Mb/s", c.From, c.To, c.Streams, c.Goodput.Value/1e6)
		case c.Transactions != nil && c.Transactions.Value > 0:
			t.Logf("%s -> %s: %.0f transactions/s", c.From, c.To, c.Transactions.Value)
		default:
			t.Errorf("%s -> %s, %d streams: nothing measured", c.From, c.To, c.Streams)
		}
	}
}

// freePort returns a TCP port that nobody uses, of both systems.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// background starts a command, and returns when it has printed a line with that text; the end of the test ends it.
func background(t *testing.T, cmd *exec.Cmd, ready string) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, is := bufio.NewScanner(out), make(chan bool, 1)
	go func() {
		for lines.Scan() {
			if strings.Contains(lines.Text(), ready) {
				is <- true
			}
		}
		close(is)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		for range is {
		}
		_ = cmd.Wait() // killed
	})
	select {
	case ok := <-is:
		if !ok {
			t.Fatalf("%s has ended", cmd)
		}
	case <-time.After(commandLimit):
		t.Fatalf("%s is not ready", cmd)
	}
}

// serve starts thru serve on Windows, and returns its address.
func serve(t *testing.T, more ...string) string {
	t.Helper()
	port := freePort(t)
	args := append([]string{theHost.exe, "serve", "--no-auth", "--json", "--bind", "127.0.0.1", "--port", port}, more...)
	background(t, theHost.command(context.Background(), "wine", args...), port)
	return "127.0.0.1:" + port
}

func TestVersion(t *testing.T) {
	var v struct {
		System string `json:"system"`
	}
	if o := thru(t, "version", "--json"); o.code != 0 || json.Unmarshal([]byte(o.out), &v) != nil || v.System != "windows/amd64" {
		t.Errorf("exit %d: %s%s", o.code, o.out, o.err)
	}
}

// TestCheck: the facts of Windows' commands that wine lacks are not checked, and the document says so.
func TestCheck(t *testing.T) {
	d := thru(t, "check", "--json").document(t)
	if f := d.EndPoints[0].Facts; f == nil || f.OS == nil || *f.OS != "windows" || len(f.NotChecked) == 0 {
		t.Errorf("facts: %+v", f)
	}
}

// TestPairs measures Windows with itself, and with Linux from both sides.
func TestPairs(t *testing.T) {
	at, short := serve(t, "--iperf3-port", "0", "--iperf2-port", "0"), []string{"--json", "-t", "1"}
	for _, c := range []struct {
		name  string
		args  []string
		cells int
	}{
		{"tcp", []string{"test", at}, 2},
		{"streams", []string{"test", at, "-P", "4"}, 2},
		{"requests", []string{"test", at, "--one-way", "--rr"}, 1},
		{"ladder", []string{"ladder", at}, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			thru(t, append(c.args, short...)...).measured(t, c.cells)
			linux(t, os.Getenv("THRU_BINARY"), append(c.args, short...)...).measured(t, c.cells)
		})
	}
	for tries := 3; ; tries-- { // its own agent does not answer in time on a very busy machine
		d := thru(t, "check", at, "--json").document(t)
		if d.Error == nil && len(d.EndPoints) == 2 {
			return
		}
		if tries == 1 {
			t.Fatalf("check: error %v, %d end points", d.Error, len(d.EndPoints))
		}
	}
}

// TestStored: results are kept below %AppData%, listed, and reported.
func TestStored(t *testing.T) {
	thru(t, "test", "-t", "1", "--json").measured(t, 1)
	if o := thru(t, "history"); o.code != 0 || !strings.Contains(o.out, "test") {
		t.Errorf("exit %d: %s%s", o.code, o.out, o.err)
	}
	if o := thru(t, "report", "last"); o.code != 0 || !strings.Contains(o.out, "b/s") {
		t.Errorf("exit %d: %s%s", o.code, o.out, o.err)
	}
}

// TestIPerf: wine does not let a connection of Go change its process, and thru says so at both ends. TestPackages has
// connections that may.
func TestIPerf(t *testing.T) {
	port := freePort(t)
	background(t, exec.Command("iperf3", "-s", "-p", port, "--forceflush"), "listening")
	if o := thru(t, "test", "iperf3://127.0.0.1:"+port, "-t", "1"); o.code != 1 || !strings.Contains(o.err, "wine") {
		t.Errorf("exit %d: %s", o.code, o.err)
	}
	port = freePort(t)
	at := serve(t, "--iperf3-port", port, "--iperf2-port", "0")
	if o := linux(t, "iperf3", "-c", "127.0.0.1", "-p", port, "-t", "1"); o.code != 1 {
		t.Errorf("iperf3 ends with %d: %s%s", o.code, o.out, o.err)
	}
	if d := linux(t, os.Getenv("THRU_BINARY"), "check", at, "--json").document(t); d.Error != nil {
		t.Errorf("thru serve no longer answers: %v", d.Error)
	}
}

// TestRefused: what cannot be done ends with a reason and a hint, not with a crash.
func TestRefused(t *testing.T) {
	at := serve(t, "--iperf3-port", "0", "--iperf2-port", "0")
	_, used, _ := strings.Cut(at, ":")
	for _, c := range []struct{ args, want string }{
		{"test 127.0.0.1:" + freePort(t) + " -t 1", "thru serve"},
		{"serve --no-auth --bind 127.0.0.1 --port " + used, "another program"},
		{"test " + at + " -u -t 1", "wsaioctl"},          // SIO_UDP_NETRESET, which Go's UDP sockets need
		{"service install serve --yes", "sc.exe config"}, // which wine's lacks
		{"service status serve", "does not run"},
		{"disk .", "Linux"},
	} {
		if o := thru(t, strings.Fields(c.args)...); o.code != 1 || !strings.Contains(o.err, c.want) || strings.Contains(o.err, "goroutine") {
			t.Errorf("%s: exit %d\n%s%s", c.args, o.code, o.out, o.err)
		}
	}
	if o := thru(t, "service", "remove", "serve", "--yes"); o.code != 0 || !strings.Contains(o.out, "is removed") {
		t.Errorf("the half of a service: exit %d\n%s%s", o.code, o.out, o.err)
	}
}

// TestPackages runs the tests of the data plane as programs of Windows, except those of UDP, which Go does not have under wine.
func TestPackages(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	cmd := theHost.command(ctx, "go", "test", "-vet=off", "-count=1", "-exec", "wine", "-skip", "TestContract/.*/.*/udp|TestContract/udp", "./internal/sock", "./internal/engine/worker")
	cmd.Dir, cmd.Env = "../..", append(cmd.Env, "GOOS=windows", "CGO_ENABLED=0")
	if o := finish(t, cmd); o.code != 0 {
		t.Errorf("%s%s", o.out, o.err)
	}
}
