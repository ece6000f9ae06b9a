package remote

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"thru/internal/fault"
	"thru/internal/measure"
)

func TestVMkernelScriptIsPlain(t *testing.T) {
	for _, shell := range []string{"sh", "dash", "bash", "busybox"} {
		if _, err := exec.LookPath(shell); err != nil {
			continue // one of them always exists
		}
		args := []string{"-n", "-c", vmkernelScript("thru-X")}
		if shell == "busybox" {
			args = append([]string{"sh"}, args...)
		}
		if out, err := exec.Command(shell, args...).CombinedOutput(); err != nil {
			t.Errorf("%s cannot read the script: %v\n%s", shell, err, out)
		}
	}
}

// esxHere makes this machine look like an ESXi host at the far end of ssh: the fake ssh
// runs its command here. It returns the folder of the host's state.
func esxHere(t *testing.T, shell string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("it has no /bin/sh")
	}
	dir := t.TempDir()
	for name, script := range map[string]string{
		"bin/ssh":   `for last in "$@"; do :; done; SSH_CONNECTION="127.0.0.1 5 127.0.0.1 22" exec ` + shell + ` -c "$last"`,
		"bin/uname": `echo VMkernel`,
		"bin/esxcli": `case "$*" in
*"ruleset list") printf 'Name       Enabled\n---------  -------\ngdbserver  %7s\n' "$(cat ` + dir + `/open)";;
*"rule list") printf 'Ruleset    Direction  Protocol  Port Type  Port Begin  Port End\n---------  ---------  --------  ---------  ----------  --------\ngdbserver  Inbound    TCP       Dst              1000      9999\n';;
"network firewall get") printf '   Default Action: DROP\n   Enabled: true\n   Loaded: true\n';;
*"ruleset set -r gdbserver -e "*) echo "$*" >> ` + dir + `/calls; for last in "$@"; do :; done; echo "$last" > ` + dir + `/open;;
*) exit 1;;
esac`,
		"bin/iperf3": `case "$1" in --version) echo "iperf 3.1.6 (cJSON 1.5.2)"; echo more;; *) echo "$*" > ` + dir + `/asked; exec sleep 60;; esac`,
		"open":       "false",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if filepath.Dir(name) == "bin" {
			script = "#!/bin/sh\n" + script
		}
		if err := os.WriteFile(path, []byte(script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	t.Setenv("THRU_IPERF3", filepath.Join(dir, "bin", "iperf3"))
	t.Setenv("TMPDIR", dir)
	return dir
}

func kept(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// An ESXi host is an end point while it is connected, and is restored afterwards.
func TestVMkernelEndPoint(t *testing.T) {
	shells := []string{"/bin/sh"}
	if path, err := exec.LookPath("busybox"); err == nil { // whose shell is ESXi's
		shells = append(shells, path+" sh")
	}
	for _, shell := range shells {
		t.Run(filepath.Base(shell), func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			dir := esxHere(t, shell)
			var printed bytes.Buffer
			d := Dialer{Network: New(scribe{&printed}, ""), VMkernel: true, Firewall: true}
			e, end, err := d.EndPoint(t.Context(), "ssh://root@esx1")
			if err != nil {
				t.Fatal(err)
			}
			if !e.Foreign || e.Engine != measure.IPerf3 || e.Port != 5201 || e.Addr != "127.0.0.1:5201" || e.Speaks != "iperf3 3.1.6" || len(e.Notes) != 1 {
				t.Errorf("%+v", e)
			}
			if got := kept(t, dir, "open") + ", " + kept(t, dir, "asked"); got != "true, -s -p 5201 -B 127.0.0.1" {
				t.Errorf("while it is connected: %s", got)
			}
			if !strings.Contains(printed.String(), "thru enables the firewall rule set gdbserver (TCP 1000-9999) for this test") {
				t.Errorf("printed %s", printed.String())
			}
			end()
			if kept(t, dir, "open") != "false" || kept(t, dir, "calls") != "network firewall ruleset set -r gdbserver -e true\nnetwork firewall ruleset set -r gdbserver -e false" {
				t.Errorf("afterwards: %s\n%s", kept(t, dir, "open"), kept(t, dir, "calls"))
			}
			if _, err := os.Stat(filepath.Join(dir, "thru-vmkernel")); !os.IsNotExist(err) {
				t.Errorf("a folder is left: %v", err)
			}
			if strings.Contains(printed.String(), "warning") {
				t.Errorf("printed %s", printed.String())
			}
		})
	}
}

// A firewall that lets nothing in needs the user's consent, and a command that measures
// nothing there does not change it.
func TestVMkernelRefused(t *testing.T) {
	dir := esxHere(t, "/bin/sh")
	for name, x := range map[string]struct {
		d    Dialer
		hint string
	}{
		"the firewall": {Dialer{VMkernel: true}, "let thru enable the rule set gdbserver"},
		"no measuring": {Dialer{Firewall: true}, "which use its own iperf3"},
		"an address":   {Dialer{VMkernel: true, Firewall: true, DataAddr: "vmk1"}, "the address of a VMkernel interface"},
	} {
		x.d.Network = New(scribe{io.Discard}, "")
		_, _, err := x.d.EndPoint(t.Context(), "ssh://root@esx1")
		if err == nil || !strings.Contains(fault.Hint(err), x.hint) {
			t.Errorf("%s: %v, hint %q", name, err, fault.Hint(err))
		}
	}
	if got := kept(t, dir, "calls"); got != "" {
		t.Errorf("the firewall was set by %s", got)
	}
}

// A host that was not restored is named, with the command that reverts it.
func TestVMkernelNotRestored(t *testing.T) {
	dir := esxHere(t, "/bin/sh")
	var printed bytes.Buffer
	d := Dialer{Network: New(scribe{&printed}, ""), VMkernel: true, Firewall: true}
	_, end, err := d.EndPoint(t.Context(), "ssh://root@esx1")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bin", "esxcli"), []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	end()
	if !strings.Contains(printed.String(), "did not confirm that its firewall is restored") || !strings.Contains(printed.String(), "to restore it: `esxcli network firewall ruleset set -r gdbserver -e false`") {
		t.Errorf("printed %s", printed.String())
	}
	if got := kept(t, dir, "thru-vmkernel/ruleset"); got != "gdbserver" {
		t.Errorf("the next test would not know that %q is left", got)
	}
}

// nowhere is an input without a reader.
type nowhere struct{ io.Writer }

func (nowhere) Close() error { return nil }

// FuzzVMkernelTalk feeds any output of a far end.
func FuzzVMkernelTalk(f *testing.F) {
	f.Add("M iperf3 iperf 3.1.6\nM firewall    Enabled: false\nM asked\n")
	f.Add("noise\nM failed there is none\n")
	f.Add("M rules x\nM rules y\n")
	f.Fuzz(func(t *testing.T, text string) {
		s := &sshProcess{mark: "M", in: nowhere{io.Discard}, out: bufio.NewReader(strings.NewReader(text)), stderr: &sshStderr{}, done: make(chan struct{})}
		close(s.done)
		report, err := s.readVMkernel()
		if err == nil && !strings.Contains(text, "M asked") {
			t.Errorf("%q: report %v", text, report)
		}
		iperf3Version(report["iperf3"])
		Dialer{}.choose(report, "esx1")
	})
}
