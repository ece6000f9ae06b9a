//go:build linux || darwin || freebsd || windows

package store

import (
	"context"
	"database/sql"
	"fmt"
)

// application marks a SQLite file as a store of thru (PRAGMA application_id): "thru" in
// ASCII.
const application = 0x74687275

// steps migrate a store from each version to the next: the first creates version 1 in an
// empty file. A released step is never changed.
var steps = []string{`
CREATE TABLE results (
	n       INTEGER PRIMARY KEY,
	id      TEXT NOT NULL UNIQUE,
	sha256  TEXT NOT NULL UNIQUE, -- of the document's JSON
	started TEXT NOT NULL,        -- UTC, as it sorts
	command TEXT NOT NULL,
	plan    TEXT NOT NULL,
	verdict TEXT NOT NULL,
	failed  INTEGER NOT NULL,
	size    INTEGER NOT NULL,     -- bytes of document, entry and words here
	words   TEXT NOT NULL,        -- what a search looks in, in small letters
	entry   TEXT NOT NULL         -- JSON of Entry
);
CREATE INDEX results_by_time ON results (started DESC, id DESC);
CREATE INDEX results_by_plan ON results (plan) WHERE plan <> '';

-- Names that a result is found by, of which it may have several.
CREATE TABLE marks (
	kind   TEXT NOT NULL, -- 'host', 'pair', or 'label KEY'
	value  TEXT NOT NULL,
	result INTEGER NOT NULL REFERENCES results (n) ON DELETE CASCADE,
	PRIMARY KEY (kind, value, result)
) WITHOUT ROWID;
CREATE INDEX marks_by_result ON marks (result);

CREATE TABLE documents (
	result INTEGER PRIMARY KEY REFERENCES results (n) ON DELETE CASCADE,
	zstd   BLOB NOT NULL -- its JSON (docs/result.md), compressed
);
`, `
-- What a watch measures of a pair in one way; days have the layer ''.
CREATE TABLE series (
	n      INTEGER PRIMARY KEY, -- below 2^32
	source TEXT NOT NULL,
	target TEXT NOT NULL,
	layer  TEXT NOT NULL,
	UNIQUE (source, target, layer)
);

-- Samples of an hour.
CREATE TABLE packs (
	n      INTEGER PRIMARY KEY, -- hour * 2^32 + series: in the order in which they are written and removed
	series INTEGER NOT NULL REFERENCES series (n),
	zstd   BLOB NOT NULL        -- JSON of columns, compressed
);
CREATE INDEX packs_by_series ON packs (series);

-- Summaries of the hours of a day.
CREATE TABLE hours (
	n      INTEGER PRIMARY KEY, -- day since 1970 * 2^32 + series
	series INTEGER NOT NULL REFERENCES series (n),
	zstd   BLOB NOT NULL        -- as in packs, with an hour as a sample
);
CREATE INDEX hours_by_series ON hours (series);

-- Summaries of the days of pairs.
CREATE TABLE days (
	begin_ms INTEGER NOT NULL,
	series   INTEGER NOT NULL REFERENCES series (n),
	zstd     BLOB NOT NULL, -- its JSON, compressed
	PRIMARY KEY (begin_ms, series)
);
`}

// watchVersion is the first version with what watches find.
const watchVersion = 2

// object is the entry of a table, an index, a view or a trigger in sqlite_schema.
type object struct{ kind, table, sql string }

// objects returns those of a database, by name.
func objects(ctx context.Context, db *sql.DB) (map[string]object, error) {
	rows, err := db.QueryContext(ctx, "SELECT name, type, tbl_name, coalesce(sql, '') FROM sqlite_schema")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[string]object{}
	for rows.Next() {
		var name string
		var o object
		if err := rows.Scan(&name, &o.kind, &o.table, &o.sql); err != nil {
			return nil, err
		}
		all[name] = o
	}
	return all, rows.Err()
}

// checkTables rejects a store whose tables differ from those that the steps to its
// version create: a view in their place may never end, and a trigger may do anything.
// It ignores additional tables.
func checkTables(ctx context.Context, db *sql.DB, version int) error {
	blank, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return err
	}
	defer blank.Close()
	blank.SetMaxOpenConns(1) // another connection would be another database
	if err := migrate(ctx, blank, steps[:version]); err != nil {
		return err
	}
	want, err := objects(ctx, blank)
	if err != nil {
		return err
	}
	have, err := objects(ctx, db)
	if err != nil {
		return err
	}
	for name, o := range want {
		if have[name] != o {
			return fmt.Errorf("%w: %s", errStrange, name)
		}
	}
	for name, o := range have {
		if _, known := want[name]; !known && (o.kind == "view" || o.kind == "trigger" || want[o.table] != object{}) {
			return fmt.Errorf("%w: %.40q", errStrange, name)
		}
	}
	return nil
}

// migrate applies the missing steps to a store, all of them or none.
func migrate(ctx context.Context, db *sql.DB, steps []string) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	// So that freed pages can be returned. It has an effect only in an empty file, outside a transaction.
	if _, err := conn.ExecContext(ctx, "PRAGMA auto_vacuum=incremental"); err != nil {
		return err
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var version int
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil { // another process may have been first
		return err
	}
	for ; version < len(steps); version++ {
		if _, err := tx.ExecContext(ctx, steps[version]); err != nil {
			return fmt.Errorf("bringing it to version %d: %w", version+1, err)
		}
	}
	// PRAGMA takes no parameters.
	set := fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d", application, version)
	if _, err := tx.ExecContext(ctx, set); err != nil {
		return err
	}
	return tx.Commit()
}
