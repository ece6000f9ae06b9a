//go:build linux || darwin || freebsd || windows

package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"thru/internal/fault"
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
		{"between", small + "\n" + long + "\n" + small + "\n", 2, []BadLine{{2, "the line is longer than 100 bytes"}}},
		{"last, not ended", small + "\n" + long, 1, []BadLine{{2, "the line is longer than 100 bytes"}}},
		{"just fits", strings.Repeat(" ", 99-len(small)) + small + "\n", 1, nil},
		{"just not", strings.Repeat(" ", 100-len(small)) + small + "\n", 0, []BadLine{{1, "the line is longer than 100 bytes"}}},
		{"as long as the buffer", strings.Repeat(" ", 64<<10) + "\n" + small, 1, []BadLine{{1, "the line is longer than 100 bytes"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			done, err := importLines(context.Background(), strings.NewReader(c.text), &importer{store: file(t), most: 100})
			if d := cmp.Diff(Imported{Kept: c.kept, Bad: len(c.bad), Left: c.bad}, done); d != "" || err != nil {
				t.Errorf("%v\n%s", err, d)
			}
		})
	}
}

// Of many bad lines the first are listed, and all are counted.
func TestManyBadLines(t *testing.T) {
	done, err := Import(context.Background(), strings.NewReader(small+"\n"+strings.Repeat("x\n", 1000)), file(t), nil)
	if err != nil || done.Kept != 1 || done.Bad != 1000 || len(done.Left) != mostNamed {
		t.Errorf("%d kept, %d bad, %d named, %v", done.Kept, done.Bad, len(done.Left), err)
	}
	other := endlessLines{"{}\n"} // JSON, but not a result
	if done, err := Import(context.Background(), other, file(t), nil); !errors.Is(err, errNoLines) || done.Kept != 0 {
		t.Errorf("%+v, %v", done, err)
	}
}

// The results before a read error are stored.
func TestReadingFails(t *testing.T) {
	s, broken := file(t), errors.New("broken")
	r := io.MultiReader(strings.NewReader(small+"\n"+small[:10]), iotest.ErrReader(broken))
	if done, err := Import(context.Background(), r, s, nil); !errors.Is(err, broken) || done.Kept != 1 {
		t.Errorf("%+v, %v", done, err)
	}
}

// endless is a text without an end.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	p[0] = byte(e)
	for n := 1; n < len(p); n *= 2 {
		copy(p[n:], p[:n])
	}
	return len(p), nil
}

// endlessLines repeats the same line without end.
type endlessLines struct{ line string }

func (e endlessLines) Read(p []byte) (int, error) { return copy(p, e.line), nil }

// A text without an end ends the import, and the results before it are stored.
func TestEndlessText(t *testing.T) {
	for name, begin := range map[string]string{"a line": small + "\n{", "a document": small + "\n"} {
		i := &importer{store: file(t), most: 1000}
		done, err := importLines(context.Background(), io.MultiReader(strings.NewReader(begin), endless(' ')), i)
		if !errors.Is(err, errNoText) || done.Kept != 1 {
			t.Errorf("%s: %+v, %v", name, done, err)
		}
	}
	i := &importer{store: file(t), most: 1000}
	if _, err := importLines(context.Background(), io.MultiReader(strings.NewReader("{\n"), endless(' ')), i); !errors.Is(err, errNoText) {
		t.Errorf("a document of several lines: %v", err)
	}
	for begin, want := range map[string]error{"{\n": errEndless, `{"a":"`: errEndless, "<": errEndless} {
		i := &importer{store: file(t), most: 1000}
		if _, err := importLines(context.Background(), io.MultiReader(strings.NewReader(begin), endless('a')), i); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", begin, err, want)
		}
	}
	if _, err := Import(context.Background(), io.MultiReader(strings.NewReader("{\n"), endless(0)), file(t), nil); !errors.Is(err, errNoText) {
		t.Errorf("zeros: %v", err)
	}
}

// A failing store ends an import without blaming its lines.
func TestStoreFails(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if done, err := Import(ctx, strings.NewReader(small), file(t), nil); !errors.Is(err, context.Canceled) || done.Bad != 0 {
		t.Errorf("%+v, %v", done, err)
	}
}

// A document of several lines is one result, whatever precedes it, and a text in another
// format is one error.
func TestWholeFiles(t *testing.T) {
	indented := "{\n  \"schema\": \"thru.result/1\",\n  \"command\": \"test\"\n}\n"
	for _, c := range []struct {
		name, text string
		kept, bad  int
		err        string
	}{
		{"indented", indented, 1, 0, ""},
		{"of Windows", "\ufeff" + strings.ReplaceAll(indented, "\n", "\r\n"), 1, 0, ""},
		{"an empty line first", "\n" + indented, 1, 0, ""},
		{"lines of Windows", "\ufeff" + small + "\r\n" + small, 2, 0, ""},
		{"cut off", indented[:30], 0, 0, "line 1: unexpected end"},
		{"two of them", indented + indented, 0, 0, "after top-level value"},
		{"too long", "{\n" + strings.Repeat(" ", 2000), 0, 1, ""},
		{"another schema", "{\n\"schema\": \"x\"}", 0, 1, ""},
		{"a page", "<!doctype html>\n<html>\n\n<head>\n<meta>\n", 0, 0, "line 1: invalid character '<'"},
		{"a word", "x", 0, 0, "line 1: invalid character 'x'"},
		{"JSON among it", "x\ny\n[]\nz\n" + small, 1, 4, ""},
		{"nothing", "\n\n", 0, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := &importer{store: file(t), most: 1000}
			done, err := importLines(context.Background(), strings.NewReader(c.text), i)
			if done.Kept != c.kept || done.Bad != c.bad || len(done.Left) != c.bad || (err != nil) != (c.err != "") {
				t.Fatalf("%+v, %v", done, err)
			}
			if err != nil && (!errors.Is(err, errNoLines) || !strings.Contains(err.Error(), c.err) || fault.Hint(err) == "") {
				t.Errorf("%v, hint %q", err, fault.Hint(err))
			}
		})
	}
}

