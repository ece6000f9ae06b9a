package library

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"thru/internal/bus"
	"thru/internal/cli/console"
	"thru/internal/fault"
)

// A small result that would be large when decoded costs the controller only its length.
func TestIntakeOfMuchInLittle(t *testing.T) {
	in, _ := newIntake(t)
	bomb := `{"schema":"thru.result/2","cells":[` + strings.Repeat("{},", 1<<20) + `{}]}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := in.Take(bus.Spooled{Agent: "UKEY", ID: "a", Body: []byte(bomb)}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 4*uint64(len(bomb)) {
		t.Errorf("%d bytes took %d of memory", len(bomb), took)
	}
}

// A result of a newer thru is kept for one that reads it, and its description is short.
func TestIntakeOfANewerSchema(t *testing.T) {
	in, said := newIntake(t)
	newer := strings.Replace(aResult, "thru.result/2", "thru.result/3", 1)
	newer = strings.Replace(newer, `"cells":[]`, `"cells":[{"from":"local","to":"\u001b[2J`+strings.Repeat("x", 1000)+`"},{"from":"b","to":"c"}]`, 1)
	if err := in.Take(bus.Spooled{Agent: "UKEY", ID: "a", Body: []byte(newer)}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(in.Dir, "UKEY", "a"+resultEnding))
	if err != nil || string(got) != newer {
		t.Errorf("%v: %q", err, got)
	}
	if text := said.String(); !strings.Contains(text, "local -> ") || strings.Contains(text, "\x1b") || strings.Contains(text, strings.Repeat("x", 500)) {
		t.Errorf("warnings %q", text)
	}
}

const aResult = `{"schema":"thru.result/2","thru_version":"x","command":"serve","started_at":"2026-11-22T14:00:00Z","elapsed_ns":1,"error":null,"end_points":[],"cells":[]}`

// newIntake returns an Intake into a folder, with its messages in the buffer.
func newIntake(t *testing.T) (*Intake, *bytes.Buffer) {
	t.Helper()
	var said bytes.Buffer
	return &Intake{Dir: t.TempDir(), Notify: &console.EventLog{On: &console.Console{Out: &said, Err: &said}}}, &said
}

// Names in a host's result lead to no file outside its own folder.
func TestIntake(t *testing.T) {
	in, said := newIntake(t)
	for _, c := range []struct{ name, id, file string }{
		{"web1", "20261122T140000.000000000Z-ABC", "web1/20261122T140000.000000000Z-ABC.thru.json"},
		{"web1", "..%2f..%2fx y", "web1/_2f.._2fx_y.thru.json"},
		{"", "a", "UKEY/a.thru.json"},
	} {
		for range 2 { // the ack was lost, so it comes again
			if err := in.Take(bus.Spooled{Agent: "UKEY", Name: c.name, ID: c.id, Body: []byte(aResult)}); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(filepath.Join(in.Dir, filepath.FromSlash(c.file)))
		if err != nil || string(got) != aResult {
			t.Errorf("%v: %q", err, got)
		}
	}
	said.Reset()
	if err := in.Take(bus.Spooled{Agent: "UKEY", Name: "web1", ID: "bad", Body: []byte("\x1b[2J{")}); err != nil {
		t.Errorf("what can never be used comes again for ever: %v", err)
	}
	if text := said.String(); !strings.Contains(text, "not a result") || strings.Contains(text, "\x1b") {
		t.Errorf("warnings %q", text)
	}
}

// A full disk is reported once, and the result is not acknowledged.
func TestIntakeCannotWrite(t *testing.T) {
	in, said := newIntake(t)
	if err := os.WriteFile(filepath.Join(in.Dir, "web1"), nil, 0o600); err != nil { // in place of the folder
		t.Fatal(err)
	}
	for range 2 {
		if err := in.Take(bus.Spooled{Name: "web1", ID: "a", Body: []byte(aResult)}); err == nil || fault.Hint(err) == "" {
			t.Errorf("confirmed, or no hint: %v", err)
		}
	}
	if n := strings.Count(said.String(), "cannot store the results"); n != 1 {
		t.Errorf("warned %d times: %q", n, said.String())
	}
}

// The results of a host are limited, and those of others stay.
func TestIntakeIsBounded(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"1", "2", "3"} {
		f, err := os.Create(filepath.Join(dir, name+resultEnding))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(bytesOfHost / 2); err != nil { // uses no disk space
			t.Fatal(err)
		}
		f.Close()
	}
	if err := makeRoom(dir, 10, bytesOfHost); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(left) != 1 || filepath.Base(left[0]) != "3"+resultEnding {
		t.Errorf("left: %q", left)
	}
}

// Incomplete files of a crash are removed, also those of an earlier thru; files that may
// still be written, and other files, stay.
func TestLeftoversGo(t *testing.T) {
	dir, old := t.TempDir(), time.Now().Add(-2*time.Hour)
	for name, at := range map[string]time.Time{".new-1": old, ".part1": old, ".new-2": time.Now(), ".part2": time.Now(), "notes": old, "1" + resultEnding: old} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := makeRoom(dir, 1, bytesOfHost); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{".new-2", ".part2", "1" + resultEnding, "notes"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left %q, %v, want %q", left, err, want)
	}
}
