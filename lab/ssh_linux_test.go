package lab_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"thru/lab"
)

// TestSSHEndPoint measures with a host that has no thru, and leaves none there. It checks a gigabit to 2%, so
// it runs alone.
func TestSSHEndPoint(t *testing.T) {
	p := lab.NewPair(t, lab.Options{Rate: gigabit})
	// A login that prints a greeting.
	s := startSSHD(t, p.B, p.Data.B4.String(), `ForceCommand echo welcome; eval "$SSH_ORIGINAL_COMMAND"`, "")
	client := startWith(t, p.A, t.TempDir(), "", sshClient(t, s.path("user"), s), "test", "--json", "-t", "3", "-O", "1", "ssh://"+s.addr)
	underWay(t, p, client, gigabit)
	for _, pid := range pidsOf(p.B, "thru") {
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err != nil || !strings.HasSuffix(exe, " (deleted)") {
			t.Errorf("process %d runs from the file %s (%v)", pid, exe, err)
		}
	}
	if code := client.wait(t, 40*time.Second); code != 0 {
		t.Fatalf("exit %d", code)
	}
	doc := client.document(t)
	for _, c := range mainCells(doc) {
		if c.Goodput == nil || !near(c.Goodput.Value, goodput4, 2) {
			t.Errorf("%s to %s: goodput %+v, want %.0f", c.From, c.To, c.Goodput, goodput4)
		}
	}
	if len(mainCells(doc)) != 2 {
		t.Errorf("%d cells, want both directions", len(mainCells(doc)))
	}
	s.eventuallyClean(t, 5*time.Second)
	eventuallyIdle(t, p.A, idle{}, 5*time.Second)
}

// TestSSHCheck reads a host by an agent of its own, and a host whose system has no thru program by system
// commands.
func TestSSHCheck(t *testing.T) {
	t.Parallel()
	p := lab.NewPair(t, lab.Options{})
	s := startSSHD(t, p.B, p.Data.B4.String(), "", "")
	tests := []struct{ system, kernel string }{ // the stub stays, so its row is the last
		{system: "linux"},
		{system: "freebsd", kernel: `case "$1" in -s) echo FreeBSD;; *) exec /usr/bin/uname "$@";; esac`},
	}
	for _, tt := range tests {
		if tt.kernel != "" {
			s.stub(t, "uname", tt.kernel)
		}
		client := startWith(t, p.A, t.TempDir(), "", sshClient(t, s.path("user"), s), "check", "--json", "ssh://"+s.addr)
		client.wait(t, 40*time.Second)
		doc := client.document(t)
		if far := doc.EndPoints[len(doc.EndPoints)-1]; far.Facts == nil || far.Facts.OS == nil || *far.Facts.OS != tt.system {
			t.Errorf("a check of %s: %+v", tt.system, far)
		}
	}
	s.eventuallyClean(t, 5*time.Second)
}

// TestSSHPair measures between two other hosts that have no thru. It checks a rate to 2%, so it runs alone.
func TestSSHPair(t *testing.T) {
	const rate = 300e6
	f := lab.NewFleet(t, lab.FleetOptions{Rates: uplinks(2, rate)})
	var ends []*sshd
	var names string
	for i, h := range f.Hosts {
		s := startSSHD(t, h, f.Data(i).String(), "", "")
		ends, names = append(ends, s), names+fmt.Sprintf("  - {name: h%d, at: \"ssh://%s\"}\n", i+1, s.addr)
	}
	ends[1].write(t, "authorized", 0o600, ends[0].read(t, "user.pub")) // one key for both
	plan := filepath.Join(t.TempDir(), "plan.yaml")
	text := "thru: 1\nname: pair\nend_points:\n" + names + "pairs: [{from: [h1], to: [h2]}]\ngates: off\ntraffic: {time: 2s, ramp: 500ms, streams: 1, direction: both}\n"
	if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	client := startWith(t, f.Controller, t.TempDir(), "", sshClient(t, ends[0].path("user"), ends...), "run", "--json", plan)
	if code := client.wait(t, 40*time.Second); code != 0 {
		t.Fatalf("exit %d", code)
	}
	doc := client.document(t)
	if len(doc.Cells) != 2 {
		t.Errorf("%d cells, want both directions", len(doc.Cells))
	}
	for _, c := range doc.Cells {
		if c.Goodput == nil || !near(c.Goodput.Value, rate*payloadShare, 2) {
			t.Errorf("%s to %s: goodput %+v, want %.0f", c.From, c.To, c.Goodput, rate*payloadShare)
		}
	}
	for _, s := range ends {
		s.eventuallyClean(t, 5*time.Second)
	}
}

