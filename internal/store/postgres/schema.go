package postgres

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"thru/internal/measure"
	"thru/internal/store"
)

//go:embed schema.sql
var version1 string

// steps bring an archive from each version to the next.
func steps() []string { return []string{version1} }

// lock is the key of the advisory lock of migrations: "thru" in ASCII.
const lock = 0x74687275

// Migrate makes the archive in a database, or brings an older one to this version, all of it or nothing. It returns the versions before and
// after. The user needs the right to create schemas.
func Migrate(ctx context.Context, of string) (name string, from, to int, err error) {
	s, err := open(of, store.Options{})
	if err != nil {
		return "", 0, 0, err
	}
	defer s.Close()
	err = s.Write(ctx, "migrating", func(tx *sql.Tx) (err error) {
		from, to, err = migrate(ctx, tx, steps())
		return err
	})
	return s.name, from, to, err
}

func migrate(ctx context.Context, tx *sql.Tx, steps []string) (from, to int, err error) {
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", lock)); err != nil {
		return 0, 0, err
	}
	exists := false
	if err := tx.QueryRowContext(ctx, "SELECT to_regclass('thru_store.version') IS NOT NULL").Scan(&exists); err != nil {
		return 0, 0, err
	}
	if exists {
		if err := tx.QueryRowContext(ctx, "SELECT version FROM thru_store.version").Scan(&from); err != nil {
			return 0, 0, err
		}
	}
	if from > len(steps) {
		return from, from, newer(from)
	}
	for to = from; to < len(steps); to++ {
		if _, err := tx.ExecContext(ctx, steps[to]); err != nil {
			return from, to, fmt.Errorf("bringing it to version %d: %w", to+1, err)
		}
	}
	if to > from {
		_, err = tx.ExecContext(ctx, "UPDATE thru_store.version SET version = $1", to)
	}
	return from, to, err
}

func newer(version int) error {
	return fmt.Errorf("%w: its version is %d, this thru knows %d", store.ErrNewer, version, len(steps()))
}

// checkVersion returns an error for an archive that this thru does not know.
func checkVersion(ctx context.Context, db *sql.DB) error {
	version := 0
	err := db.QueryRowContext(ctx, "SELECT version FROM thru_store.version").Scan(&version)
	var e *pgconn.PgError
	switch {
	case errors.Is(err, sql.ErrNoRows), errors.As(err, &e) && (e.Code == "42P01" || e.Code == "3F000"):
		return errNone
	case err != nil:
		return err
	case version > len(steps()):
		return newer(version)
	case version < len(steps()):
		return fmt.Errorf("%w: its version is %d, this thru needs %d", errOlder, version, len(steps()))
	}
	return nil
}

// Digest implements store.Engine: it stores what the views show of a document.
func (s *archive) Digest(ctx context.Context, tx *sql.Tx, n int64, doc *measure.Document) error {
	type host struct {
		Name  string         `json:"name"`
		Facts *measure.Facts `json:"facts"`
	}
	cells, hosts := []measure.Cell{}, []host{}
	for _, c := range doc.Cells {
		c.Runs = nil
		cells = append(cells, c)
	}
	for _, p := range doc.EndPoints {
		if p.Facts != nil {
			hosts = append(hosts, host{p.Name, p.Facts})
		}
	}
	for _, part := range []struct {
		of        any
		statement string
	}{
		{cells, `INSERT INTO cells (result, place, source, target, started_at, cell)
			SELECT n, place, left(x ->> 'from', 300), left(x ->> 'to', 300), started_at, x - 'runs'
			FROM jsonb_array_elements($2::jsonb) WITH ORDINALITY AS a (x, place), results WHERE n = $1`},
		{append([]measure.Finding{}, doc.Findings...), `INSERT INTO findings (result, place, finding)
			SELECT $1, place, x FROM jsonb_array_elements($2::jsonb) WITH ORDINALITY AS a (x, place)`},
		{hosts, `INSERT INTO facts (result, place, host, facts)
			SELECT $1, place, left(x ->> 'name', 300), x -> 'facts' FROM jsonb_array_elements($2::jsonb) WITH ORDINALITY AS a (x, place)`},
	} {
		text, err := jsonb(part.of)
		if err == nil && text != "[]" {
			_, err = tx.ExecContext(ctx, part.statement, n, text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// jsonb returns the JSON of a value, without the character that PostgreSQL's JSON cannot hold.
func jsonb(v any) (string, error) {
	text, err := json.Marshal(v)
	return strings.ReplaceAll(string(text), `\u0000`, `\ufffd`), err
}
