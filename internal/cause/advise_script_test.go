package cause

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"thru/internal/cause/advise"
	"thru/internal/cause/knob"
	"thru/internal/measure"
)

// TestScript: the script of an end point makes its changes in order, each once, and the other one undoes them in
// reverse.
func TestScript(t *testing.T) {
	list := Propose(advisedPair(finds("receive-window", measure.AtReceiver), sysctl(1, "net.ipv4.tcp_rmem", "4096 131072 262144"), sysctl(0, "net.ipv4.tcp_wmem", "4096 16384 131072"),
		finds("sack-off", measure.AtReceiver), sysctl(1, "net.ipv4.tcp_sack", "0"), finds("vswitch", measure.AtReceiver)), advise.Seen{})
	do, undo := advise.Script(list, "b")
	if got, want := orders(do), "sysctl net.ipv4.tcp_rmem || true\nsysctl -w net.ipv4.tcp_rmem='4096 131072 75497472'\nsysctl net.ipv4.tcp_sack || true\nsysctl -w net.ipv4.tcp_sack=1"; got != want {
		t.Errorf("it does\n%s\nnot\n%s\nin\n%s", got, want, do)
	}
	if got, want := orders(undo), "set -u\nfailed=0\nsysctl -w net.ipv4.tcp_sack=0 || failed=1\nsysctl -w net.ipv4.tcp_rmem='4096 131072 262144' || failed=1\nexit $failed"; got != want {
		t.Errorf("it undoes\n%s\nnot\n%s", got, want)
	}
	for _, words := range []string{"an alternative, if", "found: tcp-rmem  4096 131072 262144", "why: 400 Mb/s a -> b", "expected: up to"} {
		if !strings.Contains(do, words) {
			t.Errorf("%q is not in\n%s", words, do)
		}
	}
	queues := Propose(advisedPair(withGate("queues", "too-few-queues", "b"), withInterface(0, asVeth), withInterface(1, asVeth)), advise.Seen{})
	if do, undo := advise.Script(queues, "a"); strings.Contains(orders(do)+orders(undo), "ethtool") || !strings.Contains(do, "an alternative, if") {
		t.Errorf("half of an alternative is made:\n%s", do)
	}
	mismatch := Propose(advisedPair(finds("jumbo-mismatch", measure.AtPath), withInterface(0, func(i *measure.Interface) { i.MTU = new(9000) })), advise.Seen{})
	raised, _ := advise.Script(mismatch, "b")
	lowered, _ := advise.Script(mismatch, "a")
	if !strings.Contains(orders(raised), "mtu 9000") || strings.Contains(orders(lowered), "mtu 1500") {
		t.Errorf("the mismatch is swapped:\n%s\n%s", raised, lowered)
	}
	if do, undo := advise.Script(list, "c"); do != "" || undo != "" {
		t.Error("a script for an end point that nothing is proposed for")
	}
	list = append(list, measure.Proposal{ID: "x", Title: "foreign", Why: "why", Commands: []measure.Commands{{EndPoint: "b", Platform: "linux", Set: []string{"reboot"}, Undo: []string{"reboot"}}}})
	if do, undo := advise.Script(list, "b"); strings.Contains(orders(do)+orders(undo), "reboot") {
		t.Errorf("commands that no knob has are in\n%s", do)
	}
	t.Run("run", func(t *testing.T) { runs(t, do, undo) })
}

// orders returns the lines of a script that execute something.
func orders(script string) string {
	var list []string
	for line := range strings.Lines(script) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' && line != "set -eu" {
			list = append(list, line)
		}
	}
	return strings.Join(list, "\n")
}

// runs executes the scripts in a shell, twice each, with a sysctl that keeps its values in files.
func runs(t *testing.T, do, undo string) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no sh")
	}
	dir := t.TempDir()
	tool := "#!/bin/sh\nif [ \"$1\" = -w ]; then printf '%s' \"${2#*=}\" > \"" + dir + "/${2%%=*}\"; else cat \"" + dir + "/$1\"; fi\n"
	if err := os.WriteFile(filepath.Join(dir, "sysctl"), []byte(tool), 0o755); err != nil {
		t.Fatal(err)
	}
	run := func(script string) {
		c := exec.Command(shell, "-c", script)
		c.Env = []string{"PATH=" + dir + ":/bin:/usr/bin"}
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s\n%s", err, out, script)
		}
	}
	holds := func(want string) {
		t.Helper()
		got, err := os.ReadFile(filepath.Join(dir, "net.ipv4.tcp_rmem"))
		if err != nil || string(got) != want {
			t.Errorf("tcp_rmem is %q, not %q: %v", got, want, err)
		}
	}
	for range 2 {
		run(do)
		holds("4096 131072 75497472")
	}
	for range 2 {
		run(undo)
		holds("4096 131072 262144")
	}
	run(do)
	c := exec.Command(shell, "-c", strings.Replace(undo, "sysctl -w net.ipv4.tcp_sack=0", "false", 1)) // the first one that it undoes
	c.Env = []string{"PATH=" + dir + ":/bin:/usr/bin"}
	if err := c.Run(); err == nil {
		t.Error("an undo that failed in part is no failure")
	}
	holds("4096 131072 262144")
}