// TestSSHRefusals: ends that cannot be reached or served. Each gives the reason in exit code and hint, and
// leaves nothing behind.
func TestSSHRefusals(t *testing.T) {
	t.Parallel()
	p := lab.NewPair(t, lab.Options{})
	tests := []struct {
		name   string
		config string // of the daemon
		before string // commands that run first
		stubs  map[string]string
		client func(t *testing.T, s *sshd) []string
		want   []string // in stderr
	}{
		{name: "host key unknown", client: func(t *testing.T, s *sshd) []string { return sshClient(t, s.path("user")) },
			want: []string{"Host key verification failed", "compare the key's fingerprint"}},
		{name: "host key changed", client: func(t *testing.T, s *sshd) []string {
			s.write(t, "host.pub", 0o600, s.read(t, "stranger.pub"))
			return sshClient(t, s.path("user"), s)
		}, want: []string{"find out why the host's key has changed"}},
		{name: "key refused", client: func(t *testing.T, s *sshd) []string { return sshClient(t, s.path("stranger"), s) },
			want: []string{"Permission denied", "ssh-agent"}},
		{name: "no shell", config: "ForceCommand echo no logins today >&2; exit 1", want: []string{"no logins today", "a login with a shell"}},
		{name: "other processor", stubs: map[string]string{"uname": `test "$1" = -m && echo s390x || echo Linux`},
			want: []string{"no thru program for linux/s390x", "thru-linux-s390x", "THRU_BINARIES"}},
		{name: "disk full", before: "mount -t tmpfs -o size=1m full DIR/tmp", stubs: map[string]string{"df": "echo head; echo x x x 99999999 x"},
			want: []string{"bytes arrived", "No space left on device"}},
		{name: "damaged copy", stubs: map[string]string{"sha256sum": "echo 0123  -"}, want: []string{"the copy is damaged"}},
		{name: "no folder", stubs: map[string]string{"mktemp": "exit 1"}, want: []string{"no folder with"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := startSSHD(t, p.B, p.Data.B4.String(), tt.config, tt.before)
			for name, script := range tt.stubs {
				s.stub(t, name, script)
			}
			env := sshClient(t, s.path("user"), s)
			if tt.client != nil {
				env = tt.client(t, s)
			}
			c := startWith(t, p.A, t.TempDir(), "", env, "test", "-t", "1", "ssh://"+s.addr)
			if code := c.wait(t, 30*time.Second); code != 1 {
				t.Errorf("exit %d, want 1", code)
			}
			for _, want := range tt.want {
				if !strings.Contains(c.stderr.String(), want) {
					t.Errorf("stderr lacks %q:\n%s", want, c.stderr.String())
				}
			}
			s.eventuallyClean(t, 5*time.Second)
		})
	}
}

// TestSSHFindsAPlace: where the first folder does not allow programs, or is too small, thru takes another,
// and cleans it up afterwards.
func TestSSHFindsAPlace(t *testing.T) {
	t.Parallel()
	p := lab.NewPair(t, lab.Options{})
	for _, options := range []string{"noexec", "size=1m"} {
		t.Run(options, func(t *testing.T) {
			s := startSSHD(t, p.B, p.Data.B4.String(), "", "mount -t tmpfs -o "+options+" x DIR/tmp")
			s.stub(t, "mktemp", `echo "$*" >> `+s.path("asked")+`; exec /usr/bin/mktemp "$@"`)
			c := startWith(t, p.A, t.TempDir(), "", sshClient(t, s.path("user"), s), "test", "--json", "-t", "0.5", "--one-way", "ssh://"+s.addr)
			if code := c.wait(t, 30*time.Second); code != 0 {
				t.Fatalf("exit %d", code)
			}
			if asked := strings.Count(s.read(t, "asked"), "\n"); asked < 2 {
				t.Errorf("%d folders were tried, want the one that does not fit and another", asked)
			}
			s.eventuallyClean(t, 5*time.Second)
		})
	}
}

// TestSSHKilledWhileCopying kills thru during the copy, over a slow link.
func TestSSHKilledWhileCopying(t *testing.T) {
	t.Parallel()
	p := lab.NewPair(t, lab.Options{Rate: 10e6})
	s := startSSHD(t, p.B, p.Data.B4.String(), "", "")
	for _, who := range []string{"thru", "ssh"} {
		t.Run(who, func(t *testing.T) {
			client := startWith(t, p.A, t.TempDir(), "", sshClient(t, s.path("user"), s), "test", "-t", "1", "ssh://"+s.addr)
			before := p.B.Counters(p.Data.Dev)
			lab.Eventually(t, 20*time.Second, "the copy is under way", func() bool { return p.B.Counters(p.Data.Dev).Sub(before).RxBytes > 1<<20 })
			kill(t, pidsOf(p.A, who)...)
			if client.wait(t, lossLimit); who == "ssh" && (client.exit != 1 || !strings.Contains(client.stderr.String(), "copying thru there")) {
				t.Errorf("exit %d, %s", client.exit, client.stderr.String())
			}
			s.eventuallyClean(t, lossLimit)
		})
	}
}

// TestSSHNetworkCut: sshd may not notice the cut for hours, the agent does.
func TestSSHNetworkCut(t *testing.T) {
	t.Parallel()
	p := lab.NewPair(t, lab.Options{Rate: gigabit})
	s := startSSHD(t, p.B, p.Data.B4.String(), "", "")
	client := startWith(t, p.A, t.TempDir(), "", sshClient(t, s.path("user"), s), "test", "--json", "-t", "30", "--one-way", "--force", "ssh://"+s.addr)
	underWay(t, p, client, gigabit)
	p.A.LinkDown(lab.DataDev)
	checkPartial(t, client)
	lab.Eventually(t, lossLimit, "thru does not run there", func() bool { return len(pidsOf(p.B, "thru")) == 0 })
}
