package agent

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"thru/internal/bus"
	"thru/internal/engine"
	"thru/internal/host"
	"thru/internal/measure"
	"thru/internal/report"
)

// warnings collects the warnings of a spool.
type warnings struct {
	mu   sync.Mutex
	text []string
}

func (w *warnings) add(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, text)
}

func (w *warnings) all() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.text, "\n")
}

// newSpooling returns an agent with a spool in a folder.
func newSpooling(t *testing.T, dir string) (*Agent, *fakeEngine, *Spool, *warnings) {
	t.Helper()
	f, w := &fakeEngine{}, &warnings{}
	spool := OpenSpool(dir, w.add)
	a := New(Config{Name: "web1", Version: "v", Engines: engine.Table{measure.Native: f}, Host: host.New(), Limits: DefaultLimits(), Spool: spool})
	a.Publisher(func(string, bus.Event) {})
	t.Cleanup(a.Close)
	return a, f, spool, w
}

// measureOnce prepares a session for a client and ends it.
func measureOnce(t *testing.T, a *Agent, f *fakeEngine, client string) string {
	t.Helper()
	takeTurn(t, a, client)
	r, err := prepare(a, client, func(m *bus.PrepareRequest) { m.Spec.From, m.Spec.To, m.Sends = "fleet/web1", "fleet/web2", true })
	if err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	s := f.opened[len(f.opened)-1]
	f.mu.Unlock()
	s.updates <- engine.Update{Kind: engine.Done}
	s.Close()
	return r.Session
}

func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// The fate of a session's evidence depends on how its client leaves.
func TestSpoolFollowsTheClient(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		leave func(a *Agent, session string)
		stays int
	}{
		"collected and released": {func(a *Agent, id string) {
			a.Collect(ctx, "c", bus.CollectRequest{Session: id})
			a.Release(ctx, "c", bus.ReleaseRequest{})
		}, 0},
		"collected, released by its id": {func(a *Agent, id string) {
			a.Collect(ctx, "c", bus.CollectRequest{Session: id})
			a.Release(ctx, "c", bus.ReleaseRequest{Session: id})
		}, 0},
		"collected, then lost": {func(a *Agent, id string) {
			a.Collect(ctx, "c", bus.CollectRequest{Session: id})
			a.Gone("c")
		}, 1},
		"lost":                        {func(a *Agent, _ string) { a.Gone("c") }, 1},
		"released without collecting": {func(a *Agent, _ string) { a.Release(ctx, "c", bus.ReleaseRequest{}) }, 1},
		"another client collects": {func(a *Agent, id string) {
			a.Collect(ctx, "other", bus.CollectRequest{Session: id})
			a.Release(ctx, "other", bus.ReleaseRequest{Session: id})
			a.Gone("c")
		}, 1},
		"the agent ends": {func(a *Agent, _ string) { a.Close() }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			a, f, spool, _ := newSpooling(t, dir)
			c.leave(a, measureOnce(t, a, f, "c"))
			if n := spool.Waiting(); n != c.stays {
				t.Errorf("%d documents wait, want %d", n, c.stays)
			}
			if files := filesIn(t, dir); len(files) != c.stays {
				t.Errorf("files: %q", files)
			}
		})
	}
}

// report can read the document of one end.
func TestSpooledDocument(t *testing.T) {
	dir := t.TempDir()
	a, f, _, _ := newSpooling(t, dir)
	measureOnce(t, a, f, "c")
	a.Gone("c")
	text, err := os.ReadFile(filepath.Join(dir, filesIn(t, dir)[0]))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := report.ReadJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(doc.EndPoints) != 2 || doc.EndPoints[0].Name != "fleet/web1" || doc.EndPoints[0].Facts == nil || doc.EndPoints[1].Name != "fleet/web2" {
		t.Errorf("end points: %+v", doc.EndPoints)
	}
	if len(doc.Cells) != 1 || doc.Error == nil || doc.Error.Hint == "" || len(doc.Missing) == 0 {
		t.Fatalf("cells %d, error %+v, not checked %v", len(doc.Cells), doc.Error, doc.Missing)
	}
	flow := doc.Cells[0].Runs[0].Flows[0]
	if flow.Sender == nil || flow.Sender.EndPoint != "fleet/web1" || flow.Receiver != nil {
		t.Errorf("flow: %+v", flow)
	}
}

