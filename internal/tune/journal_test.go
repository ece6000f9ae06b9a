package tune

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"thru/internal/fault"
	"thru/internal/measure"
)

func lines(t *testing.T, all ...entry) []byte {
	t.Helper()
	var b []byte
	for _, e := range all {
		line, err := e.encode()
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, line...)
	}
	return b
}

func TestRecord(t *testing.T) {
	b := lines(t, entry{Line: lineBegin, Owner: `a "b"`, Boot: "x", Namespace: 7},
		entry{Line: lineChange, Number: 1, Knob: "cc", Value: "cubic", Before: "bbr\nx"}, entry{Line: lineDone, Number: 1, Found: "cubic"},
		entry{Line: lineChange, Number: 2, Knob: "route-congestion", Interface: "10.0.0.0/8", Before: "", Value: "cubic"},
		entry{Line: lineUndo, Number: 1}, entry{Line: lineUndone, Number: 1, Outcome: measure.Undone}, entry{Line: lineEnd, Stays: []int64{2}})
	r, whole, err := readRecord(bytes.NewReader(append(bytes.Clone(b), `{"line":"cha`...)))
	if err != nil || whole != int64(len(b)) || len(r.damaged) > 0 || !r.ended || r.begin.Owner != `a "b"` || r.begin.Namespace != 7 {
		t.Fatalf("%+v %d %v", r, whole, err)
	}
	want := []*change{
		{Changed: measure.Changed{Number: 1, Setting: measure.Setting{Knob: "cc", Value: "cubic"}, Before: "bbr\nx", Found: "cubic", Outcome: measure.Undone}, made: true, undoing: true, closed: true},
		{Changed: measure.Changed{Number: 2, Setting: measure.Setting{Knob: "route-congestion", Interface: "10.0.0.0/8", Value: "cubic"}}},
	}
	if !reflect.DeepEqual(r.changes, want) {
		t.Errorf("%+v %+v", r.changes[0], r.changes[1])
	}
	if open := r.open(); len(open) != 1 || open[0].Number != 2 {
		t.Error(open)
	}
}

// TestDamage: every changed byte of a journal is detected, and no line is
// misread.
func TestDamage(t *testing.T) {
	b := lines(t, entry{Line: lineBegin, Boot: "x"}, entry{Line: lineChange, Number: 1, Knob: "cc", Value: "cubic", Before: "bbr"}, entry{Line: lineDone, Number: 1, Found: "cubic"})
	for i := range b {
		bad := bytes.Clone(b)
		bad[i] ^= 1
		r, whole, err := readRecord(bytes.NewReader(bad))
		if err != nil || len(r.damaged) == 0 && whole == int64(len(b)) {
			t.Errorf("byte %d: %+v %v", i, r, err)
		}
	}
	for name, order := range map[string][]byte{
		"begins twice":  lines(t, entry{Line: lineBegin}, entry{Line: lineBegin}),
		"twice":         lines(t, entry{Line: lineBegin}, entry{Line: lineChange, Number: 1, Knob: "a"}, entry{Line: lineChange, Number: 1, Knob: "b"}),
		"of nothing":    lines(t, entry{Line: lineBegin}, entry{Line: lineDone, Number: 1}),
		"of no knob":    lines(t, entry{Line: lineBegin}, entry{Line: lineChange, Number: 1}),
		"another thing": lines(t, entry{Line: lineBegin}, entry{Line: "more"}),
		"no JSON":       []byte("hello\n"),
	} {
		if r, _, err := readRecord(bytes.NewReader(order)); err != nil || len(r.damaged) != 1 {
			t.Errorf("%s: %+v %v", name, r, err)
		}
	}
}

