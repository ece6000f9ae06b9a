//go:build long

package lab_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"thru/lab"
)

// TestVMkernelRestoredToo: the endings that take longer.
func TestVMkernelRestoredToo(t *testing.T) {
	t.Parallel()
	restored(t, []ending{
		{"ssh killed", killing("ssh"), 10 * time.Second},
		{"its shell killed", func(t *testing.T, p *lab.Pair, s *sshd, client *program) {
			pids := strings.Fields(s.read(t, "tmp/thru-vmkernel/pids"))
			var pid int
			fmt.Sscan(pids[0], &pid)
			kill(t, pid)
		}, 15 * time.Second},
		{"network cut", func(t *testing.T, p *lab.Pair, s *sshd, client *program) { p.A.LinkDown(lab.DataDev) }, 40 * time.Second},
	})
}

// TestVMkernelLeftovers: where every process that could restore a host was killed, the next test removes what
// is left.
func TestVMkernelLeftovers(t *testing.T) {
	t.Parallel()
	p := lab.NewPair(t, lab.Options{Rate: gigabit})
	s := startESX(t, p, false, realIPerf3)
	args := []string{"test", "-t", "20", "--one-way", "--force", "--esx-firewall", "ssh://" + s.addr}
	client := startWith(t, p.A, t.TempDir(), "", sshClient(t, s.path("user"), s), args...)
	underWay(t, p, client, gigabit)
	second := startWith(t, p.A, t.TempDir(), "", sshClient(t, s.path("user"), s), args...)
	if code := second.wait(t, 30*time.Second); code != 1 || !strings.Contains(second.stderr.String(), "another thru uses") {
		t.Errorf("a second test: exit %d, %s", code, second.stderr.String())
	}
	var pids []int
	for _, word := range strings.Fields(s.read(t, "tmp/thru-vmkernel/pids")) {
		var pid int
		fmt.Sscan(word, &pid)
		pids = append([]int{pid}, pids...) // the keeper first: it must not see the other end
	}
	kill(t, pids...)
	client.wait(t, 40*time.Second)
	if got := strings.TrimSpace(s.read(t, "open")); got != "true" {
		t.Fatalf("nothing is left to put away: the rule set is enabled: %s", got)
	}
	args[2] = "1"
	third := startWith(t, p.A, t.TempDir(), "", sshClient(t, s.path("user"), s), args...)
	if code := third.wait(t, 50*time.Second); code != 0 {
		t.Errorf("the next test: exit %d", code)
	}
	s.ended(t, 5*time.Second)
}
