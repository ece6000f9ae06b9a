package host

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestHolders finds the owner of a socket in a recorded tree.
func TestHolders(t *testing.T) {
	root := t.TempDir()
	for pid, links := range map[string][]string{
		"17": {"socket:[1001]", "/dev/null", "socket:[1002]"}, "203": {"socket:[1001]", "socket:[1001]"}, "9": {"pipe:[1001]", "socket:[x]"},
	} {
		dir := filepath.Join(root, "proc", pid, "fd")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for i, to := range links {
			if err := os.Symlink(to, filepath.Join(dir, string(rune('0'+i)))); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(root, "proc", pid, "comm"), []byte("server"+pid+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := At(root).Holders(map[uint32]bool{1001: true, 4: true})
	want := []Holder{{17, "server17"}, {203, "server203"}}
	if err != nil || len(got) != 1 || !slices.Equal(got[1001], want) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := At(filepath.Join(root, "none")).Holders(nil); err == nil {
		t.Error("a host without /proc has holders")
	}
}

// TestHoldersLive finds this process by its own socket.
func TestHoldersLive(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	h, pid := New(), os.Getpid()
	mine := map[uint32]bool{}
	for _, inode := range h.fs.socketsOf(pid) {
		mine[inode] = true
	}
	got, err := h.Holders(mine)
	if err != nil || len(mine) == 0 {
		t.Fatal(mine, err)
	}
	for inode := range mine {
		if !slices.ContainsFunc(got[inode], func(x Holder) bool { return x.PID == pid && x.Name != "" }) {
			t.Errorf("socket %d is held by %v, not by this process", inode, got[inode])
		}
	}
	if p, err := h.Process(pid); err != nil || p.UserNs+p.SystemNs < 0 {
		t.Error(p, err)
	}
}

func TestSocketInode(t *testing.T) {
	for in, want := range map[string]uint32{"socket:[12]": 12, "socket:[0]": 0, "socket:[4294967295]": 1<<32 - 1} {
		if got, ok := socketInode(in); got != want || !ok {
			t.Errorf("%s: %d, %v", in, got, ok)
		}
	}
	for _, in := range []string{"", "socket:[", "socket:[]", "socket:[-1]", "socket:[4294967296]", "pipe:[12]", "socket:[12"} {
		if got, ok := socketInode(in); ok {
			t.Errorf("%q: %d", in, got)
		}
	}
}

// TestQuotaOf reads the quota of another process's control group.
func TestQuotaOf(t *testing.T) {
	h := Host{fs: files(t, map[string]string{
		"proc/17/cgroup": "0::/web", "proc/18/cgroup": "0::/", "proc/self/mountinfo": "30 25 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw",
		"sys/fs/cgroup/web/cpu.max": "20000 100000\n", "sys/fs/cgroup/web/cpu.stat": "usage_usec 5\nnr_periods 40\nnr_throttled 30\nthrottled_usec 7\n",
	})}
	if q, err := h.QuotaOf(17); err != nil || q == nil || q.CPUs != 0.2 || q.Periods != 40 || q.Throttled != 30 || q.ThrottledNs != 7000 {
		t.Errorf("%+v, %v", q, err)
	}
	for _, pid := range []int{18, 19} {
		if q, err := h.QuotaOf(pid); q != nil || err != nil {
			t.Errorf("%d: %+v, %v", pid, q, err)
		}
	}
}

// TestBorn: a process starts after boot, and after its parent.
func TestBorn(t *testing.T) {
	h := New()
	up, err := h.Up()
	if err != nil {
		t.Fatal(err)
	}
	me, err := h.Born(os.Getpid())
	parent, perr := h.Born(os.Getppid())
	if err != nil || perr != nil || me <= 0 || me > up || parent > me {
		t.Errorf("this one at %v (%v), its parent at %v (%v), of %v", me, err, parent, perr, up)
	}
	for text, want := range map[string]time.Duration{
		"7 (a b) c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 1234 20": 12340 * time.Millisecond, "7 (x) S 1 2 3": 0, "": 0,
		"7 (x) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 -4": 0, "7 (x) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 9223372036854775807": 0,
	} {
		if got, err := parseBorn(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]time.Duration{"12.50 40.00\n": 12500 * time.Millisecond, "": 0, "-1.0 2": 0, "x": 0} {
		if got, err := parseUp(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
