package host

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"thru/internal/host/tree"
	"thru/internal/measure"
)

// thru reports the same as the system's programs.
func TestHostAgreesWithItsPrograms(t *testing.T) {
	f := New().Facts()
	said := func(name string, args ...string) int64 {
		out, err := exec.Command(name, args...).Output()
		n, err2 := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
		if err := errors.Join(err, err2); err != nil {
			t.Skipf("%s: %v", name, err)
		}
		return n
	}
	if want := said("nproc"); f.CPU == nil || show(f.CPU.Usable) != int(want) {
		t.Errorf("nproc says %d, thru %+v", want, f.CPU)
	}
	if want := said("getconf", "_NPROCESSORS_ONLN"); show(f.CPU.Threads) != int(want) {
		t.Errorf("%d CPUs are on line, thru says %v", want, show(f.CPU.Threads))
	}
	if want := said("getconf", "_PHYS_PAGES") * said("getconf", "PAGESIZE"); f.RAM == nil || show(f.RAM.Total) != want {
		t.Errorf("%d bytes of memory, thru says %+v", want, f.RAM)
	}
	if f.Clock == nil || f.Clock.ReadNs == nil || *f.Clock.ReadNs < 1 || *f.Clock.ReadNs > int64(time.Millisecond) {
		t.Errorf("clock %+v", f.Clock)
	}
	if show(f.Privileged) != (os.Geteuid() == 0) {
		t.Errorf("privileged: %v", show(f.Privileged))
	}
	if show(f.Privileged) == true && f.RootAdds != nil {
		t.Errorf("root would add %q to root", f.RootAdds)
	}
}

// inGroup is set for the process that TestQuotaOfThisMachine starts.
const inGroup = "HOST_TEST_IN_GROUP"

// A process in a group with a fifth of a CPU reads its quota, and that it was
// throttled.
func TestQuotaOfThisMachine(t *testing.T) {
	if os.Getenv(inGroup) != "" {
		limited(t)
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestQuotaOfThisMachine$")
	child.Env = append(os.Environ(), inGroup+"=1")
	dir := quotaGroup(t)
	in, err1 := child.StdinPipe()
	out, err2 := child.StdoutPipe()
	if err := errors.Join(err1, err2, child.Start()); err != nil {
		t.Fatal(err)
	}
	err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(child.Process.Pid)), 0o644)
	in.Close() // now it may begin
	b, err2 := io.ReadAll(out)
	if err := errors.Join(err, err2, child.Wait()); err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	var c measure.Cgroup
	if err := json.Unmarshal([]byte(line), &c); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	if show(c.QuotaCPUs) != 0.2 || c.Throttled == nil || *c.Throttled == 0 || c.ThrottledNs == nil || *c.ThrottledNs == 0 || !strings.HasSuffix(c.Path, filepath.Base(dir)) {
		t.Errorf("read as %s", line)
	}
}

// limited uses more CPU than its quota, and prints the counters of its group.
func limited(t *testing.T) {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		t.Fatal(err)
	}
	var n notes
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); {
		if c := New().fs.cgroup(&n); c != nil && c.Throttled != nil && *c.Throttled > 0 && c.ThrottledNs != nil && *c.ThrottledNs > 0 { // the time follows the count
			break
		}
	}
	c := New().fs.cgroup(&n)
	if err := json.NewEncoder(os.Stdout).Encode(c); err != nil {
		t.Fatal(err)
	}
}

// quotaGroup creates a group below this process's own, for the duration of
// the test.
func quotaGroup(t *testing.T) string {
	t.Helper()
	f := New().fs
	groups, err1 := tree.Parsed(f.Read, "proc/self/cgroup", parseCgroup)
	mounts, err2 := tree.Parsed(f.Read, "proc/self/mountinfo", parseMountInfo)
	if err := errors.Join(err1, err2); err != nil {
		t.Skip(err)
	}
	l, err := f.levelsOf(groups, mounts, "cpu")
	if err != nil {
		t.Skip(err)
	}
	dir := filepath.Join("/", l.dirs[0], "thru-host-test-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skip("needs the right to make control groups: ", err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	name, quota := "cpu.max", "20000 100000"
	if l.version == 1 {
		name, quota = "cpu.cfs_quota_us", "20000"
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(quota), 0o644); err != nil {
		t.Skip("the group cannot be given a quota: ", err)
	}
	return dir
}

// The rules of a network namespace are counted as `nft` created them, without
// those of the host's own.
func TestRulesOfANamespace(t *testing.T) {
	const rules = `
table inet hm {
	chain in {
		type filter hook input priority 0
		tcp dport 22 accept
		tcp dport 80 accept
		jump more
	}
	chain more {
		ip saddr 192.0.2.1 drop
	}
}
table ip six {
	chain out {
		type filter hook output priority 0
	}
}
`
	type seen struct {
		err            error
		empty, w, with *measure.Firewall
	}
	got := make(chan seen)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
			got <- seen{err: err}
			return
		}
		var s seen
		nft := func(text string) {
			c := exec.Command("nft", "-f", "-")
			c.Stdin = strings.NewReader(text)
			s.err = errors.Join(s.err, c.Run())
		}
		h := New()
		s.empty = h.firewall(&notes{})
		nft(rules)
		s.w = h.firewall(&notes{})
		nft("add rule inet hm more ct state invalid drop\n")
		s.with = h.firewall(&notes{})
		got <- s
	}()
	s := <-got
	if s.err != nil {
		t.Skipf("needs nft and the right to make a network namespace: %v", s.err)
	}
	if s.empty == nil || show(s.empty.Tables) != 0 || show(s.empty.Rules) != 0 {
		t.Errorf("a new namespace has %+v", s.empty)
	}
	if w := s.w; w == nil || show(w.Tables) != 2 || show(w.Chains) != 2 || show(w.Rules) != 4 || show(w.LongestChain) != 3 || show(w.Conntrack) != false {
		t.Errorf("the rules are counted as %+v", w)
	}
	if w := s.with; w == nil || show(w.Rules) != 5 || show(w.Conntrack) != true {
		t.Errorf("with a rule about connections: %+v", w)
	}
}

// Tables of legacy iptables are counted with their policies: each of the
// three chains has one, and the table an end.
func TestLegacyRulesOfANamespace(t *testing.T) {
	type seen struct {
		err error
		w   *measure.Firewall
		n   notes
	}
	got := make(chan seen)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		s := seen{err: syscall.Unshare(syscall.CLONE_NEWNET)}
		for _, program := range []string{"iptables-legacy", "ip6tables-legacy"} {
			if s.err == nil {
				s.err = exec.Command(program, "-A", "INPUT", "-p", "tcp", "-j", "ACCEPT").Run()
			}
		}
		s.w = New().firewall(&s.n)
		got <- s
	}()
	s := <-got
	if s.err != nil {
		t.Skipf("needs iptables-legacy and the right to make a network namespace: %v", s.err)
	}
	if s.w == nil || strings.Join(s.w.Legacy, ",") != "ip filter,ip6 filter" || show(s.w.LegacyRules) != 10 {
		t.Errorf("%+v, %v", s.w, s.n)
	}
}
