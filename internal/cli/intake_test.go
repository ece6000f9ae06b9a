package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"thru/internal/bus"
)

// A small result that would be large when it is decoded costs the controller
// what it is long.
func TestIntakeOfMuchInLittle(t *testing.T) {
	in, _ := newIntake(t)
	bomb := `{"schema":"thru.result/2","cells":[` + strings.Repeat("{},", 1<<20) + `{}]}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := in.take(bus.Spooled{Agent: "UKEY", ID: "a", Body: []byte(bomb)}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 4*uint64(len(bomb)) {
		t.Errorf("%d bytes took %d of memory", len(bomb), took)
	}
}

// A result of a newer thru is kept for one that reads it, and what is said of
// one is short.
func TestIntakeOfANewerSchema(t *testing.T) {
	in, said := newIntake(t)
	newer := strings.Replace(aResult, "thru.result/2", "thru.result/3", 1)
	newer = strings.Replace(newer, `"cells":[]`, `"cells":[{"from":"local","to":"\u001b[2J`+strings.Repeat("x", 1000)+`"},{"from":"b","to":"c"}]`, 1)
	if err := in.take(bus.Spooled{Agent: "UKEY", ID: "a", Body: []byte(newer)}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(in.dir, "UKEY", "a"+resultEnding))
	if err != nil || string(got) != newer {
		t.Errorf("%v: %q", err, got)
	}
	if text := said.String(); !strings.Contains(text, "local -> ") || strings.Contains(text, "\x1b") || strings.Contains(text, strings.Repeat("x", 500)) {
		t.Errorf("said %q", text)
	}
}
