//go:build long

package tuning

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"thru/internal/measure"
	"thru/lab"
	"thru/lab/wire"
)

// Changes that the tests of this file try at the peer; the second value does not help.
const (
	large     = "4096 131072 8388608"
	small     = "4096 65536 131072"
	useful    = "tcp-rmem=" + large + "@" + Peer
	pointless = "tcp-wmem=4096 65536 6291456@" + Peer
)

// quickLimit bounds a tuning of these tests, far above the usual time.
const quickLimit = 100 * time.Second

// tune returns the arguments of a quick tuning of the peer.
func tune(args ...string) []string {
	return append(strings.Fields("tune "+Peer+" --json --yes -t 0.3 -O 0.1 --one-way --budget 90s"), args...)
}

// outcome is the outcome of the attempt that changes a knob, "" where there is none.
func outcome(d *measure.Document, knob string) string {
	if d.Tuning == nil {
		return ""
	}
	for _, a := range d.Tuning.Attempts {
		for _, s := range a.Settings {
			if s.Knob == knob {
				return a.Outcome
			}
		}
	}
	return ""
}

// value is the value of a kernel parameter, with single spaces.
func value(h *lab.Host, name string) string {
	return strings.Join(strings.Fields(h.Must("sysctl", "-n", name)), " ")
}

// TestTuneKeepsWhatHelps tries three changes: one helps and stays, one does not and is reverted, one changes
// nothing. A rollback reverts the first, also after a boot.
func TestTuneKeepsWhatHelps(t *testing.T) {
	direction := wire.Impairment{Rate: 200e6, Delay: 10 * time.Millisecond, Queue: 2 << 20}
	x := lab.NewWired(t, lab.WiredOptions{AtoB: direction, BtoA: direction})
	x.B.Sysctl(rmem, small)
	s := Over(t, x.Pair)
	before := s.Settings()
	d, code := s.Run(s.A, quickLimit, tune("--only", "tcp-rmem,tcp-wmem,mtu", "--try", useful, "--try", pointless, "--try", "mtu=1500@"+Peer+":"+lab.DataDev)...)
	if code != 0 || d.Tuning == nil || len(d.Tuning.Journey) < 2 {
		t.Fatalf("exit %d, error %+v, tuning %+v", code, d.Error, d.Tuning)
	}
	for knob, want := range map[string]string{"tcp-rmem": measure.Kept, "tcp-wmem": measure.Undone, "mtu": measure.Settled} {
		if got := outcome(d, knob); got != want {
			t.Errorf("%s: %q, want %q", knob, got, want)
		}
	}
	want := []string{"b: - parameters: net.ipv4.tcp_rmem = " + strings.ReplaceAll(small, " ", "\t"), "b: + parameters: net.ipv4.tcp_rmem = " + strings.ReplaceAll(large, " ", "\t")}
	if got := s.Changed(before); !slices.Equal(got, want) {
		t.Errorf("it left %q, want %q", got, want)
	}
	boot := s.Booted(lab.NewPair(t, lab.Options{}))
	if stood := s.RollBack(); !slices.Equal(stood, []string{"tcp-rmem@" + Peer}) {
		t.Errorf("a rollback found %q in force", stood)
	}
	if left := s.Changed(before); len(left) > 0 {
		t.Errorf("not rolled back: %q", left)
	}
	boot.B.Sysctl(rmem, large) // another namespace than the one that was tuned: that is gone with its settings
	boot.RollBack()
	if got := value(boot.B, rmem); got != large {
		t.Errorf("a rollback after a boot sets %q in a namespace that thru has not tuned", got)
	}
}

// TestTuneKilled: whoever is killed while a change is in force, the settings of both hosts are restored.
func TestTuneKilled(t *testing.T) {
	t.Parallel()
	s := Over(t, lab.NewPair(t, lab.Options{Rate: 1e9}))
	for i, who := range []string{Controller, Agent, PowerCut} {
		k := Kill{Who: who, Write: 3 + 4*i, Open: true, Args: []string{"-t", "0.3", "-O", "0.1", "--one-way", "--try", useful, "--try", "tso=off@local:" + lab.DataDev}}
		if r := k.Do(s); !r.Right() || r.Open == 0 {
			t.Errorf("%s", r)
		}
	}
}

