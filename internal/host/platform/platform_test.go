package platform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"thru/internal/measure"
)

// sample is a host of testdata: outputs by the commands that print them. It
// is a Runner. A file "exit COMMAND" holds an exit code and the standard
// error on its first line, and the output below.
type sample struct {
	files  map[string]string
	change func(string) string // changes each output; nil: unchanged
}

// load reads a sample.
func load(t testing.TB, name string) sample {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	s := sample{files: map[string]string{}}
	for _, f := range a.Files {
		s.files[f.Name] = string(f.Data)
	}
	return s
}

// find returns the output of the command whose words begin the line.
func (s sample) find(line string) (string, bool) {
	for n := len(line); n > 0; n = strings.LastIndexByte(line[:n], ' ') {
		if out, ok := s.files[line[:n]]; ok {
			return out, true
		}
	}
	return "", false
}

func (s sample) Run(ctx context.Context, name string, args ...string) ([]byte, error) {
	line := strings.Join(append([]string{name}, args...), " ")
	if s.change == nil {
		s.change = func(out string) string { return out }
	}
	if said, ok := s.files["exit "+line]; ok {
		first, out, _ := strings.Cut(said, "\n")
		code, stderr, _ := strings.Cut(first, " ")
		n, err := strconv.Atoi(code)
		if err != nil {
			return nil, err
		}
		return []byte(s.change(out)), fmt.Errorf("running %s: %w", name, &Exit{Code: n, Stderr: stderr})
	}
	if out, ok := s.find(line); ok {
		return []byte(s.change(out)), ctx.Err()
	}
	return nil, fmt.Errorf("running %s: %w", name, exec.ErrNotFound)
}

// flat writes the facts as the lines of a "want" file.
func flat(t testing.TB, f measure.Facts) map[string]string {
	t.Helper()
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.UseNumber()
	var doc map[string]any
	if err := d.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	flatten(all, "", doc)
	return all
}

func flatten(all map[string]string, at string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, part := range v {
			flatten(all, strings.TrimPrefix(at+"."+key, "."), part)
		}
	case []any:
		for n, part := range v {
			key := strconv.Itoa(n)
			if m, ok := part.(map[string]any); ok && at == "interfaces" {
				key = fmt.Sprint(m["name"])
			}
			flatten(all, at+"."+key, part)
		}
	default:
		all[at] = fmt.Sprint(v)
	}
}

// samples are the hosts of testdata and their systems.
var samples = map[string]string{
	"esxi-6.7": "esxi", "esxi-7": "esxi", "esxi-8": "esxi", "freebsd-13": "freebsd", "freebsd-14": "freebsd",
	"macos-14": "darwin", "omnios": "illumos", "solaris-11.4": "solaris", "windows-2019": "windows", "windows-2022": "windows",
}

// TestSamples reads every sample and compares with its list of facts.
func TestSamples(t *testing.T) {
	for name, system := range samples {
		t.Run(name, func(t *testing.T) {
			s := load(t, name)
			if got, err := Detect(t.Context(), s); system != "windows" && (err != nil || got != system) {
				t.Fatalf("it is detected as %q, %v", got, err)
			}
			f, err := Read(t.Context(), system, s)
			if err != nil {
				t.Fatal(err)
			}
			have := flat(t, f)
			for line := range strings.Lines(s.files["want"]) {
				check(t, strings.TrimSpace(line), have, f)
			}
			threeValued(t, f)
			if len(f.Commands) < 5 {
				t.Errorf("commands: %q", f.Commands)
			}
		})
	}
}

// check judges one line of a "want" file.
func check(t *testing.T, line string, have map[string]string, f measure.Facts) {
	t.Helper()
	if fact, ok := strings.CutPrefix(line, "! "); ok {
		fact, reason, _ := strings.Cut(fact, ": ")
		for _, n := range f.NotChecked {
			if n.Fact == fact {
				if !strings.Contains(n.Why, reason) {
					t.Errorf("%s is not checked for the reason %q, not %q", fact, n.Why, reason)
				}
				return
			}
		}
		t.Errorf("%s is not in not_checked; its value is %q", fact, have[fact])
		return
	}
	key, value, _ := strings.Cut(line, " = ")
	if got, ok := have[key]; !ok || got != value {
		t.Errorf("%s is %q, want %q", key, got, value)
	}
}

