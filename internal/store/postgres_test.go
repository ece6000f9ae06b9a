//go:build linux || darwin || freebsd || windows

package store_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"thru/internal/store"
	"thru/internal/store/postgres"
	"thru/internal/store/postgres/postgrestest"
)

// archive makes an empty archive and returns its URL.
func archive(t testing.TB, s *postgrestest.Server) string {
	t.Helper()
	url := s.URL(s.Database(t))
	if _, from, to, err := postgres.Migrate(within(t), url); from != 0 || to != 1 || err != nil {
		t.Fatalf("migrated from %d to %d: %v", from, to, err)
	}
	return url
}

// openArchive opens an archive and closes it with the test.
func openArchive(t testing.TB, url string) store.Store {
	t.Helper()
	s, err := postgres.Open(url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestPostgres(t *testing.T) {
	server, url := postgrestest.Start(t), ""
	contract{
		Hours: hoursOf(server, &url),
		Open: func(t *testing.T) store.Store {
			url = archive(t, server)
			return openArchive(t, url)
		},
		Again: func(t *testing.T) store.Store { return openArchive(t, url) },
	}.run(t)
}

// hoursOf returns a reader of the stored hours.
func hoursOf(server *postgrestest.Server, url *string) func(testing.TB, store.Store) []store.Hour {
	return func(t testing.TB, _ store.Store) (all []store.Hour) {
		t.Helper()
		const query = `SELECT jsonb_build_object('from', source, 'to', target, 'layer', layer, 'begin', begin_at, 'turns', turns, 'values', nullif(ranges, '{}'))
			FROM thru_store.hours JOIN thru_store.series ON n = series ORDER BY begin_at, layer`
		for _, line := range server.Exec(t, database(*url), query) {
			var h store.Hour
			if err := json.Unmarshal([]byte(line), &h); err != nil {
				t.Fatal(err)
			}
			h.Begin = h.Begin.UTC()
			all = append(all, h)
		}
		return all
	}
}

// database returns the name of the database of a URL.
func database(url string) string {
	c, err := pgconn.ParseConfig(url)
	if err != nil {
		panic(err)
	}
	return c.Database
}

// Processes that write to an archive are killed, and several write at once.
func TestPostgresProcesses(t *testing.T) {
	server := postgrestest.Start(t)
	url := archive(t, server)
	r, said := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano()))), acknowledged{}
	for round := range *kills / 2 {
		for _, line := range killTwo(t, url, round*2_000, true, r) {
			said.hear(line)
		}
	}
	verify(t, url, said)
	if len(said) < *kills/2 {
		t.Errorf("%d acknowledgements: too few to say anything", len(said))
	}
	url = archive(t, server)
	wrote := writeMany(t, url)
	if all, err := openArchive(t, url).Stats(within(t)); err != nil || all.Count != wrote*4/5 {
		t.Errorf("%d results, want %d: %v", all.Count, wrote*4/5, err)
	}
}