// A session that moved no data leaves nothing.
func TestSpoolLeavesOutNothing(t *testing.T) {
	dir := t.TempDir()
	a, f, spool, _ := newSpooling(t, dir)
	f.unseen = true
	measureOnce(t, a, f, "c")
	a.Gone("c")
	if spool.Waiting() != 0 {
		t.Error("an empty document waits")
	}
}

// Documents of an earlier process are delivered, the oldest first, and again until the
// controller has them.
func TestSpoolDelivers(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"20260102T000000-B" + spoolEnding, "20260101T000000-A" + spoolEnding, spoolPart + "x", "notes.txt", "my own.thru.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	spool := OpenSpool(dir, (&warnings{}).add)
	if spool.Waiting() != 2 {
		t.Fatalf("%d wait", spool.Waiting())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var got []string
	refuse := true
	spool.Deliver(ctx, func(_ context.Context, d bus.Spooled) error {
		if refuse {
			refuse = false
			spool.Wake() // as after a reconnect
			return errors.New("the controller's disk is full")
		}
		if got = append(got, d.ID+":"+string(d.Body)); len(got) == 2 {
			cancel()
		}
		return nil
	})
	if want := "20260101T000000-A:{} 20260102T000000-B:{}"; strings.Join(got, " ") != want {
		t.Errorf("delivered %q, want %q", got, want)
	}
	if files := filesIn(t, dir); len(files) != 2 {
		t.Errorf("left: %q", files)
	}
}

// The limits hold: the oldest are removed, with a warning.
func TestSpoolIsBounded(t *testing.T) {
	dir, w := t.TempDir(), &warnings{}
	spool := OpenSpool(dir, w.add)
	spool.most = 2
	var ids []string
	for i := range 3 {
		ids = append(ids, spool.hold(&measure.Document{StartedAt: time.Unix(int64(i), 0)}))
	}
	if files := filesIn(t, dir); len(files) != 2 || files[0] != ids[1]+spoolEnding {
		t.Errorf("files %q, ids %q", files, ids)
	}
	if !strings.Contains(w.all(), "oldest") {
		t.Errorf("warnings: %q", w.all())
	}
	spool.room = 10
	if id := spool.hold(&measure.Document{}); id != "" || spool.Trouble() == "" || len(filesIn(t, dir)) != 2 {
		t.Errorf("a document above the bound was kept as %q", id)
	}
}

// A folder that cannot be written causes one warning, and measuring goes on.
func TestSpoolCannotWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a, f, spool, w := newSpooling(t, dir)
	for range 2 {
		id := measureOnce(t, a, f, "c")
		if _, err := a.Collect(context.Background(), "c", bus.CollectRequest{Session: id}); err != nil {
			t.Error(err)
		}
		a.Release(context.Background(), "c", bus.ReleaseRequest{})
		a.Gone("c")
	}
	if spool.Trouble() == "" || strings.Count(w.all(), "cannot be stored") != 1 {
		t.Errorf("trouble %q, warnings %q", spool.Trouble(), w.all())
	}
	os.Remove(dir)
	measureOnce(t, a, f, "c")
	a.Gone("c")
	if spool.Trouble() != "" || spool.Waiting() != 1 {
		t.Errorf("with room again: trouble %q, %d wait", spool.Trouble(), spool.Waiting())
	}
}

// The text about running tests, as `thru hosts` shows it.
func TestBusy(t *testing.T) {
	a, f, _, _ := newSpooling(t, t.TempDir())
	if got := a.Busy(); got != "" {
		t.Errorf("idle: %q", got)
	}
	a.Reserve(context.Background(), "c", bus.ReserveRequest{})
	if got := a.Busy(); got != "a client has the turn" {
		t.Errorf("reserved: %q", got)
	}
	measureOnce(t, a, f, "c")
	a.Reserve(context.Background(), "next", bus.ReserveRequest{})
	if got := a.Busy(); got != "fleet/web1 to fleet/web2; 1 waiting" {
		t.Errorf("measuring: %q", got)
	}
	a.Gone("next")
	a.Gone("c")
	if got := a.Busy(); got != "" {
		t.Errorf("after all: %q", got)
	}
}