// threeValued checks that each fact is either known or in not_checked, with a
// reason, never both or twice.
func threeValued(t testing.TB, f measure.Facts) {
	t.Helper()
	has, seen := document(f), map[string]bool{}
	for _, n := range f.NotChecked {
		if n.Why == "" || seen[n.Fact] {
			t.Errorf("not_checked %q: %q, seen before: %v", n.Fact, n.Why, seen[n.Fact])
		}
		seen[n.Fact] = true
		if has.holds(n.Fact) {
			t.Errorf("%s is told and not checked", n.Fact)
		}
	}
	host, port := wanted()
	for _, key := range host {
		if !has.holds(key) && !seen[key] && key != "hypervises" {
			t.Errorf("%s is neither told nor in not_checked", key)
		}
	}
	for _, i := range f.Interfaces {
		for _, key := range port {
			fact := portFact(i.Name, key)
			if i.Kind != nil && *i.Kind == physical && !has.port(i.Name).holds(key) && !seen[fact] && key != "addresses" && key != "error_counters" {
				t.Errorf("%s is neither told nor in not_checked", fact)
			}
			if has.port(i.Name).holds(key) && seen[fact] {
				t.Errorf("%s is told and not checked", fact)
			}
		}
	}
}

// TestNothingWorks: a host on which every command fails has no facts but its
// system; all others are in not_checked, and there is an error.
func TestNothingWorks(t *testing.T) {
	for name := range systems() {
		f, err := Read(t.Context(), name, sample{})
		if !errors.Is(err, exec.ErrNotFound) {
			t.Errorf("%s: error %v", name, err)
		}
		if *f.OS != name || f.Kernel != nil || f.Cores != nil || f.Machine != nil || f.CPU != nil || f.Interfaces != nil || f.Firewall != nil || f.Hypervises != nil {
			t.Errorf("%s: facts out of nothing: %+v", name, f)
		}
		threeValued(t, f)
		if len(commandsOf(name)) == 0 || !Known(name) {
			t.Errorf("%s: commands %q", name, commandsOf(name))
		}
	}
	if _, err := Read(t.Context(), "plan9", sample{}); err == nil || Known("plan9") || commandsOf("plan9") != nil {
		t.Error("plan9 is known")
	}
}

// TestDamaged reads every sample with its outputs cut at many places and
// garbled: no parser may panic or invent facts, and no fact may be both known
// and not checked.
func TestDamaged(t *testing.T) {
	for name, system := range samples {
		s := load(t, name)
		whole, err := Read(t.Context(), system, s)
		if err != nil {
			t.Fatal(err)
		}
		true := flat(t, whole)
		for cut := range 40 {
			s.change = func(out string) string { return out[:len(out)*cut/40] }
			f, _ := Read(t.Context(), system, s)
			threeValued(t, f)
			invented(t, fmt.Sprintf("%s cut at %d/40", name, cut), true, flat(t, f))
		}
		for n, garble := range []func(string) string{
			func(out string) string { return strings.ReplaceAll(out, "\n", "") },
			func(out string) string { return strings.ReplaceAll(out, ":", "\x1b[31m") },
			func(out string) string { return strings.ToUpper(out) },
			func(out string) string { return "-bash: warning\n" + out },
			func(string) string { return strings.Repeat("\x00\xff-- \n", 100) },
			func(string) string { return strings.Repeat("9", 1<<16) + "\n" },
		} {
			s.change = garble
			f, _ := Read(t.Context(), system, s)
			threeValued(t, f)
			if b, err := json.Marshal(f); err != nil || strings.ContainsAny(string(b), "\x1b\x00") || strings.Contains(string(b), `\u001b`) {
				t.Errorf("%s garbled by %d: %v, or it could steer a terminal", name, n, err)
			}
		}
	}
}

// invented returns facts of a cut output that the whole one does not have,
// without counts: half a list has a lower count.
func invented(t *testing.T, what string, whole, cut map[string]string) {
	t.Helper()
	for key, value := range cut {
		for _, part := range []string{"not_checked.", "root_would_add.", "commands.", "cpu.", "hypervises.", ".bond.", "settings_changed.", "queues", "congestion_available", "kind", "speed_is_nominal", "interrupts", "offloads"} {
			if strings.Contains(key, part) {
				value = ""
			}
		}
		counted := key == "cores" || key == "distribution" || key == "machine.board" || key == "clock.synchronised"
		if value != "" && !counted && whole[key] != value {
			t.Errorf("%s: %s is %q, but in truth %q", what, key, value, whole[key])
		}
	}
}

