package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"thru/internal/access"
	"thru/internal/bus"
)

func signer(t testing.TB) *bus.Signer {
	t.Helper()
	state, err := bus.NewState()
	if err != nil {
		t.Fatal(err)
	}
	s, err := state.Signer()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// event is the n-th of a log.
func event(n int) access.Event {
	who := access.Identity{Name: "anna", Role: access.Operator, Labels: access.Labels{"site": {"berlin"}}, Via: access.ByToken}
	return access.Event{Who: who, From: "10.0.0.5", Verb: fmt.Sprintf("prepare-%d", n), Hosts: []string{"web1"}, Allowed: n%2 == 0, Why: "because \"\x00<"}
}

// write makes a log of n entries in files of at most some bytes, and returns its folder.
func write(t testing.TB, s *bus.Signer, n int, most int64) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "audit")
	l, err := Open(dir, s)
	if err != nil {
		t.Fatal(err)
	}
	l.most = most
	for i := range n {
		if err := l.Append(event(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func verify(t testing.TB, dir string, s *bus.Signer) Report {
	t.Helper()
	r, err := Verify(dir, s.Key)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestChain: entries of several writers at once, of several files and of several starts are one chain.
func TestChain(t *testing.T) {
	s := signer(t)
	dir := write(t, s, 20, 2000)
	l, err := Open(dir, s)
	if err != nil {
		t.Fatal(err)
	}
	l.most = 2000
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			if err := l.Append(event(i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(event(0)); err == nil {
		t.Error("a closed log takes an entry")
	}
	r := verify(t, dir, s)
	if r.Entries != 70 || r.First != 1 || r.Last != 70 || r.Signed != 70 || len(r.Faults)+len(r.Torn) > 0 {
		t.Errorf("%+v", r)
	}
	names, _ := files(dir)
	if len(names) < 5 {
		t.Errorf("%d files", len(names))
	}
	var seen []Entry
	if err := Read(dir, time.Time{}, func(e Entry, _ []byte) error { seen = append(seen, e); return nil }); err != nil || len(seen) != 70 {
		t.Fatal(len(seen), err)
	}
	if e := seen[1]; e.Who != "anna" || e.Role != "operator" || e.Labels != "site=berlin" || e.How != "token" || e.Verb != "prepare-1" || e.Outcome != Denied || !slices.Equal(e.Hosts, []string{"web1"}) {
		t.Errorf("%+v", e)
	}
	if err := Read(dir, seen[69].At.Add(1), func(Entry, []byte) error { return errors.New("later") }); err != nil {
		t.Error(err)
	}
	if ok, err := Noted(dir, r.Last, r.SHA256); !ok || err != nil {
		t.Error("the newest entry is not found again", err)
	}
	if ok, _ := Noted(dir, 69, r.SHA256); ok {
		t.Error("an entry is found by the hash of another one")
	}
	export := filepath.Join(t.TempDir(), "export")
	b, _ := os.ReadFile(filepath.Join(dir, names[2]))
	os.WriteFile(export, b, 0o600)
	if r, err := VerifyFile(export); err != nil || len(r.Faults) > 0 || r.First != firstOf(names[2]) {
		t.Errorf("%+v %v", r, err)
	}
}

// TestTampering: each change is found, and its line is named.
func TestTampering(t *testing.T) {
	s := signer(t)
	lines := func(b []byte) [][]byte { return bytes.SplitAfter(bytes.TrimSuffix(b, []byte("\n")), []byte("\n")) }
	join := func(all ...[]byte) []byte { return bytes.Join(all, nil) }
	one := fileOf(1)
	tests := []struct {
		name   string
		change func(l [][]byte) []byte
		says   string
	}{
		{"a changed line", func(l [][]byte) []byte {
			l[3] = bytes.Replace(l[3], []byte("anna"), []byte("bert"), 1)
			return join(l...)
		}, "line 4 of " + one + " was changed, or the hash of it in line 5"},
		{"the last line", func(l [][]byte) []byte {
			l[9] = bytes.Replace(l[9], []byte("anna"), []byte("bert"), 1)
			return join(l...)
		}, "entry 10 is not the one of the signed head"},
		{"a removed line", func(l [][]byte) []byte { return join(slices.Delete(l, 3, 4)...) }, "line 4 of " + one + ": entries 4 to 4 before it are missing"},
		{"the first lines", func(l [][]byte) []byte { return join(l[2:]...) }, "line 1 of " + one + ": entries 1 to 2 before it are missing"},
		{"two lines exchanged", func(l [][]byte) []byte { l[3], l[4] = l[4], l[3]; return join(l...) }, "entry 4 comes after entry 5: it was moved"},
		{"a repeated line", func(l [][]byte) []byte { return join(slices.Insert(l, 4, l[3])...) }, "line 5 of " + one + ": entry 4 comes after entry 4"},
		{"a cut line", func(l [][]byte) []byte { l[3] = append(l[3][:40], '\n'); return join(l...) }, "line 4 of " + one + " cannot be read, and was not left by a crash"},
		{"the last lines", func(l [][]byte) []byte { return join(l[:7]...) }, "entries 8 to 10 are missing at the end"},
		{"half of the last line", func(l [][]byte) []byte { return join(append(l[:9], l[9][:20])...) }, "entries 10 to 10 are missing at the end"},
		{"an inserted line", func(l [][]byte) []byte { return join(slices.Insert(l, 4, []byte("{}\n"))...) }, "line 5 of " + one + " cannot be read"},
		{"all", func([][]byte) []byte { return nil }, "entries 1 to 10 are missing at the end"},
		{"a chain made again", func(l [][]byte) []byte {
			c := chain{hash: noHash}
			for i := range l {
				e, err := parse(bytes.TrimSuffix(l[i], []byte("\n")))
				if err != nil {
					t.Fatal(err)
				}
				e.Who = "bert"
				l[i], _ = c.extend(e)
			}
			return join(l...)
		}, "entry 10 is not the one of the signed head"},
	}
	for _, tt := range tests {
		dir := write(t, s, 10, fileBytes)
		path := filepath.Join(dir, one)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, tt.change(lines(b)), 0o600); err != nil {
			t.Fatal(err)
		}
		if r := verify(t, dir, s); !strings.Contains(strings.Join(r.Faults, "\n"), tt.says) {
			t.Errorf("%s: %q", tt.name, r.Faults)
		}
		if l, err := Open(dir, s); err == nil {
			l.Close()
			t.Errorf("%s: the log goes on, and hides it", tt.name)
		}
	}
}

// TestHead: a log is not continued without the head that its own key has signed.
func TestHead(t *testing.T) {
	s, other := signer(t), signer(t)
	for name, change := range map[string]func(dir string){
		"no head": func(dir string) { os.Remove(filepath.Join(dir, headFile)) },
		"another key": func(dir string) {
			h := write(t, other, 10, fileBytes)
			os.Rename(filepath.Join(h, headFile), filepath.Join(dir, headFile))
		},
		"a changed number":     func(dir string) { edit(t, dir, `"seq":10`, `"seq":9`) },
		"no file, but a head":  func(dir string) { os.Remove(filepath.Join(dir, fileOf(1))) },
		"a file without a log": func(dir string) { os.WriteFile(filepath.Join(dir, headFile), []byte("x"), 0o600) },
	} {
		dir := write(t, s, 10, fileBytes)
		change(dir)
		if r := verify(t, dir, s); len(r.Faults) == 0 {
			t.Errorf("%s: nothing is found", name)
		}
		if l, err := Open(dir, s); err == nil {
			l.Close()
			t.Errorf("%s: the log goes on", name)
		}
	}
	dir := write(t, s, 10, fileBytes)
	l, err := Open(dir, other, s.Key) // thru control --rotate
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if r := verify(t, dir, other); len(r.Faults) > 0 || r.Signed != 10 {
		t.Errorf("after another key: %+v", r)
	}
}

func edit(t *testing.T, dir, old, with string) {
	t.Helper()
	path := filepath.Join(dir, headFile)
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, bytes.Replace(b, []byte(old), []byte(with), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestCrash: wherever a crash cuts off the last write, the log verifies, names the incomplete line, and goes on.
func TestCrash(t *testing.T) {
	s := signer(t)
	dir := write(t, s, 3, fileBytes)
	path := filepath.Join(dir, fileOf(1))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c := chain{hash: noHash}
	for line := range bytes.Lines(whole) {
		c.take("x", bytes.TrimSuffix(line, []byte("\n")))
	}
	fourth, err := c.extend(Entry{At: time.Now(), Who: "anna", Verb: "tune", Outcome: Allowed})
	if err != nil {
		t.Fatal(err)
	}
	cuts := []string{"", "\x00\x00\x00", "\n\n", "{}\n\x00"}
	for n := 1; n <= len(fourth); n += 7 {
		cuts = append(cuts, string(fourth[:n]))
	}
	cuts = append(cuts, string(fourth[:len(fourth)-1]), string(fourth))
	for _, left := range cuts {
		if err := os.WriteFile(path, append(slices.Clone(whole), left...), 0o600); err != nil {
			t.Fatal(err)
		}
		isWhole := len(left) >= len(fourth)-1
		isTorn := left != "" && !isWhole
		r := verify(t, dir, s)
		if len(r.Faults) > 0 || (len(r.Torn) == 1) != isTorn || isTorn && r.Torn[0] != "line 4 of "+fileOf(1) {
			t.Fatalf("%q: %+v", left, r)
		}
		l, err := Open(dir, s)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(l.Append(event(4)), l.Append(event(5)), l.Close()); err != nil {
			t.Fatal(err)
		}
		want := int64(5)
		if isWhole {
			want = 6
		}
		if r = verify(t, dir, s); len(r.Faults) > 0 || r.Entries != want || (len(r.Torn) == 1) != isTorn {
			t.Fatalf("%q, continued: %+v", left, r)
		}
		os.Remove(filepath.Join(dir, headFile))
		dir = write(t, s, 0, fileBytes) // the head of the next round must not know the entries of this one
		path = filepath.Join(dir, fileOf(1))
		h := head{Seq: 3, SHA256: hashOf(bytes.TrimSuffix(bytes.SplitAfter(whole, []byte("\n"))[2], []byte("\n"))), At: time.Now(), Key: s.Key}
		h.Signature, _ = s.Sign(h.text())
		os.WriteFile(filepath.Join(dir, headFile), jsonOf(t, h), 0o600)
	}
}

// TestCrashAtRotation: an empty newest file continues the chain of the one before.
func TestCrashAtRotation(t *testing.T) {
	s := signer(t)
	dir := write(t, s, 3, fileBytes)
	if err := os.WriteFile(filepath.Join(dir, fileOf(4)), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Open(dir, s)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Append(event(4)), l.Close()); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, dir, s); r.Entries != 4 || len(r.Faults)+len(r.Torn) > 0 {
		t.Errorf("%+v", r)
	}
}

// TestFullDisk: an entry that cannot be written is an error, and the chain goes on when there is room.
func TestFullDisk(t *testing.T) {
	s := signer(t)
	dir := filepath.Join(t.TempDir(), "audit")
	l, err := Open(dir, s)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Append(event(1)); err != nil {
		t.Fatal(err)
	}
	l.file.Close() // as every write fails from now on
	if err := l.Append(event(2)); err == nil {
		t.Error("an entry that is not written is reported as written")
	}
	if err := errors.Join(l.Append(event(3)), l.Close()); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, dir, s); r.Entries != 2 || len(r.Faults) > 0 {
		t.Errorf("%+v", r)
	}
}

// FuzzVerify: no bytes of a log end the program, and what differs from the log that was written is found.
func FuzzVerify(f *testing.F) {
	whole, c := []byte(nil), chain{hash: noHash}
	for i := range 5 {
		line, err := c.extend(Entry{At: time.Unix(int64(i), 0), Who: "anna", Verb: "tune", Outcome: Allowed})
		if err != nil {
			f.Fatal(err)
		}
		whole = append(whole, line...)
	}
	h := head{Seq: c.seq, SHA256: c.hash}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte("{\"seq\":1}\n\n\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := chain{hash: noHash, watch: h.Seq}
		if err := c.follow(bytes.NewReader(b), fileOf(1), func(Entry, []byte) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if c.reaches(h); len(c.faults) == 0 && !bytes.HasPrefix(append(slices.Clone(b), '\n'), whole) {
			t.Errorf("%q is not found", b)
		}
	})
}

func jsonOf(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestLongEntry: an entry with the longest texts, each character escaped, is still a line that can be read.
func TestLongEntry(t *testing.T) {
	s := signer(t)
	dir := filepath.Join(t.TempDir(), "audit")
	l, err := Open(dir, s)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("\x01", lineBytes)
	who := access.Identity{Name: long, Role: access.Viewer, Labels: access.Labels{long: {long}}, Via: access.ByToken}
	hosts := slices.Repeat([]string{strings.Repeat("h", 64)}, 1000)
	if err := errors.Join(l.Append(access.Event{Who: who, Verb: long, Hosts: hosts, Why: long}), l.Append(event(1)), l.Close()); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, dir, s); r.Entries != 2 || len(r.Faults)+len(r.Torn) > 0 {
		t.Errorf("%+v", r)
	}
}