// TestTuneOneAtATime: a tuning locks out others at both hosts, and keeps settings that others change in the
// meantime.
func TestTuneOneAtATime(t *testing.T) {
	t.Parallel()
	s := Over(t, lab.NewPair(t, lab.Options{Rate: 1e9}))
	was := value(s.B, rmem)
	long := strings.Fields("tune " + Peer + " --json -t 3 -O 0.1 --one-way --budget 90s --only tcp-rmem") // so that it outlasts the others
	one := s.Start(s.A, "", append(long, "--try", useful)...)
	inForce := func() {
		t.Helper()
		lab.Eventually(t, quickLimit, "the change is in force", func() bool {
			if !one.Running() {
				t.Fatalf("it has ended: %s", one.Stdout())
			}
			return value(s.B, rmem) != was
		})
	}
	inForce()
	other := s.As(t.TempDir())
	other.Join(nil)
	for host, args := range map[*lab.Host][]string{s.A: tune("--try", useful), s.B: strings.Fields("tune --json --yes -t 0.3 --budget 20s")} {
		d, code := other.Run(host, quickLimit, args...)
		if code != 1 || d.Error == nil || d.Error.Hint == "" || !strings.Contains(d.Error.Message, "another client is tuning") {
			t.Errorf("a second tuning at %s: exit %d, error %+v", host.Name, code, d.Error)
		}
	}
	inForce()
	const foreign = "4096 131072 5555555"
	s.B.Sysctl(rmem, foreign)
	one.Wait(quickLimit)
	if got := outcome(one.Document(), "tcp-rmem"); got != measure.Foreign {
		t.Errorf("what somebody else has set ended as %q", got)
	}
	if got := value(s.B, rmem); got != foreign {
		t.Errorf("what somebody else has set was overwritten by %q", got)
	}
}

// TestTuneWithoutRights: a user without rights at both ends gets advice, and nothing changes.
func TestTuneWithoutRights(t *testing.T) {
	t.Parallel()
	lab.Require(t, lab.Program("setpriv"))
	direction := wire.Impairment{Rate: 100e6, Delay: 10 * time.Millisecond, Queue: 1 << 20}
	x := lab.NewWired(t, lab.WiredOptions{AtoB: direction, BtoA: direction})
	x.B.Sysctl(rmem, small)
	s := Over(t, x.Pair)
	before := s.Settings()
	home, by := nobody(t)
	other := s.As(home)
	other.Join(by)
	p := other.StartBy(s.A, by, "", strings.Fields("tune "+Measured+" --json --yes -t 0.5 -O 0.2 --one-way --budget 15s")...)
	code := p.Wait(quickLimit)
	d := p.Document()
	if code != 0 || d.Tuning == nil || len(d.Tuning.Advice) == 0 {
		t.Fatalf("exit %d, error %+v, tuning %+v", code, d.Error, d.Tuning)
	}
	asked := false
	for _, p := range d.Tuning.Advice {
		for _, set := range p.Settings {
			asked = asked || set.Knob == "tcp-rmem" && set.EndPoint == Measured && p.OnlySaid != "" && len(p.Commands) > 0
		}
	}
	if !asked {
		t.Errorf("the advice has no larger window: %+v", d.Tuning.Advice)
	}
	if left := s.Changed(before); len(left) > 0 {
		t.Errorf("changed without the right to: %q", left)
	}
}

// nobody returns the home of a user without rights, with a copy of the program, and the command that runs
// others as that user.
func nobody(t *testing.T) (home string, by []string) {
	t.Helper()
	home, err := os.MkdirTemp("", "thru-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	const id = 65534
	if err := errors.Join(copyFile(lab.Binary(t), filepath.Join(home, "thru")), os.Chown(home, id, id)); err != nil {
		t.Fatal(err)
	}
	// The shell's $0 is the program as the lab names it, which that user may not reach.
	return home, []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", `exec "$HOME/thru" "$@"`}
}

// copyFile copies a program.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
