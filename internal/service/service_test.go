package service

import (
	"context"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"thru/internal/fault"
	"thru/packaging"
)

var update = flag.Bool("update", false, "write the golden files")

// rootOf returns a file system in which a service manager runs.
func rootOf(t *testing.T, goos string) string {
	t.Helper()
	root := t.TempDir()
	for _, m := range managers() {
		if m.goos == goos {
			if err := os.MkdirAll(filepath.Join(root, m.found), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

func planOf(t *testing.T, u Unit, goos, root string) Plan {
	t.Helper()
	p, err := u.planOn(goos, root)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// special is an end point with everything that an installation can set, and words that need quotes.
func special() Unit {
	return Unit{
		Role: "serve", Binary: "/opt/a b/thru", Flags: []string{"--label", "site=50% $HOME", "--allow", "capture,tune", "--name", `it's <"x">`},
		Allow: []string{"capture", "tune"}, Writes: []string{"/srv/data"}, Join: "thru1:secret",
	}
}

// TestPlans compares what each system would write and run with golden files.
func TestPlans(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "freebsd", "illumos", "windows"} {
		for name, u := range map[string]Unit{"special": special(), "plain": {Role: "control", Binary: "/usr/bin/thru"}, "watch": {Role: "watch", Binary: "/usr/bin/thru", Flags: []string{"/etc/thru/watch.yaml"}}} {
			t.Setenv("ProgramData", `C:\ProgramData`)
			t.Setenv("SystemRoot", `C:\Windows`)
			p := planOf(t, u, goos, rootOf(t, goos))
			got := ""
			for _, f := range p.Files {
				if f.Text != "" {
					got += fmt.Sprintf("-- %s %04o\n%s", f.Path, f.Mode, f.Text)
				}
			}
			for title, all := range map[string][][]string{"start": p.Start, "stop": p.Stop, "clean": p.Clean, "running": {p.Running}} {
				for _, c := range all {
					got += fmt.Sprintf("%s: %q\n", title, c)
				}
			}
			got = ordered(got)
			file := filepath.Join("testdata", goos+"-"+name+".golden")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s %s:\n%s", goos, name, diff)
			}
			wellFormed(t, p)
		}
	}
}

// ordered sorts the groups of commands, which come from a map.
func ordered(text string) string {
	files, commands := []string{}, []string{}
	for line := range strings.Lines(text) {
		if regexp.MustCompile(`^(start|stop|clean|running): \[`).MatchString(line) {
			commands = append(commands, line)
		} else {
			files = append(files, line)
		}
	}
	slices.SortStableFunc(commands, func(a, b string) int { return strings.Compare(a[:4], b[:4]) })
	return strings.Join(append(files, commands...), "")
}

// wellFormed checks that files of XML parse, and scripts of sh.
func wellFormed(t *testing.T, p Plan) {
	t.Helper()
	for _, f := range p.Files {
		if strings.Contains(f.Text, "@") && regexp.MustCompile(`@[A-Z]+@`).MatchString(f.Text) {
			t.Errorf("%s has a placeholder:\n%s", f.Path, f.Text)
		}
		switch {
		case strings.HasPrefix(f.Text, "<?xml"):
			d := xml.NewDecoder(strings.NewReader(f.Text))
			for {
				if _, err := d.Token(); err == io.EOF {
					break
				} else if err != nil {
					t.Fatalf("%s: %v", f.Path, err)
				}
			}
		case strings.HasPrefix(f.Text, "#!/bin/sh"):
			c := exec.Command("sh", "-n")
			c.Stdin = strings.NewReader(f.Text)
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", f.Path, err, out)
			}
		}
	}
}

// TestPackaged checks that each file that a plan reads from package packaging is there: a missing one would be empty.
func TestPackaged(t *testing.T) {
	for _, name := range []string{
		"systemd/thru-serve.service", "systemd/thru-serve.socket", "systemd/thru-control.service", "systemd/thru-control.socket", "systemd/thru-watch.service",
		"systemd/allow-capture.conf", "systemd/allow-tune.conf", "systemd/allow-inventory.conf", "launchd.plist", "rc.d", "smf.xml",
	} {
		if packaged(name) == "" {
			t.Errorf("%s is missing", name)
		}
	}
}

// TestInstall installs, repeats, changes, repairs and removes a service in a folder.
func TestInstall(t *testing.T) {
	root := rootOf(t, "linux")
	var ran, did []string
	active := false
	run := func(_ context.Context, c []string) (string, error) {
		if c[1] == "is-active" {
			if !active {
				return "", errors.New("exit status 3")
			}
			return "", nil
		}
		ran = append(ran, strings.Join(c, " "))
		active = active && c[1] != "disable" || c[1] == "restart"
		return "", nil
	}
	install := func(u Unit) bool {
		t.Helper()
		ran, did = nil, nil
		changed, err := planOf(t, u, "linux", root).Install(context.Background(), run, false, func(s string) { did = append(did, s) })
		if err != nil {
			t.Fatal(err)
		}
		return changed
	}
	if !install(special()) || !slices.Contains(ran, "systemctl restart thru-serve.service") {
		t.Fatalf("ran %q", ran)
	}
	join := filepath.Join(root, "/etc/thru/serve.join")
	if info, err := os.Stat(join); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the join string: %v %v", info, err)
	}
	if install(special()) || len(ran)+len(did) > 0 {
		t.Errorf("the second time it did %q and ran %q", did, ran)
	}
	plain := Unit{Role: "serve", Binary: "/usr/bin/thru"}
	if !install(plain) || exists(root, "/etc/thru") || exists(root, "/etc/systemd/system/thru-serve.service.d/allow-tune.conf") {
		t.Errorf("privileges and join string of before remain: %q", did)
	}
	unit := filepath.Join(root, "/etc/systemd/system/thru-serve.service")
	if err := os.Remove(unit); err != nil {
		t.Fatal(err)
	}
	if found, missing := planOf(t, plain, "linux", root).Found(); len(found) == 0 || !slices.Equal(missing, []string{"/etc/systemd/system/thru-serve.service"}) {
		t.Errorf("half installed: found %q, missing %q", found, missing)
	}
	if !install(plain) || !slices.Equal(did[:1], []string{"wrote /etc/systemd/system/thru-serve.service"}) {
		t.Errorf("the repair did %q", did)
	}
	p := planOf(t, plain, "linux", root)
	if removed, err := p.Remove(context.Background(), run, func(string) {}); err != nil || !removed {
		t.Fatal(removed, err)
	}
	if found, _ := p.Found(); len(found) > 0 || exists(root, "/etc/systemd/system/thru-serve.service.d") {
		t.Errorf("what remains: %q", found)
	}
	if removed, err := p.Remove(context.Background(), run, func(string) {}); err != nil || removed {
		t.Error("what is not installed was removed", err)
	}
}

// TestRemovesStoppedService: Windows has a service without files, which may be stopped.
func TestRemovesStoppedService(t *testing.T) {
	for _, known := range []bool{true, false} {
		var ran []string
		run := func(_ context.Context, c []string) (string, error) {
			if c[0] == "cmd.exe" || c[1] == "query" && !known {
				return "", errors.New("exit status 1")
			}
			ran = append(ran, c[1])
			return "", nil
		}
		p := planOf(t, Unit{Role: "serve"}, "windows", t.TempDir())
		removed, err := p.Remove(context.Background(), run, func(string) {})
		if err != nil || removed != known || slices.Contains(ran, "delete") != known {
			t.Errorf("known %v: removed %v, ran %q, %v", known, removed, ran, err)
		}
	}
}

// TestLeftoverFile: Windows knows its services; a join file that one has left behind is none.
func TestLeftoverFile(t *testing.T) {
	p := planOf(t, Unit{Role: "serve", Join: "thru1:x"}, "windows", t.TempDir())
	if _, err := p.Files[0].put(p.root); err != nil {
		t.Fatal(err)
	}
	for _, known := range []error{nil, errors.New("exit status 1")} {
		query := func(context.Context, []string) (string, error) { return "", known }
		if got := p.Installed(context.Background(), query); got != (known == nil) {
			t.Errorf("the manager answers %v: installed %v", known, got)
		}
	}
}

// TestPackagedUnit: where a package installed the unit, only the drop-in is written.
func TestPackagedUnit(t *testing.T) {
	root := rootOf(t, "linux")
	dir := filepath.Join(root, "/usr/lib/systemd/system")
	if err := os.MkdirAll(filepath.Join(dir, "thru-serve.service"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range planOf(t, Unit{Role: "serve", Binary: "/usr/bin/thru"}, "linux", root).Files {
		if strings.HasSuffix(f.Path, ".service") || strings.HasSuffix(f.Path, ".socket") {
			t.Errorf("it writes %s", f.Path)
		}
	}
}

// TestInstallFails: a failing command and an unwritable folder are errors with a hint.
func TestInstallFails(t *testing.T) {
	u := Unit{Role: "serve", Binary: "/usr/bin/thru"}
	root := rootOf(t, "linux")
	broken := func(context.Context, []string) (string, error) {
		return "Unit is masked.", errors.New("exit status 1")
	}
	_, err := planOf(t, u, "linux", root).Install(context.Background(), broken, false, func(string) {})
	if err == nil || !strings.Contains(err.Error(), "Unit is masked.") || !strings.Contains(fault.Hint(err), "thru service remove") {
		t.Errorf("a failing command: %v (%s)", err, fault.Hint(err))
	}
	busy := func(_ context.Context, c []string) (string, error) {
		if c[1] == "show" {
			return "listening on :5200: address already in use", nil
		}
		return "", errors.New("exit status 1")
	}
	_, err = planOf(t, u, "linux", rootOf(t, "linux")).Install(context.Background(), busy, false, func(string) {})
	if err == nil || !strings.Contains(err.Error(), "does not start: listening on :5200") {
		t.Errorf("a port in use: %v", err)
	}
	root = rootOf(t, "linux")
	if err := os.WriteFile(filepath.Join(root, "etc"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = planOf(t, u, "linux", root).Install(context.Background(), broken, false, func(string) {})
	if err == nil || fault.Hint(err) == "" {
		t.Errorf("a folder that cannot be made: %v", err)
	}
	if _, err := u.planOn("linux", t.TempDir()); err == nil || !strings.Contains(fault.Hint(err), "thru serve") {
		t.Errorf("no systemd: %v (%s)", err, fault.Hint(err))
	}
	if _, err := u.planOn("plan9", ""); err == nil {
		t.Error("plan9 has a service manager")
	}
	u.Binary = "/home/me/thru"
	if err := u.Check(); runtime.GOOS == "linux" && err == nil {
		t.Error("a program that the service cannot see")
	}
}

// mostExposed is the exposure that systemd-analyze may compute for a unit, of 10.
const mostExposed = 2.0

// TestUnits has systemd judge the units: they are valid, and hardened.
func TestUnits(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, packaging.Files); err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"serve", "control"} {
		unit := filepath.Join(dir, "systemd", "thru-"+role+".service")
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		// verify wants to see the program.
		text = []byte(strings.ReplaceAll(string(text), "/usr/bin/thru", "/bin/true"))
		if err := os.WriteFile(unit, text, 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("systemd-analyze", "verify", "--man=no", unit, strings.Replace(unit, ".service", ".socket", 1)).CombinedOutput()
		if err != nil || strings.Contains(string(out), "thru-") {
			t.Errorf("verify %s: %v\n%s", role, err, out)
		}
		out, err = exec.Command("systemd-analyze", "security", "--offline=yes", unit).CombinedOutput()
		level := regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+)`).FindSubmatch(out)
		if err != nil || level == nil {
			t.Fatalf("security %s: %v\n%s", role, err, out)
		}
		if x, err := strconv.ParseFloat(string(level[1]), 64); err != nil || x > mostExposed {
			t.Errorf("the exposure of %s is %s, more than %v", role, level[1], mostExposed)
		}
	}
}
