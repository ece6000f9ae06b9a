package lab_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"thru/internal/measure"
	"thru/lab"
)

// esxcli is a stand-in for ESXi's esxcli: it prints tables in the form of the ESXCLI reference, and keeps in
// a file whether the rule set gdbserver is enabled.
const esxcli = `
here=$(dirname "$0")/..
case "$*" in
"network firewall get") printf '   Default Action: DROP\n   Enabled: true\n   Loaded: true\n';;
"network firewall ruleset list")
	printf 'Name       Enabled\n---------  -------\n'
	printf 'sshServer     true\ngdbserver  %7s\n' "$(cat "$here/open")";;
"network firewall ruleset rule list")
	printf 'Ruleset    Direction  Protocol  Port Type  Port Begin  Port End\n'
	printf -- '---------  ---------  --------  ---------  ----------  --------\n'
	printf 'sshServer  Inbound    TCP       Dst                22        22\n'
	printf 'gdbserver  Inbound    TCP       Dst              1000      9999\n';;
"network firewall ruleset allowedip list")
	printf 'Ruleset    Allowed IP Addresses\n---------  --------------------\nsshServer  All\ngdbserver  All\n';;
"network firewall ruleset set -r gdbserver -e "*)
	echo "$*" >> "$here/calls"
	for last in "$@"; do :; done
	echo "$last" > "$here/open";;
"system version get") printf '   Product: VMware ESXi\n   Version: 8.0.2\n   Build: Releasebuild-22380479\n';;
*) exit 1;;
esac
`

// startESX starts a host that looks like ESXi over ssh: its uname says VMkernel, and it has iperf3 and a
// firewall whose rule set is enabled or not.
func startESX(t *testing.T, p *lab.Pair, open bool, iperf3 string) *sshd {
	t.Helper()
	lab.Require(t, lab.Program("iperf3"))
	s := startSSHD(t, p.B, p.Data.B4.String(), `ForceCommand export THRU_IPERF3=${TMPDIR%/tmp}/bin/iperf3; eval "$SSH_ORIGINAL_COMMAND"`, "")
	s.stub(t, "uname", `case "$1" in -s) echo VMkernel;; *) exec /usr/bin/uname "$@";; esac`)
	s.stub(t, "esxcli", esxcli)
	s.stub(t, "iperf3", iperf3)
	s.write(t, "open", 0o600, fmt.Sprintln(open))
	s.write(t, "calls", 0o600, "")
	return s
}

const realIPerf3 = `exec /usr/bin/iperf3 "$@"`

// asBefore waits until the host has disabled the rule set again, and has no process or file of thru.
func (s *sshd) asBefore(t *testing.T, limit time.Duration) {
	t.Helper()
	lab.Eventually(t, limit, "the rule set is disabled", func() bool { return strings.TrimSpace(s.read(t, "open")) == "false" })
	lab.Eventually(t, limit, "no iperf3 runs there", func() bool { return len(pidsOf(s.host, "iperf3")) == 0 })
	s.eventuallyClean(t, 5*time.Second)
	if got := s.read(t, "calls"); strings.Count(got, "-e true") != 1 || strings.Count(got, "-e false") != 1 {
		t.Errorf("the firewall was set by\n%s", got)
	}
}

// TestVMkernelRung measures with the iperf3 of an ESXi host. The interop tests judge the accuracy of its
// figures; here the traffic takes this path if it does not exceed the rate of the link.
func TestVMkernelRung(t *testing.T) {
	t.Parallel()
	const link = slow * 1448 / 1514.0
	p := lab.NewPair(t, lab.Options{Rate: slow})
	s := startESX(t, p, false, realIPerf3)
	plan := filepath.Join(t.TempDir(), "plan.yaml")
	text := "thru: 1\nname: vmkernel\nend_points: [{name: esx, at: \"ssh://" + s.addr + "\", data: " + p.Data.B4.String() + "}]\npairs: [{from: local, to: esx}, {from: esx, to: local}]\ntraffic: {time: 1s, ramp: 500ms, streams: 1}\n"
	if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"test", "--json", "-t", "3", "--esx-firewall", "ssh://" + s.addr},
		{"ladder", "--json", "-t", "1", "--esx-firewall", "--same-host", "local,ssh://" + s.addr, "--only", "1 stream"},
		{"run", "--json", "--esx-firewall", plan},
	} {
		s.write(t, "calls", 0o600, "")
		client := startWith(t, p.A, t.TempDir(), "", sshClient(t, s.path("user"), s), args...)
		if code := client.wait(t, 50*time.Second); code != 0 {
			t.Fatalf("exit %d", code)
		}
		doc := client.document(t)
		if args[0] == "test" {
			for _, c := range mainCells(doc) {
				if c.Goodput == nil || c.Goodput.Value <= 0 || c.Goodput.Value > link*1.02 {
					t.Errorf("%s to %s: goodput %+v of a link for %.0f", c.From, c.To, c.Goodput, link)
				}
			}
			if len(mainCells(doc)) != 2 {
				t.Errorf("%d cells, want both directions", len(mainCells(doc)))
			}
		}
		for _, c := range doc.Cells {
			if c.Goodput == nil {
				t.Errorf("thru %s: no goodput from %s to %s", args[0], c.From, c.To)
			}
		}
		far := doc.EndPoints[len(doc.EndPoints)-1]
		if !strings.HasPrefix(far.Speaks, "iperf3 3.") || far.Facts == nil || far.Facts.OS == nil || *far.Facts.OS != "esxi" {
			t.Errorf("the end point is %q with the facts %+v", far.Speaks, far.Facts)
		}
		if said := strings.Join(doc.Warnings, "\n"); !strings.Contains(said, "gdbserver (TCP 1000-9999)") || !strings.Contains(client.stderr.String(), "-r gdbserver -e false") {
			t.Errorf("nothing of the rule set in\n%s\n%s", said, client.stderr.String())
		}
		if notChecked(doc, "end_points.cpu") == "" {
			t.Errorf("the host's CPU is not among what was not checked: %+v", doc.Missing)
		}
		s.asBefore(t, 5*time.Second)
	}
	eventuallyIdle(t, p.A, idle{}, 5*time.Second)
}