// TestDetect covers the systems without a sample, and errors.
func TestDetect(t *testing.T) {
	for said, want := range map[string]string{"Linux\n": "linux", "Darwin\n": "darwin", "OpenVMS\n": "", "": ""} {
		got, err := Detect(t.Context(), sample{files: map[string]string{"uname -s": said}})
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v", said, got, err)
		}
	}
	if _, err := Detect(t.Context(), sample{}); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("without uname: %v", err)
	}
}

// TestNames: a host's interface names never become an option or a second
// command.
func TestNames(t *testing.T) {
	s := load(t, "esxi-8")
	for _, evil := range []string{"-oProxyCommand=x", "vm;reboot", "a b", "$(id)"} {
		s.files["esxcli network nic list"] = strings.ReplaceAll(load(t, "esxi-8").files["esxcli network nic list"], "vmnic2", evil)
		f, _ := Read(t.Context(), "esxi", s)
		for _, c := range f.Commands {
			if strings.Contains(c, evil) {
				t.Errorf("%q was run", c)
			}
		}
	}
}

// TestScript: the program for PowerShell runs every query, and has nothing
// that Windows' rules for quoting would change.
func TestScript(t *testing.T) {
	queries := windowsQueries()
	text := script(queries)
	if strings.ContainsAny(text, "\"\n%") || strings.HasSuffix(text, `\`) || len(text) > 30000 {
		t.Errorf("a script of %d bytes with odd characters: %s", len(text), text)
	}
	for _, q := range queries {
		if !strings.Contains(text, q.expression) {
			t.Errorf("%s is not asked", q.name)
		}
	}
	if windows().commands[0].each() {
		t.Error("the script would be run for each interface")
	}
}

// TestMerge: facts of two sources are merged, the commands' first.
func TestMerge(t *testing.T) {
	told := measure.Facts{OS: new("freebsd"), Kernel: new("14.0"), Interfaces: []measure.Interface{{Name: "ix0", MTU: new(9000)}},
		NotChecked: []measure.NotChecked{{Fact: "hostname", Why: "a"}, {Fact: "interfaces.ix0.mac", Why: "a"}, {Fact: "disks", Why: "a"}}}
	other := measure.Facts{OS: new("freebsd"), Kernel: new("other"), Hostname: new("h"),
		Interfaces: []measure.Interface{{Name: "ix0", MTU: new(1500), MAC: new("02:00:00:00:00:01")}, {Name: "lo0", MTU: new(16384)}},
		NotChecked: []measure.NotChecked{{Fact: "disks", Why: "b"}, {Fact: "kernel", Why: "b"}, {Fact: "interfaces.lo0.mac", Why: "b"}}}
	f := Merge(told, other)
	if *f.Kernel != "14.0" || *f.Hostname != "h" || len(f.Interfaces) != 2 || *f.Interfaces[0].MTU != 9000 || f.Interfaces[0].MAC == nil {
		t.Errorf("merged %+v", f)
	}
	var left []string
	for _, n := range f.NotChecked {
		left = append(left, n.Fact+" "+n.Why)
	}
	if got := strings.Join(left, ", "); got != "disks a, interfaces.lo0.mac b" {
		t.Errorf("not checked: %s", got)
	}
	if told.Interfaces[0].MAC != nil {
		t.Error("the facts that were given were changed")
	}
}

// TestForwarding: systems that report forwarding are asked for it.
func TestForwarding(t *testing.T) {
	for _, name := range []string{"freebsd", "darwin"} {
		if all := strings.Join(commandsOf(name), "\n"); !strings.Contains(all, "net.inet.ip.forwarding") {
			t.Errorf("%s is not asked: %s", name, all)
		}
	}
}

// commandsOf lists what Read would run on a system, with NIC for the name of
// an interface; nothing for an unknown system.
func commandsOf(name string) []string {
	var all []string
	for _, c := range systems()[name].commands {
		all = append(all, c.names(c.line)...)
	}
	return all
}