// TestScriptOfWindows: it is a PowerShell script there.
func TestScriptOfWindows(t *testing.T) {
	list := Propose(advisedPair(finds("receive-window", measure.AtReceiver), func(d *measure.Document) {
		d.EndPoints[1].Facts.OS, d.EndPoints[1].Facts.Sysctls = new("windows"), map[string]string{"Internet.AutoTuningLevelLocal": "Disabled"}
	}), advise.Seen{})
	do, _ := advise.Script(list, "b")
	if !strings.HasPrefix(do, "$ErrorActionPreference") || !strings.Contains(do, "\nnetsh ") {
		t.Errorf("%s", do)
	}
}

// FuzzHostileNames: no shell interprets a host's own names, interfaces or values.
func FuzzHostileNames(f *testing.F) {
	for _, name := range []string{"enp3s0", "eth0; reboot", "$(reboot)", "`reboot`", "a\nreboot", "'; reboot; '", "\" && reboot", "-rf", "eth0\u2028reboot", "#>reboot", "a|b", "a>b", "\x1b[2J"} {
		f.Add(name, "linux")
		f.Add(name, "windows")
	}
	f.Fuzz(func(t *testing.T, name, system string) {
		d := advisedPair(everything()...)
		for i := range d.EndPoints {
			e := &d.EndPoints[i]
			e.Facts.OS = &system
			e.Facts.Sysctls["net.ipv4.tcp_rmem"] = name + " 1 2"
			e.Facts.CPU.Governors, e.Facts.CongAvail = []string{name}, append(e.Facts.CongAvail, name)
			e.Facts.Interfaces[0].Name, e.Facts.Interfaces[0].Qdisc = name, &name
		}
		d.Paths[0].Forward.Route, d.Paths[0].Back.Route = &measure.Route{Interface: name}, &measure.Route{Interface: name}
		d.EndPoints[1].Knobs = []measure.KnobState{{Knob: "rps", Interface: name, Value: "rx-0 0"}, {Knob: "rps", Interface: name, Value: name},
			{Knob: "coalescing", Interface: name, Value: "adaptive-rx off " + name + " 1"}, {Knob: "irq-affinity", Interface: name, Value: "1 2 " + name + " 3"},
			{Knob: "route-congestion", Interface: "default dev " + name, Value: name}}
		for i := range d.Cells[0].Findings {
			d.Cells[0].Findings[i].Summary += name
			d.Cells[0].Findings[i].Where.Interface = name
		}
		list := Propose(d, advise.Seen{})
		if do, _ := advise.Script(list, "b"); system == "linux" && len(name) > 3 && knob.Plain(name, "") && !strings.Contains(do, " "+name+" ") {
			t.Errorf("the plain name %q is in no command of\n%s", name, do)
		}
		if !strings.ContainsAny(name, ";$`'\"\n|&<>\u2028\x1b\r\\(){}*?") {
			return
		}
		for _, end := range []string{"a", "b"} {
			do, undo := advise.Script(list, end)
			for line := range strings.Lines(do + undo) {
				if line[0] != '#' && len(name) > 1 && strings.Contains(line, strings.TrimSpace(name)) && !isQuoted(line, name, system) {
					t.Errorf("%q is in %q", name, line)
				}
			}
		}
	})
}

// isQuoted reports whether a name is between single quotes, which PowerShell takes literally.
func isQuoted(line, name, system string) bool {
	return system == "windows" && !strings.ContainsAny(name, "'\n\r") && strings.Contains(line, "'"+name+"'")
}

// everything has a finding of every cause that has a rule.
func everything() (list []func(*measure.Document)) {
	for _, r := range proposalRules() {
		for _, place := range []string{measure.AtSender, measure.AtReceiver, measure.AtPath} {
			list = append(list, finds(r.Cause, place))
		}
	}
	for i := range 2 {
		list = append(list, sysctl(i, "net.ipv4.tcp_sack", "0"), sysctl(i, "net.ipv4.tcp_window_scaling", "0"), sysctl(i, "net.ipv4.tcp_timestamps", "0"))
	}
	return list
}