func notChecked(doc measure.Document, fact string) string {
	for _, m := range doc.Missing {
		if m.Fact == fact {
			return m.Why
		}
	}
	return ""
}

// TestVMkernelDirections: a firewall that lets everything pass, one that thru must not change, and builds
// that run iperf3 only as a copy, or not at all.
func TestVMkernelDirections(t *testing.T) {
	t.Parallel()
	const refused = `case "$0" in */bin/iperf3) case "$1" in -s) echo "iperf3: error - unable to start listener for connections: Operation not permitted" >&2; exit 1;; esac;; esac; `
	tests := []struct {
		name   string
		open   bool
		iperf3 string
		args   []string
		exit   int
		want   []string // in stderr or stdout
		calls  int
	}{
		{name: "open", open: true, iperf3: realIPerf3, want: []string{"was not changed: its rule set gdbserver (TCP 1000-9999) allows port 5201"}},
		{name: "not asked", iperf3: realIPerf3, exit: 1, want: []string{"the rule set gdbserver (TCP 1000-9999), which allows it, is disabled", "--esx-firewall", "-r gdbserver -e false"}},
		{name: "as a copy", iperf3: refused + realIPerf3, args: []string{"--esx-firewall"}, calls: 2},
		{name: "not even a copy", iperf3: `case "$1" in -s) echo "Operation not permitted" >&2; exit 1;; esac; ` + realIPerf3, args: []string{"--esx-firewall"},
			exit: 1, want: []string{"its iperf3 does not start: Operation not permitted", "execInstalledOnly -i 0", "appDom"}, calls: 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := lab.NewPair(t, lab.Options{Rate: slow})
			s := startESX(t, p, tt.open, tt.iperf3)
			client := startWith(t, p.A, t.TempDir(), "", sshClient(t, s.path("user"), s), append(append([]string{"test", "-t", "1", "--one-way"}, tt.args...), "ssh://"+s.addr)...)
			if code := client.wait(t, 50*time.Second); code != tt.exit {
				t.Errorf("exit %d, want %d", code, tt.exit)
			}
			said := strings.Join(strings.Fields(client.stdout.String()+client.stderr.String()), " ")
			for _, want := range tt.want {
				if !strings.Contains(said, want) {
					t.Errorf("nothing of %q in\n%s", want, said)
				}
			}
			if got := s.read(t, "calls"); strings.Count(got, "\n") != tt.calls {
				t.Errorf("the firewall was set by\n%s", got)
			}
			if got := strings.TrimSpace(s.read(t, "open")); got != fmt.Sprint(tt.open) {
				t.Errorf("the rule set is enabled: %s", got)
			}
			s.eventuallyClean(t, 5*time.Second)
		})
	}
}

// ending is one way to end a test, and how soon afterwards the host must be restored.
type ending struct {
	name  string
	end   func(*testing.T, *lab.Pair, *sshd, *program)
	limit time.Duration
}

// killing kills all processes of a name at the near end.
func killing(name string) func(*testing.T, *lab.Pair, *sshd, *program) {
	return func(t *testing.T, p *lab.Pair, s *sshd, client *program) {
		for _, pid := range pidsOf(p.A, name) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// TestVMkernelRestored: however a test ends, the host is restored. The slower endings are in
// TestVMkernelRestoredToo.
func TestVMkernelRestored(t *testing.T) {
	t.Parallel()
	restored(t, []ending{
		{"interrupted", func(t *testing.T, p *lab.Pair, s *sshd, client *program) { client.cmd.Process.Signal(os.Interrupt) }, 10 * time.Second},
		{"thru killed", killing("thru"), 10 * time.Second},
	})
}

// restored runs a test for each ending and checks the host afterwards.
func restored(t *testing.T, directions []ending) {
	for _, tt := range directions {
		t.Run(tt.name, func(t *testing.T) {
			p := lab.NewPair(t, lab.Options{Rate: slow})
			s := startESX(t, p, false, realIPerf3)
			client := startWith(t, p.A, t.TempDir(), "", sshClient(t, s.path("user"), s), "test", "-t", "40", "--one-way", "--force", "--esx-firewall", "ssh://"+s.addr)
			underWay(t, p, client, slow)
			if got := strings.TrimSpace(s.read(t, "open")); got != "true" {
				t.Errorf("during the test the rule set is enabled: %s", got)
			}
			tt.end(t, p, s, client)
			s.ended(t, tt.limit)
		})
	}
}

// ended is asBefore for a host whose sshd may not have noticed yet that its client is gone.
func (s *sshd) ended(t *testing.T, limit time.Duration) {
	t.Helper()
	lab.Eventually(t, limit, "the host is as before", func() bool {
		_, err := os.Stat(s.path("tmp/thru-vmkernel"))
		return strings.TrimSpace(s.read(t, "open")) == "false" && len(pidsOf(s.host, "iperf3")) == 0 && os.IsNotExist(err)
	})
}
