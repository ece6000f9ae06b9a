package runs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"thru/internal/fault"
	"thru/internal/measure"
)

// stateAt sets the state folder to one of the test.
func stateAt(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	return filepath.Join(dir, "thru", "runs")
}

// documentOf returns the document of a run of three steps.
func documentOf(done int) *measure.Document {
	return &measure.Document{Schema: measure.Schema, Command: "run", StartedAt: time.Now(), Plan: &measure.Planned{Name: "x", Steps: 3, Done: done}}
}

func begun(t *testing.T, dir, plan, text string) *Journal {
	t.Helper()
	j, err := Begin(dir, []byte(text), Head{Command: "run", Plan: plan, Steps: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(j.Close)
	return j
}

// A run resumes from the last save.
func TestJournalGoesOn(t *testing.T) {
	runs := stateAt(t)
	j := begun(t, "", "my plan.yaml", "thru: 1\n")
	if !strings.HasSuffix(j.Head.Run, "-my-plan") {
		t.Errorf("the run is named %s", j.Head.Run)
	}
	j.save(documentOf(1))
	j.save(documentOf(2))
	if _, _, err := Resume(j.Dir); err == nil {
		t.Error("a run is continued that is under way")
	}
	j.Close()
	dir, err := Find(runs, "", "", "other/my plan.yaml", Checksum([]byte("thru: 1\n")))
	if err != nil || dir != j.Dir {
		t.Fatalf("%s, %v", dir, err)
	}
	again, text, err := Resume(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if d := again.Before; string(text) != "thru: 1\n" || d == nil || d.Plan.Done != 2 || again.Head.Run != j.Head.Run || len(again.Head.Began) != 2 {
		t.Errorf("continued with %q, %+v", text, d)
	}
	doc := documentOf(3)
	again.Head.Ended = true
	again.save(doc)
	if again.Head.Unfinished() || again.Head.Done != 3 {
		t.Errorf("after the last step: %+v", again.Head)
	}
}

// The run to resume is the last unfinished one of the given plan.
func TestFindRun(t *testing.T) {
	runs := stateAt(t)
	for _, r := range []struct {
		plan, text string
		done       int
	}{{"a.yaml", "a", 1}, {"a.yaml", "a", 2}, {"b.yaml", "b", 1}, {"a.yaml", "a", 3}} {
		j := begun(t, "", r.plan, r.text)
		j.Head.Began[0] = time.Unix(int64(r.done)+j.Head.Began[0].Unix(), 0) // so that runs within one second have an order
		j.Head.Ended = r.done == 3
		j.save(documentOf(r.done))
		j.Close()
	}
	a, b := Checksum([]byte("a")), Checksum([]byte("b"))
	last := listRuns(runs)[0].Run
	if err := os.MkdirAll(filepath.Join(runs, "broken"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(runs, "broken", HeadName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, keep, run, file, sum, want, err string
	}{
		{"of a plan", "", "", "a.yaml", a, "-a-2", ""},
		{"of any", "", "", "", "", "-a-2", ""},
		{"of another", "", "", "b.yaml", b, "-b", ""},
		{"its text has changed", "", "", "b.yaml", Checksum([]byte("c")), "", "b.yaml has changed since the run"},
		{"there is none", "", "", "c.yaml", Checksum([]byte("c")), "", "no run of c.yaml was interrupted"},
		{"no such run", "", "nosuch", "", "", "", "holds no run"},
		{"no such folder", t.TempDir(), "", "", "", "", "holds no run"},
		{"by its folder", "", filepath.Join(runs, last), "", "", last, ""},
		{"by its document, as it is printed", "", filepath.Join(runs, last, DocumentName), "", "", last, ""},
		{"twice", t.TempDir(), last, "", "", "", "name two runs"},
		{"damaged", "", "broken", "", "", "", "run.json is damaged"},
	} {
		dir, err := Find(runs, tt.keep, tt.run, tt.file, tt.sum)
		switch {
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || fault.Code(err) != fault.Usage || fault.Hint(err) == ""):
			t.Errorf("%s: %s, %v", tt.name, dir, err)
		case tt.err == "" && (err != nil || !strings.HasSuffix(dir, tt.want)):
			t.Errorf("%s: %s, %v", tt.name, dir, err)
		}
	}
}

// Of many runs the newest are kept, and those in progress whatever their age.
func TestOldRunsGo(t *testing.T) {
	runs := stateAt(t)
	first := begun(t, "", "under-way.yaml", "x")
	measured := begun(t, "", "measured.yaml", "x")
	measured.save(documentOf(1))
	measured.Close()
	for range mostRuns + 5 {
		begun(t, "", "many.yaml", "x").Close()
	}
	heads := listRuns(runs)
	if len(heads) > mostRuns+1 || len(heads) < mostRuns {
		t.Errorf("%d runs are kept", len(heads))
	}
	for _, j := range []*Journal{first, measured} {
		if _, err := os.Stat(filepath.Join(j.Dir, planName)); err != nil {
			t.Error(err)
		}
	}
}

// A named folder that holds a run is not used, and a damaged one is an error.
func TestJournalRefuses(t *testing.T) {
	stateAt(t)
	dir := filepath.Join(t.TempDir(), "deep", "kept")
	j := begun(t, dir, "a.yaml", "a")
	j.save(documentOf(1))
	j.Close()
	if _, err := Begin(dir, []byte("b"), Head{}); fault.Code(err) != fault.Usage {
		t.Errorf("a run is written over: %v", err)
	}
	for _, name := range []string{planName, DocumentName} {
		mine := t.TempDir()
		if err := os.WriteFile(filepath.Join(mine, name), []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Begin(mine, []byte("b"), Head{})
		if text, _ := os.ReadFile(filepath.Join(mine, name)); fault.Code(err) != fault.Usage || string(text) != "precious" {
			t.Errorf("%s of somebody is written over: %v, %q", name, err, text)
		}
	}
	for name, text := range map[string]string{
		DocumentName: `{"schema":"thru.result/1","cells":[`,
		planName:     "another plan",
	} {
		path := filepath.Join(dir, name)
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Resume(dir); err == nil || fault.Hint(err) == "" {
			t.Errorf("with a damaged %s: %v", name, err)
		}
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again, _, err := Resume(dir)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

// The document is written whole: not after each of many short steps.
func TestStepsAreWrittenNowAndThen(t *testing.T) {
	stateAt(t)
	j := begun(t, "", "a.yaml", "a")
	done := func() int {
		d, err := ReadDocument(filepath.Join(j.Dir, DocumentName))
		if err != nil || d == nil {
			t.Fatal(err)
		}
		return d.Plan.Done
	}
	for n := range 3 {
		j.Step(documentOf(n + 1))
	}
	if n := done(); n != 1 {
		t.Errorf("after short steps %d are written", n)
	}
	j.next = time.Now()
	j.Step(documentOf(2))
	if n := done(); n != 2 {
		t.Errorf("after a while %d are written", n)
	}
	j.End(documentOf(3), errors.New("interrupted"))
	if n := done(); n != 3 {
		t.Errorf("in the end %d are written", n)
	}
}

// A folder that can no longer be written causes one warning, and the old content stays.
func TestJournalOnAFullDisk(t *testing.T) {
	stateAt(t)
	j := begun(t, "", "a.yaml", "a")
	j.save(documentOf(1))
	var said []string
	j.Warn = func(s string) { said = append(said, s) }
	if err := os.MkdirAll(filepath.Join(j.Dir, DocumentName+halfWritten, "x"), 0o700); err != nil { // nothing can be written there
		t.Fatal(err)
	}
	j.save(documentOf(2))
	j.save(documentOf(3))
	if len(said) != 1 || j.Kept() != "" {
		t.Errorf("said %q, kept %q", said, j.Kept())
	}
	if d, err := ReadDocument(filepath.Join(j.Dir, DocumentName)); err != nil || d.Plan.Done != 1 {
		t.Errorf("%+v, %v", d, err)
	}
}

// A document that takes long to write is not written after each step, but at the end.
func TestJournalPacesItself(t *testing.T) {
	j := &Journal{Dir: t.TempDir()}
	j.Step(documentOf(1))
	j.next = time.Now().Add(time.Hour) // as if the last write had taken minutes
	j.Step(documentOf(2))
	if doc, err := ReadDocument(filepath.Join(j.Dir, DocumentName)); err != nil || doc.Plan.Done != 1 {
		t.Errorf("in between: %+v, %v", doc, err)
	}
	j.End(documentOf(2), nil)
	if doc, err := ReadDocument(filepath.Join(j.Dir, DocumentName)); err != nil || doc.Plan.Done != 2 {
		t.Errorf("at the end: %+v, %v", doc, err)
	}
	var none *Journal
	none.Step(documentOf(1))
}
