package library

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"thru/internal/bus"
	"thru/internal/cli/console"
	"thru/internal/measure"
	"thru/internal/store"
	"thru/internal/store/postgres"
	"thru/internal/store/postgres/postgrestest"
)

// archived starts a server with an archive, and returns its URL and how many results it has.
func archived(t *testing.T) (server *postgrestest.Server, url string, count func() string) {
	t.Helper()
	server = postgrestest.Start(t)
	name := server.Database(t)
	if _, _, _, err := postgres.Migrate(t.Context(), server.URL(name)); err != nil {
		t.Fatal(err)
	}
	return server, server.URL(name), func() string { return server.Exec(t, name, "SELECT count(*) FROM thru.results")[0] }
}

func testOf(i int) *measure.Document {
	return &measure.Document{Schema: measure.Schema, Command: "test", StartedAt: time.Date(2026, 11, 1, 0, 0, i, 0, time.UTC),
		Cells: []measure.Cell{{From: "a", To: "b", Goodput: &measure.Figure{Value: float64(i)}}}}
}

// While the database is away results wait in a file, also of several commands, and the next command sends them on.
func TestOutage(t *testing.T) {
	server, url, count := archived(t)
	data := t.TempDir()
	t.Setenv("XDG_DATA_HOME", data)
	sent := 0
	a := Archive{Path: url, Sent: func(n int) { sent += n }}
	keep := func(i int) error {
		t.Helper()
		id, err := a.Keep(testOf(i))
		if id == "" {
			t.Errorf("%d has no id: %v", i, err)
		}
		return err
	}
	if err := keep(1); err != nil {
		t.Fatal(err)
	}
	if files, _ := filepath.Glob(data + "/thru/*"); len(files) != 0 {
		t.Errorf("files beside an archive: %q", files)
	}
	server.Stop(t)
	for _, i := range []int{2, 3, 2} {
		var waits *Waits
		if err := keep(i); !errors.As(err, &waits) || !strings.HasPrefix(waits.File, data) || !strings.Contains(err.Error(), "does not answer") {
			t.Fatalf("while it is away: %v", err)
		}
	}
	server.Run(t)
	if err := keep(4); err != nil || sent != 2 || count() != "4" {
		t.Errorf("%v, %d sent on, %s stored", err, sent, count())
	}
	if err := keep(5); err != nil || sent != 2 || count() != "5" {
		t.Errorf("again: %v, %d sent on, %s stored", err, sent, count())
	}
}

// A controller stores what hosts deliver, each once, and goes on while the database is away, also from its start.
func TestIntakeIntoArchive(t *testing.T) {
	server, url, count := archived(t)
	server.Stop(t)
	var said bytes.Buffer
	sender := NewSender(url, t.TempDir())
	defer sender.Close()
	in := &Intake{Dir: t.TempDir(), Into: sender, Notify: &console.EventLog{On: &console.Console{Out: &said, Err: &said}}}
	take := func(ids ...int) {
		t.Helper()
		for _, i := range ids {
			body, err := os.ReadFile(written(t, testOf(i)))
			if err == nil {
				err = in.Take(bus.Spooled{Agent: "UKEY", Name: "web1", ID: fmt.Sprint("x", i), Body: body})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := sender.Send(t.Context()); !postgres.Away(err) {
		t.Errorf("at its start: %v", err)
	}
	take(1, 2, 3, 2)
	if n := strings.Count(said.String(), "warning: the result waits in"); n != 1 {
		t.Errorf("an outage is reported %d times: %s", n, &said)
	}
	server.Run(t)
	take(4, 1) // still to the file: one after the other
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan bool)
	go func() {
		in.Follow(ctx, sender)
		close(done)
	}()
	for end := time.Now().Add(time.Minute); count() != "4" && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	cancel()
	<-done
	take(5, 5, 4)
	if got := count(); got != "5" || !strings.Contains(said.String(), "4 results that waited") {
		t.Errorf("%s results: %s", got, &said)
	}
	if n, err := sender.Send(t.Context()); n != 0 || err != nil {
		t.Errorf("%d wait, %v", n, err)
	}
	if s, err := store.Open(sender.file, store.Options{ReadOnly: true}); err != nil {
		t.Error(err)
	} else if all, err := s.Stats(t.Context()); all.Count != 0 || errors.Join(err, s.Close()) != nil {
		t.Errorf("%+v wait, %v", all, err)
	}
}

// written writes a document as a host delivers it.
func written(t *testing.T, doc *measure.Document) string {
	t.Helper()
	path, err := KeepResult(t.TempDir(), doc)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Results of 1 MB take the controller less than 64 MB of memory, however many come.
func TestIntakeMemory(t *testing.T) {
	_, url, count := archived(t)
	sender := NewSender(url, t.TempDir())
	defer sender.Close()
	in := &Intake{Dir: t.TempDir(), Into: sender, Notify: &console.EventLog{On: &console.Console{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}}}
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // as thru runs: GOGC may say otherwise
	var most uint64
	for i := range 60 {
		doc := testOf(i)
		for len(doc.Arguments) < 50_000 {
			doc.Arguments = append(doc.Arguments, fmt.Sprintf("%d argument %d", i, len(doc.Arguments)))
		}
		body, err := os.ReadFile(written(t, doc))
		if err != nil {
			t.Fatal(err)
		}
		doc = nil
		if err := in.Take(bus.Spooled{Agent: "UKEY", ID: fmt.Sprint("x", i), Body: body}); err != nil {
			t.Fatal(err)
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapInuse)
	}
	t.Logf("at most %d MB of heap, %s results", most>>20, count())
	if most > 64<<20 || count() != "60" {
		t.Errorf("%d MB of heap, %s results", most>>20, count())
	}
}
