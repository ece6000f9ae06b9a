package postgres_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/store"
	"thru/internal/store/postgres"
	"thru/internal/store/postgres/postgrestest"
	"thru/internal/watch/record"
)

// archive makes an archive in a new database, and returns the database's name.
func archive(t *testing.T, s *postgrestest.Server) string {
	t.Helper()
	name := s.Database(t)
	if _, _, _, err := postgres.Migrate(t.Context(), s.URL(name)); err != nil {
		t.Fatal(err)
	}
	return name
}

func open(t *testing.T, url string) store.Store {
	t.Helper()
	s, err := postgres.Open(url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// document returns a different result for each number, a minute after the one before.
func document(i int) *measure.Document {
	host, bound := "machine-\x00"+fmt.Sprint(i%3), 1e9
	return &measure.Document{
		Schema: measure.Schema, Thru: "1.2.3", Command: "test", StartedAt: time.Date(2026, 11, 22, 20, i, 30, 0, time.UTC), ElapsedNs: 2_500_000_000,
		Labels:    map[string]string{"ticket": fmt.Sprint(i)},
		EndPoints: []measure.EndPoint{{Name: "local", Facts: &measure.Facts{Hostname: &host, Sysctls: map[string]string{"net.core.rmem_max": "212992"}, CongAvail: []string{"bbr", "cubic"}}}, {Name: "db"}},
		Cells: []measure.Cell{{
			From: "local", To: "db", Protocol: "tcp", Streams: 4, Goodput: &measure.Figure{Value: float64(i) * 1e6, Low: 1, High: 2, Runs: 3},
			Runs: []measure.Run{{Flows: []measure.Flow{{From: "local"}}}},
		}},
		Findings: []measure.Finding{{Cause: "receive-window", Confidence: "certain", Summary: "the window is small",
			Where: measure.Where{Place: "receiver", EndPoint: "db"}, Effect: &measure.Effect{BoundBps: &bound}}},
	}
}

func put(t *testing.T, s store.Store, doc *measure.Document) string {
	t.Helper()
	id, err := s.Put(t.Context(), doc, "the answer")
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// Several migrate at once; a failed step would leave nothing, and one that was done is left alone.
func TestMigrate(t *testing.T) {
	server := postgrestest.Start(t)
	name := server.Database(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	made := 0
	for range 6 {
		wg.Go(func() {
			_, from, to, err := postgres.Migrate(t.Context(), server.URL(name))
			mu.Lock()
			defer mu.Unlock()
			if made += to - from; err != nil || to != 1 {
				t.Errorf("from %d to %d: %v", from, to, err)
			}
		})
	}
	wg.Wait()
	if made != 1 {
		t.Errorf("%d made it", made)
	}
	put(t, open(t, server.URL(name)), document(1))
	if _, from, to, err := postgres.Migrate(t.Context(), server.URL(name)); from != 1 || to != 1 || err != nil {
		t.Errorf("again: from %d to %d, %v", from, to, err)
	}
	if got := server.Exec(t, name, "SELECT count(*) FROM thru.results"); got[0] != "1" {
		t.Errorf("%s results", got)
	}
	taken := server.Database(t)
	server.Exec(t, taken, "CREATE SCHEMA thru; CREATE TABLE thru.others (a integer)")
	if _, _, _, err := postgres.Migrate(t.Context(), server.URL(taken)); err == nil {
		t.Error("another program's schema is used")
	}
	if got := server.Exec(t, taken, "SELECT count(*) FROM pg_namespace WHERE nspname = 'thru_store'"); got[0] != "0" {
		t.Error("half of a failed migration is left")
	}
}

// Each trouble is one line that says what is wrong, with a hint and the exit code, and never with the password.
func TestTroubles(t *testing.T) {
	server := postgrestest.Start(t)
	name, empty, newer, older := archive(t, server), server.Database(t), archive(t, server), archive(t, server)
	server.Exec(t, newer, "UPDATE thru_store.version SET version = 99")
	server.Exec(t, older, "UPDATE thru_store.version SET version = 0")
	server.Exec(t, name, "CREATE ROLE ann LOGIN PASSWORD '"+postgrestest.Password+"'; CREATE ROLE few LOGIN PASSWORD 'x' CONNECTION LIMIT 0; CREATE ROLE idle LOGIN; ALTER ROLE idle SET statement_timeout = 1")
	t.Setenv("PGPASSWORD", postgrestest.Password)
	other := listen(t, "HTTP/1.1 400 Bad Request\r\n\r\n")
	secret := "postgres://ann:" + "geheim%3A%2F%40%207" + "@"
	for _, c := range []struct {
		name, url, says, hint string
		code                  int
		err                   error
		away                  bool
	}{
		{"no URL", "postgres://ann:geheim@h:port/x", "not one of a database", "PGPASSFILE", fault.Usage, nil, false},
		{"mode", secret + "127.0.0.1/x?sslmode=geheim", "not one of a database", "such as", fault.Usage, nil, false},
		{"away", secret + "127.0.0.1:1/x", "does not answer", "host and port", fault.Failed, nil, true},
		{"no such host", secret + "nowhere.invalid/x", "name is not known", "host and port", fault.Failed, nil, true},
		{"not PostgreSQL", secret + other + "/x?connect_timeout=5", "does not answer as PostgreSQL", "host and port", fault.Failed, nil, true},
		{"no socket", "postgres:///x?host=" + t.TempDir(), "does not answer", "host and port", fault.Failed, nil, true},
		{"password", server.TCP("ann:geheim", name, "sslmode=require"), "does not admit", "PGPASSWORD", fault.Failed, nil, false},
		{"user", server.TCP("nobody", name, ""), "does not admit", "PGPASSWORD", fault.Failed, nil, false},
		{"database", server.TCP("ann", "none", ""), "no such database", "createdb", fault.Failed, nil, false},
		{"no rights", server.TCP("ann", name, ""), "lacks rights", "thru help archive", fault.Failed, nil, false},
		{"not migrated", server.URL(empty), "no archive", "history migrate", fault.Failed, nil, false},
		{"newer", server.URL(newer), "99", "newer thru", fault.Failed, store.ErrNewer, false},
		{"older", server.URL(older), "older than this thru", "history migrate", fault.Failed, nil, false},
		{"certificate", server.TCP("ann", name, "sslmode=verify-full"), "certificate is not trusted", "sslrootcert", fault.Failed, nil, false},
		{"connections", strings.Replace(server.URL(name), "postgres@", "few@", 1), "no free connection", "max_connections", fault.Failed, nil, true},
		{"timeout", strings.Replace(server.URL(name), "postgres@", "idle@", 1), "", "", fault.Failed, nil, false},
	} {
		s, err := postgres.Open(c.url, store.Options{Patience: 20 * time.Second})
		if err == nil {
			s.Close()
			t.Errorf("%s: no error", c.name)
			continue
		}
		text := err.Error()
		if !strings.Contains(text, c.says) || !strings.Contains(fault.Hint(err), c.hint) || fault.Code(err) != c.code || c.err != nil && !errors.Is(err, c.err) || postgres.Away(err) != c.away {
			t.Errorf("%s: %v\nhint %q, code %d, away %v", c.name, err, fault.Hint(err), fault.Code(err), postgres.Away(err))
		}
		if all := text + fault.Hint(err) + postgres.Name(c.url); strings.Contains(all, "geheim") || strings.ContainsAny(text, "\n\x1b") {
			t.Errorf("%s: secrets or lines in %q", c.name, all)
		}
	}
	if _, _, _, err := postgres.Migrate(t.Context(), server.TCP("ann", empty, "")); err == nil || !strings.Contains(err.Error(), "lacks rights") {
		t.Errorf("migrating without rights: %v", err)
	}
}

// listen returns the address of a server that answers everything with a text.
func listen(t *testing.T, text string) string {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte(text))
			c.Close()
		}
	}()
	return l.Addr().String()
}

// TLS as the URL asks for it, with the password from a file.
func TestTLS(t *testing.T) {
	server := postgrestest.Start(t)
	name := archive(t, server)
	server.Exec(t, name, "CREATE ROLE ann LOGIN SUPERUSER PASSWORD '"+postgrestest.Password+"'")
	file := filepath.Join(t.TempDir(), "pgpass")
	line := fmt.Sprintf("127.0.0.1:%d:%s:ann:%s\n", server.Port, name, strings.ReplaceAll(postgrestest.Password, ":", `\:`))
	if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PGPASSFILE", file)
	for mode, want := range map[string]string{"verify-full&sslrootcert=" + server.Dir + "/server.crt": "t", "require": "t", "disable": "f"} {
		s := open(t, server.TCP("ann", name, "sslmode="+mode+"&application_name=tls-"+want))
		put(t, s, document(1))
		got := server.Exec(t, name, "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'tls-"+want+"'")
		if len(got) == 0 || got[0] != want {
			t.Errorf("%s: TLS %q, want %s", mode, got, want)
		}
	}
}

// The server goes away in mid-write: what it acknowledged is there afterwards, and the rest can be written again. A full disk stores nothing.
func TestAway(t *testing.T) {
	server := postgrestest.Start(t)
	name := archive(t, server)
	s := open(t, server.URL(name))
	var ids []string
	var lost *measure.Document
	var err error
	stopped := make(chan bool)
	for i := 0; err == nil; i++ {
		if i == 20 {
			go func() {
				server.Stop(t)
				close(stopped)
			}()
		}
		var id string
		lost = document(i)
		if id, err = s.Put(t.Context(), lost, ""); err == nil {
			ids = append(ids, id)
		}
	}
	if !postgres.Away(err) || fault.Hint(err) == "" {
		t.Errorf("Put: %v, hint %q", err, fault.Hint(err))
	}
	if _, err := s.Get(t.Context(), ids[0]); !postgres.Away(err) {
		t.Errorf("Get: %v", err)
	}
	<-stopped
	server.Run(t)
	put(t, s, lost) // by the same store
	for _, id := range ids {
		if _, err := s.Get(t.Context(), id); err != nil {
			t.Errorf("it was acknowledged: %v", err)
		}
	}
	found, _, err := s.Find(t.Context(), store.Filter{Limit: -1})
	if err != nil || len(found) != len(ids)+1 {
		t.Errorf("%d results, want %d: %v", len(found), len(ids)+1, err)
	}
	server.Exec(t, name, `CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'could not extend file' USING ERRCODE = '53100'; END $$;
		CREATE TRIGGER full_disk BEFORE INSERT ON thru_store.marks EXECUTE FUNCTION full_disk()`)
	if _, err := s.Put(t.Context(), document(5000), ""); !postgres.Away(err) || !strings.Contains(err.Error(), "disk is full") || !strings.Contains(fault.Hint(err), "free space") {
		t.Errorf("full: %v, hint %q", err, fault.Hint(err))
	}
	if got := server.Exec(t, name, "SELECT count(*) FROM thru_store.results"); got[0] != fmt.Sprint(len(ids)+1) {
		t.Errorf("%s results beside a full disk", got)
	}
	if got := server.Exec(t, name, "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"); got[0] != "0" {
		t.Errorf("%s transactions are open", got)
	}
}

// What is opened to read changes nothing.
func TestReadOnly(t *testing.T) {
	server := postgrestest.Start(t)
	name := archive(t, server)
	id := put(t, open(t, server.URL(name)), document(1))
	s, err := postgres.Open(server.URL(name), store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Put(t.Context(), document(2), ""); err == nil {
		t.Error("it was written")
	}
	if e, err := s.Entry(t.Context(), id); err != nil || e.Title != "the answer" {
		t.Errorf("%+v, %v", e, err)
	}
}

// sample returns a turn of a pair.
func sample(minute int) record.Sample {
	return record.Sample{Pair: record.Pair{From: "local", To: "db"}, Layer: record.Probe, Begin: time.Date(2026, 11, 22, 20, minute, 0, 0, time.UTC), Seconds: 60,
		State: record.Up, Values: map[record.Metric]float64{record.RTTMedian: 250_000, record.LossRatio: 0.25}}
}

// page returns docs/archive.md.
func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/archive.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// statements returns the statements of the page that begin with a word.
func statements(t *testing.T, begin string) (all []string) {
	t.Helper()
	for _, block := range strings.Split(page(t), "\n\n") {
		if text := strings.TrimSpace(block); strings.HasPrefix(block, "    ") && strings.HasPrefix(text, begin) {
			all = append(all, text)
		}
	}
	if len(all) == 0 {
		t.Fatalf("the page has no %s", begin)
	}
	return all
}

// The views have the columns of the page, in its order, and its examples find something. The roles of the page can do what it says, and no more.
func TestPage(t *testing.T) {
	server := postgrestest.Start(t)
	name := archive(t, server)
	server.Exec(t, name, "CREATE ROLE team; CREATE ROLE analysts; "+statements(t, "GRANT")[0]+
		"CREATE ROLE ann LOGIN PASSWORD 'x' IN ROLE team; CREATE ROLE bob LOGIN PASSWORD 'x' IN ROLE analysts;")
	t.Setenv("PGPASSWORD", "x")
	s := open(t, server.TCP("ann", name, ""))
	for i := range 5 {
		put(t, s, document(i))
	}
	if n, err := s.Prune(t.Context(), store.Retention{Count: 4}); n != 1 || err != nil {
		t.Errorf("pruned %d, %v", n, err)
	}
	for m := range 180 {
		if err := s.PutSamples(t.Context(), []record.Sample{sample(m)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.PruneSamples(t.Context(), sample(0).Begin.Add(2*time.Hour), time.Hour, 0); err != nil {
		t.Fatal(err)
	}
	for _, sections := range strings.Split(page(t), "\n### ")[1:] {
		view, rest, _ := strings.Cut(sections, "\n")
		rest, _, _ = strings.Cut(rest, "\n## ")
		var documented []string
		for line := range strings.Lines(rest) {
			if column, is := strings.CutPrefix(line, "| `"); is {
				column, _, _ = strings.Cut(column, "`")
				documented = append(documented, column)
			}
		}
		got := server.Exec(t, name, "SELECT attname FROM pg_attribute WHERE attrelid = '"+view+"'::regclass AND attnum > 0 ORDER BY attnum")
		if strings.Join(got, " ") != strings.Join(documented, " ") {
			t.Errorf("%s has the columns\n%q, the page\n%q", view, got, documented)
		}
		if got := server.Exec(t, name, "SET ROLE bob; SELECT count(*) FROM "+view); got[0] == "0" {
			t.Errorf("%s is empty", view)
		}
	}
	for _, statement := range statements(t, "SELECT") {
		if got := server.Exec(t, name, "SET ROLE bob; "+statement); len(got) == 0 {
			t.Errorf("%s finds nothing", statement)
		}
	}
	for query, want := range map[string]string{
		"SELECT goodput_bps, streams, runs, baseline FROM thru.cells ORDER BY started_at LIMIT 1":                             "1000000\t4\t3\tf",
		"SELECT cause, end_point, bound_bps FROM thru.findings LIMIT 1":                                                       "receive-window\tdb\t1000000000",
		"SELECT value FROM thru.facts WHERE fact = 'congestion_available.1' LIMIT 1":                                          "cubic",
		"SELECT elapsed_s, hosts[1], pairs, labels ->> 'ticket', title FROM thru.results ORDER BY started_at LIMIT 1":         "2.5\tlocal\t{\"local -> db\"}\t1\tthe answer",
		"SELECT count(*), count(*) FILTER (WHERE count = 60 AND median = 250000) FROM thru.hours WHERE metric = 'rtt_p50_ns'": "3\t3",
		"SELECT count(*), min(loss_ratio), min(begin_at) AT TIME ZONE 'UTC' FROM thru.samples":                                "120\t0.25\t2026-11-22 21:00:00",
	} {
		if got := server.Exec(t, name, query); got[0] != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	if _, err := postgres.Open(server.TCP("bob", name, ""), store.Options{ReadOnly: true}); err == nil || !strings.Contains(err.Error(), "lacks rights") {
		t.Errorf("analysts open the tables: %v", err)
	}
}