// A document is the same result in one line and in several, and one stored without a
// title gets it later.
func TestTitles(t *testing.T) {
	s, ctx := file(t), context.Background()
	said := func(d *measure.Document) string { return "the answer of " + d.Command }
	for _, c := range []struct {
		text, want string
		title      func(*measure.Document) string
	}{
		{small[:len(small)-1] + `,"command":"test"}`, "", nil},
		{"{\n\"schema\":\"thru.result/1\",\n\"command\":\"test\"\n}\n", "the answer of test", said},
		{`{"title":"given","document":{"schema":"thru.result/1","command":"test"}}`, "the answer of test", said},
	} {
		if done, err := Import(ctx, strings.NewReader(c.text), s, c.title); err != nil || done.Kept != 1 {
			t.Fatalf("%+v, %v", done, err)
		}
		if found, _, err := s.Find(ctx, Filter{}); err != nil || len(found) != 1 || found[0].Title != c.want {
			t.Errorf("%+v, %v; want the title %q", found, err, c.want)
		}
	}
	if done, err := Import(ctx, strings.NewReader(`{"title":"given","document":`+small+`}`), s, said); err != nil || done.Kept != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	if found, _, err := s.Find(ctx, Filter{Text: "given"}); err != nil || len(found) != 1 {
		t.Errorf("%+v, %v", found, err)
	}
}

// Long foreign names do not make an entry long.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("x", 1<<20) + "\x1b[31m"
	doc := &measure.Document{
		Command: long, Thru: long, Labels: map[string]string{long: long}, Plan: &measure.Planned{Name: long}, Error: &measure.Error{Message: long},
		EndPoints: []measure.EndPoint{{Name: long, Facts: &measure.Facts{Hostname: &long}}}, Cells: []measure.Cell{{From: long, To: long}},
	}
	e := EntryOf(doc, long)
	text, err := marshal(e)
	if err != nil || len(text) > 10_000 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if len(e.Hosts) != 1 || len(e.Pairs) != 1 || len(e.Labels) != 1 {
		t.Errorf("%d hosts, %d pairs, %d labels", len(e.Hosts), len(e.Pairs), len(e.Labels))
	}
	if d := cmp.Diff(e, e.bounded()); d != "" {
		t.Errorf("bounded once more it is another:\n%s", d)
	}
	doc.EndPoints = nil
	for i := range mostNames {
		doc.EndPoints = append(doc.EndPoints, measure.EndPoint{Name: fmt.Sprint(i, long[:400])})
	}
	hosts := EntryOf(doc, "").Hosts
	if total := len(strings.Join(hosts, "")); len(hosts) < 1000 || total > mostText {
		t.Errorf("%d hosts, %d bytes", len(hosts), total)
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
		{"bulk before requests", measure.Document{Cells: []measure.Cell{{Goodput: rate(1), Spec: asks}, {Goodput: rate(2), Baseline: true}, {Goodput: rate(3), Experiment: "window"}, {}, {Goodput: rate(4)}, {Goodput: rate(5)}}},
			func(e Entry) bool { return *e.Goodput == 4 }},
		{"requests alone", measure.Document{Cells: []measure.Cell{{Goodput: rate(1), Spec: asks}, {Goodput: rate(2), Spec: asks}}}, func(e Entry) bool { return *e.Goodput == 1 }},
		{"the base of an explanation", measure.Document{Cells: []measure.Cell{{Goodput: rate(6), Experiment: "base"}}}, func(e Entry) bool { return *e.Goodput == 6 }},
		{"a transfer, not the network below it", measure.Document{Cells: []measure.Cell{{From: "b", To: "local", Goodput: rate(9)}}, Transfer: &measure.Transfer{URL: "sftp://anna@files/big", Direction: measure.Download, Runs: []measure.TransferRun{{Bps: rate(3)}, {Bps: rate(2)}, {}}}},
			func(e Entry) bool {
				return *e.Goodput == 2 && slices.Equal(e.Pairs, []string{"files -> local", "b -> local"}) && slices.Contains(e.Hosts, "files")
			}},
		{"a transfer that failed", measure.Document{Cells: []measure.Cell{{Goodput: rate(9)}}, Transfer: &measure.Transfer{URL: "%", Direction: measure.Upload}},
			func(e Entry) bool { return e.Goodput == nil && e.Pairs[0] == "local -> server" }},
		{"nothing measured", measure.Document{Cells: []measure.Cell{{}}}, func(e Entry) bool { return e.Goodput == nil && e.Verdict == NoVerdict }},
		{"passed", measure.Document{Verdict: &measure.Verdict{Pass: true}}, func(e Entry) bool { return e.Verdict == Pass }},
		{"passed, and broke off", measure.Document{Verdict: &measure.Verdict{Pass: true}, Error: &measure.Error{ExitCode: 1, Message: "interrupted"}},
			func(e Entry) bool { return e.Verdict == NoVerdict }},
		{"failed, and broke off", measure.Document{Verdict: &measure.Verdict{}, Error: &measure.Error{ExitCode: 1}}, func(e Entry) bool { return e.Verdict == Fail }},
		{"passed, and a regression", measure.Document{Verdict: &measure.Verdict{Pass: true}, Error: &measure.Error{ExitCode: 3}}, func(e Entry) bool { return e.Verdict == Pass }},
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
