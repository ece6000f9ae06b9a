package cli

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"thru/internal/fault"
)

// TestMain makes the test binary the program: testscript and its workers run it under the name thru.
func TestMain(m *testing.M) {
	testscript.Main(waiting{m}, map[string]func(){
		"thru":  func() { os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
		"natsd": natsServer, "filesd": filesServer, "vcenterd": vcenterServer,
	})
}

// atOnce is how many scripts run at once, also where go test allows fewer: they mostly wait.
const atOnce = 8

// waiting runs tests that mostly wait.
type waiting struct{ *testing.M }

// Run raises -parallel, unless it is 1. THRU_BINARY names the program that scripts run in place of the test binary,
// which takes several times as long to start. It has no race detector.
func (m waiting) Run() int {
	if dir, name := filepath.Split(os.Getenv("THRU_BINARY")); name == "thru" && !raced() {
		os.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	}
	flag.Parse()
	const parallel = "test.parallel"
	if n, err := strconv.Atoi(flag.Lookup(parallel).Value.String()); err == nil && n > 1 {
		flag.Set(parallel, strconv.Itoa(max(n, atOnce)))
	}
	return m.M.Run()
}

// TestScripts runs the command line as a user does, one topic per file.
func TestScripts(t *testing.T) {
	t.Parallel()
	if signal.Ignored(syscall.SIGHUP) { // by nohup(1), and so by what is run here; a signal that is caught is not inherited so
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	free := &ports{}
	t.Cleanup(free.close)
	testscript.Run(t, testscript.Params{
		Files: scripts(t),
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("XDG_CONFIG_HOME", e.WorkDir+"/config")
			e.Setenv("XDG_STATE_HOME", e.WorkDir+"/state")
			e.Setenv("XDG_DATA_HOME", e.WorkDir+"/data")
			e.Setenv("THRU_STORE", "")
			e.Setenv("THRU_NO_STORE", "")
			e.Setenv("EXAMPLES", examples)
			e.Setenv("PATH", e.Getenv("PATH")+":"+daemons)
			e.Setenv("GORACE", os.Getenv("GORACE")) // for the programs as for the test
			return nil
		},
		Condition: condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"again": again, "scrape": scrape, "validjson": newSchemas().valid, "waitline": waitLine, "waitport": waitPort, "freeport": free.free, "expand": expand, "keptpath": keptPath, "keepline": keepLine, "capture": writeCapture, "waitfor": waitFor, "certificates": certificates, "recorded": recorded, "provider": provider,
		},
	})
}

// scripts returns the scripts. By and large, parallel tests begin with the last: here with those that take longest.
// With the race detector only those in which much happens at once: in the others programs start, do one thing and
// end, which takes several times as long with it and runs the same code.
func scripts(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	if raced() {
		files = nil
		for _, name := range []string{"capture", "fleet", "fleet_nats", "fleet_watch", "iperf3", "pair", "rollback", "run", "service", "transfer_thru", "tune"} {
			files = append(files, "testdata/script/"+name+".txtar")
		}
	}
	longest := []string{"tune", "transfer", "pair", "local", "iperf", "kinds", "ladder", "fleet", "examples", "run"}
	slices.SortStableFunc(files, func(a, b string) int {
		place := func(file string) int { return slices.Index(longest, strings.TrimSuffix(filepath.Base(file), ".txtar")) }
		return place(a) - place(b)
	})
	return files
}

// raced reports whether the race detector is on.
func raced() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// TestSignals checks that the first signal cancels a command, and that a second one does not wait for it.
func TestSignals(t *testing.T) {
	signals := make(chan os.Signal, 2)
	if got := untilTwice(signals, func(context.Context) int { return fault.Verdict }); got != fault.Verdict {
		t.Errorf("without a signal: exit code %d", got)
	}
	signals <- os.Interrupt
	got := untilTwice(signals, func(ctx context.Context) int {
		<-ctx.Done()
		return fault.Usage
	})
	if got != fault.Usage {
		t.Errorf("one signal: exit code %d", got)
	}
	never := make(chan struct{})
	defer close(never)
	signals <- os.Interrupt
	signals <- os.Interrupt
	got = untilTwice(signals, func(context.Context) int {
		<-never
		return fault.OK
	})
	if got != fault.Failed {
		t.Errorf("two signals: exit code %d", got)
	}
}
