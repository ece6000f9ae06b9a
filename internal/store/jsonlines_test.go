package store

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"thru/internal/measure"
)

const small = `{"schema":"thru.result/1"}`

func TestLongLines(t *testing.T) {
	long := `{"schema":"thru.result/1","thru_version":"` + strings.Repeat("x", 200_000) + `"}`
	for _, c := range []struct {
		name, text string
		kept       int
		bad        []BadLine
	}{
		{"between", small + "\n" + long + "\n" + small + "\n", 2, []BadLine{{2, "it is longer than 100 bytes"}}},
		{"last, not ended", small + "\n" + long, 1, []BadLine{{2, "it is longer than 100 bytes"}}},
		{"just fits", strings.Repeat(" ", 99-len(small)) + small + "\n", 1, nil},
		{"just not", strings.Repeat(" ", 100-len(small)) + small + "\n", 0, []BadLine{{1, "it is longer than 100 bytes"}}},
		{"as long as the buffer", strings.Repeat(" ", 64<<10) + "\n" + small, 1, []BadLine{{1, "it is longer than 100 bytes"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			done, err := importLines(context.Background(), strings.NewReader(c.text), Memory(), 100)
			if d := cmp.Diff(Imported{Kept: c.kept, Bad: len(c.bad), Left: c.bad}, done); d != "" || err != nil {
				t.Errorf("%v\n%s", err, d)
			}
		})
	}
}

// Of many bad lines the first are named, and all are counted.
func TestManyBadLines(t *testing.T) {
	done, err := Import(context.Background(), strings.NewReader(strings.Repeat("x\n", 1000)+small), Memory())
	if err != nil || done.Kept != 1 || done.Bad != 1000 || len(done.Left) != mostNamed {
		t.Errorf("%d kept, %d bad, %d named, %v", done.Kept, done.Bad, len(done.Left), err)
	}
}

// What could be read before reading failed is kept.
func TestReadingFails(t *testing.T) {
	s, broken := Memory(), errors.New("broken")
	r := io.MultiReader(strings.NewReader(small+"\n"+small[:10]), iotest.ErrReader(broken))
	if done, err := Import(context.Background(), r, s); !errors.Is(err, broken) || done.Kept != 1 {
		t.Errorf("%+v, %v", done, err)
	}
}

// A store that fails ends an import: its lines are not to blame.
func TestStoreFails(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if done, err := Import(ctx, strings.NewReader(small), Memory()); !errors.Is(err, context.Canceled) || done.Bad != 0 {
		t.Errorf("%+v, %v", done, err)
	}
}

func TestEntryOf(t *testing.T) {
	name := func(s string) *string { return &s }
	rate := func(v float64) *measure.Figure { return &measure.Figure{Value: v} }
	asks := measure.Spec{Traffic: measure.RR}
	for _, c := range []struct {
		name string
		doc  measure.Document
		is   func(Entry) bool
	}{
		{"one name twice", measure.Document{EndPoints: []measure.EndPoint{{Name: "db1", Facts: &measure.Facts{Hostname: name("db1")}}, {Name: "web"}}},
			func(e Entry) bool { return slices.Equal(e.Hosts, []string{"db1", "web"}) }},
		{"a host without a name", measure.Document{EndPoints: []measure.EndPoint{{}}}, func(e Entry) bool { return len(e.Hosts) == 0 }},
		{"values of a label", measure.Document{Labels: map[string]string{"role": "x"}, EndPoints: []measure.EndPoint{{Labels: map[string]string{"role": "web"}}, {Labels: map[string]string{"role": "db"}}, {Labels: map[string]string{"role": "x"}}}},
			func(e Entry) bool { return e.Labels["role"] == "x, db, web" }},
		{"bulk before requests", measure.Document{Cells: []measure.Cell{{Goodput: rate(1), Spec: asks}, {Goodput: rate(2), Beside: true}, {Goodput: rate(3), Experiment: "window"}, {}, {Goodput: rate(4)}, {Goodput: rate(5)}}},
			func(e Entry) bool { return *e.Goodput == 4 }},
		{"requests alone", measure.Document{Cells: []measure.Cell{{Goodput: rate(1), Spec: asks}, {Goodput: rate(2), Spec: asks}}}, func(e Entry) bool { return *e.Goodput == 1 }},
		{"the base of an explanation", measure.Document{Cells: []measure.Cell{{Goodput: rate(6), Experiment: "base"}}}, func(e Entry) bool { return *e.Goodput == 6 }},
		{"nothing measured", measure.Document{Cells: []measure.Cell{{}}}, func(e Entry) bool { return e.Goodput == nil && e.Verdict == NoVerdict }},
		{"check", measure.Document{Command: "check", Gates: []measure.Gate{{Status: measure.GatePass}}}, func(e Entry) bool { return e.Verdict == Pass }},
		{"check that fails", measure.Document{Command: "check", Gates: []measure.Gate{{Status: measure.GateFail}}, Error: &measure.Error{ExitCode: 3, Message: "no"}},
			func(e Entry) bool { return e.Verdict == Fail && e.Error == "no" }},
		{"check that broke", measure.Document{Command: "check", Gates: []measure.Gate{{}}, Error: &measure.Error{ExitCode: 1}}, func(e Entry) bool { return e.Verdict == NoVerdict && e.Error == "failed" }},
		{"gates of a test", measure.Document{Command: "test", Gates: []measure.Gate{{Status: measure.GatePass}}}, func(e Entry) bool { return e.Verdict == NoVerdict }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if e := EntryOf(&c.doc, ""); !c.is(e) {
				t.Errorf("%+v", e)
			}
		})
	}
}