// TestDamagedJournal: readable changes are undone, unreadable ones are
// reported.
func TestDamagedJournal(t *testing.T) {
	dir, f, c := t.TempDir(), newFake(settings()), conf()
	d := tuned(t, dir, f, c)
	for _, s := range []target{{"cc", ""}, {"mtu", "eth0"}, {"wmem", ""}} {
		alter(t, d, s.knob, s.iface, "other")
	}
	if err := d.End("a"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "000001.jsonl")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.SplitAfter(string(b), "\n")
	all[3] = strings.Replace(all[3], "1500", "1400", 1) // the change of mtu
	all[6] = "\x00\x00\x00\n"                           // that wmem was made
	if err := os.WriteFile(path, []byte(strings.Join(all, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	f.values[target{"wmem", ""}] = "foreign"
	r, err := open(t, dir, f, c).Rollback()
	if err != nil || outcomes(r) != "wmem changed, cc undone,  failed" { // its change, its done line, and that of wmem
		t.Fatal(outcomes(r), err)
	}
	if !strings.Contains(r[2].Error, path+" is damaged (line 4 5 7)") || f.values[target{"mtu", "eth0"}] != "other" {
		t.Error(r[2].Error)
	}
	d = tuned(t, dir, f, c) // which does not block the undo of others
	d.Gone("a")
	if again, err := d.Rollback(); err != nil || outcomes(again) != " failed" { // nor is it forgotten
		t.Error(outcomes(again), err)
	}
}

// TestDamagedBegin: a journal whose host is unreadable belongs to no host: it
// is reported, and not touched.
func TestDamagedBegin(t *testing.T) {
	dir, f, c := t.TempDir(), newFake(settings()), conf()
	life(open(t, dir, f, c), func(d *Tuner) { must(d.Begin("a", "alice")); setAll(d, measure.Setting{Knob: "cc", Value: "cubic"}) })
	path := filepath.Join(dir, "000001.jsonl")
	b, err := os.ReadFile(path)
	must(err)
	b[10] ^= 1
	b = append(b, `{"line":"cut`...)
	must(os.WriteFile(path, b, 0o600))
	d := open(t, dir, f, c)
	if some, err := d.Recover(); err != nil || len(some) > 0 || len(d.Open()) > 0 {
		t.Error(outcomes(some), err, d.Open())
	}
	d = tuned(t, dir, f, c)
	d.Gone("a")
	for range 2 {
		if all, err := d.Rollback(); err != nil || outcomes(all) != " failed" || !strings.Contains(all[0].Error, path+" is damaged") {
			t.Error(all, err)
		}
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, b) || f.values[target{"cc", ""}] != "cubic" {
		t.Errorf("it is not left: %s %v", now, err)
	}
}

// TestUnreadable: a journal that is too long to be read does not block
// tuning, and each rollback reports it.
func TestUnreadable(t *testing.T) {
	dir, f, c := t.TempDir(), newFake(settings()), conf()
	path := filepath.Join(dir, "000007.jsonl")
	must(os.WriteFile(path, nil, 0o600))
	must(os.Truncate(path, maxJournal+1))
	d := tuned(t, dir, f, c)
	alter(t, d, "cc", "", "cubic")
	must(d.End("a"))
	if all, err := d.Rollback(); err != nil || outcomes(all) != "cc undone,  failed" || !strings.Contains(all[1].Error, path+": it is longer") {
		t.Error(all, err)
	}
}

// TestNumbers: a file with an impossible journal number is ignored, and the
// next journal can be found again.
func TestNumbers(t *testing.T) {
	dir, f, c := t.TempDir(), newFake(settings()), conf()
	must(os.MkdirAll(filepath.Join(dir, doneFolder), 0o700))
	for _, name := range []string{"549755813887.jsonl", "9223372036854775807.jsonl", "1000000000.jsonl", "-1.jsonl"} {
		must(os.WriteFile(filepath.Join(dir, doneFolder, name), nil, 0o600))
	}
	d := tuned(t, dir, f, c)
	alter(t, d, "cc", "", "cubic")
	must(d.End("a"))
	if all, err := d.Rollback(); err != nil || outcomes(all) != "cc undone" {
		t.Error(outcomes(all), err)
	}
	must(os.WriteFile(filepath.Join(dir, doneFolder, "999999999.jsonl"), nil, 0o600))
	must(d.Begin("a", "alice"))
	defer d.Gone("a")
	if _, err := d.Alter("a", []measure.Setting{{Knob: "cc", Value: "cubic"}}); err == nil || fault.Hint(err) == "" {
		t.Error("a journal that nobody finds again is made:", err)
	}
}

// TestDoneIsBounded: only the last finished journals are kept.
func TestDoneIsBounded(t *testing.T) {
	dir, f, c := t.TempDir(), newFake(settings()), conf()
	for range doneKept + 3 {
		d := tuned(t, dir, f, c)
		alter(t, d, "cc", "", "cubic")
		d.Gone("a")
	}
	live, done := journals(t, dir)
	if len(live) != 0 || len(done) != doneKept || done[len(done)-1] != fmt.Sprintf("%06d.jsonl", doneKept+3) {
		t.Error(live, done)
	}
}

func TestPersistent(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"etc/sysctl.conf":               "#net.core.rmem_max=1\n; net.core.wmem_max = 3\nnet.core.rmem_maximum = 2\n-net.ipv4.tcp_sack = 0\n",
		"usr/lib/sysctl.d/50-b.conf":    "\n\nnet.core.rmem_max = 9\n",
		"etc/systemd/network/10-a.link": "[Match]\nName=eth0\n[Link]\nMTUBytes=9000\n",
		"etc/systemd/network/20-b.link": "[Link]\nRxChannels = 2\nTCP6SegmentationOffload=no\n",
		"etc/udev/rules.d/7.rules":      `ACTION=="add", KERNEL=="eth1", RUN+="x"`,
	} {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for s, want := range map[target]string{
		{"rmem-max", ""}: "/usr/lib/sysctl.d/50-b.conf", {"wmem-max", ""}: "", {"sack", ""}: "/etc/sysctl.conf", {"mtu", "eth0"}: "/etc/systemd/network/10-a.link",
		{"tso", "eth0"}: "", {"rps", "eth1"}: "/etc/udev/rules.d/7.rules", {"cpu-governor", ""}: "",
	} {
		if got := persistentIn(root, measure.Setting{Knob: s.knob, Interface: s.iface}); got != want {
			t.Errorf("%v: %q, want %q", s, got, want)
		}
	}
	for _, s := range []measure.Setting{{Knob: "channels", Interface: "eth0", Value: "rx 2 tx 2"}, {Knob: "tso", Interface: "eth0", Value: "off"}} { // each has several keys
		if got := persistentIn(root, s); got != "/etc/systemd/network/20-b.link" {
			t.Errorf("%v: %q", s, got)
		}
	}
}

func FuzzRecord(f *testing.F) {
	for _, e := range []entry{{Line: lineBegin, Boot: "x"}, {Line: lineChange, Number: 1, Knob: "cc", Value: "a", Before: "b"}, {Line: lineUndone, Number: 1, Outcome: "undone"}} {
		b, _ := e.encode()
		f.Add(b)
		f.Add(append(bytes.Clone(b), b...))
	}
	f.Add([]byte(`,"sum":"00000000"}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, whole, err := readRecord(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if whole > int64(len(b)) || whole > 0 && b[whole-1] != '\n' {
			t.Errorf("%d of %d bytes are whole lines", whole, len(b))
		}
		for _, c := range r.changes {
			if c.Knob == "" || r.find(c.Number) != c {
				t.Errorf("%+v", c)
			}
		}
		again, _, _ := readRecord(bytes.NewReader(b[:whole]))
		if !reflect.DeepEqual(again, r) {
			t.Error("what is torn has changed what is whole")
		}
	})
}
