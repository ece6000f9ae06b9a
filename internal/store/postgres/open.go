// Package postgres stores the results of a team in one PostgreSQL database, which is an archive: the store of --store postgres://... Its user
// needs no right to create tables once the owner has run Migrate (schema.go). Views that others read are in the schema thru (docs/archive.md).
package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"thru/internal/fault"
	"thru/internal/store"
)

// Time limits of a connection attempt, of a read, and connections of a process.
const (
	connectTime = 10 * time.Second
	readTime    = time.Minute
	connections = 4
)

// Is reports whether the name of a store is the URL of a database.
func Is(name string) bool {
	return strings.HasPrefix(name, "postgres://") || strings.HasPrefix(name, "postgresql://")
}

// Check returns what is wrong with a URL, without connecting.
func Check(of string) error {
	_, err := configOf(of, store.Options{})
	return err
}

// Name returns the name of the database of a URL for people, without secrets. It is the same for all spellings of its URL.
func Name(of string) string {
	c, err := configOf(of, store.Options{})
	if err != nil {
		return "the database"
	}
	return nameOf(c)
}

func nameOf(c *pgconn.Config) string {
	u := url.URL{Scheme: "postgres", Host: net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))), Path: "/" + c.Database}
	if strings.HasPrefix(c.Host, "/") { // the folder of a Unix socket
		u.Host, u.RawQuery = "", "host="+c.Host
	}
	return u.String()
}

// configOf reads a URL, the environment (PGPASSWORD, PGPASSFILE and so on) and the password file.
func configOf(of string, o store.Options) (*pgconn.Config, error) {
	c, err := pgconn.ParseConfig(of)
	if err != nil {
		if cause := errors.Unwrap(err); cause != nil {
			err = cause // the URL itself may contain a password
		}
		if e := (*url.Error)(nil); errors.As(err, &e) {
			err = e.Err
		}
		return nil, fault.Usagef("such as postgres://USER@HOST/DATABASE?sslmode=verify-full; passwords are better in PGPASSFILE", "%w: %s", errURL, fault.Unsecret(err.Error()))
	}
	c.RuntimeParams["search_path"] = "thru_store"
	c.RuntimeParams["application_name"] = cmp.Or(c.RuntimeParams["application_name"], "thru")
	if o.ReadOnly {
		c.RuntimeParams["default_transaction_read_only"] = "on"
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = cmp.Or(min(o.Patience, connectTime), connectTime)
	}
	return c, nil
}

// archive is the store in one database.
type archive struct {
	store.Results
	name     string
	readOnly bool
}

// Open connects to the archive of a URL. It changes no table; Migrate does.
func Open(of string, o store.Options) (store.Store, error) {
	s, err := open(of, o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(o.Patience, readTime))
	defer cancel()
	if err := s.again(ctx, func() error { return checkVersion(ctx, s.DB) }); err != nil {
		s.Close()
		return nil, s.Explain("opening", err)
	}
	return s, nil
}

func open(of string, o store.Options) (*archive, error) {
	c, err := configOf(of, o)
	if err != nil {
		return nil, err
	}
	s := &archive{name: nameOf(c), readOnly: o.ReadOnly}
	s.Engine, s.Dialect = s, dialect()
	if err := s.Prepare(); err != nil {
		return nil, err
	}
	s.DB = sql.OpenDB(connector{c})
	s.DB.SetMaxOpenConns(connections)
	s.DB.SetConnMaxIdleTime(time.Minute)
	return s, nil
}

// dialect is the SQL of PostgreSQL. The index of marks has a hash, since names may be longer than an entry of an index. LIKE uses the index of
// trigrams, where there is one.
func dialect() store.Dialect {
	const used = "SELECT coalesce(sum(size), 0)::bigint FROM results"
	return store.Dialect{
		Marked:   "n IN (SELECT result FROM marks WHERE key = mark_key(?::text, ?::text))",
		Contains: `words LIKE '%' || replace(replace(replace(?::text, '\', '\\'), '%', '\%'), '_', '\_') || '%'`,
		Used:     used,
		Size:     used,
	}
}

// tries bounds how often a transaction begins again.
const tries = 5

// again repeats what others were in the way of. After a lost connection a transaction may have been committed: all of them can run twice.
func (s *archive) again(ctx context.Context, do func() error) error {
	for n := 1; ; n++ {
		err := do()
		if err == nil || ctx.Err() != nil || n == tries || !temporary(err) {
			if err != nil && ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
				err = fmt.Errorf("%w: %w", ctx.Err(), err)
			}
			return err
		}
	}
}

// Write implements store.Engine.
func (s *archive) Write(ctx context.Context, doing string, do func(*sql.Tx) error) error {
	if s.readOnly {
		return s.Explain(doing, errReadOnly)
	}
	return s.Explain(doing, s.again(ctx, func() error {
		tx, err := s.DB.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := do(tx); err != nil {
			return err
		}
		return tx.Commit()
	}))
}

// Read implements store.Engine.
func (s *archive) Read(ctx context.Context, doing string, do func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	err := s.again(limited, func() error { return do(limited) })
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = errSlow
	}
	return s.Explain(doing, err)
}

// Freed implements store.Engine: the server frees space by itself.
func (s *archive) Freed(context.Context) {}

// Close implements store.Store.
func (s *archive) Close() error {
	s.Results.Close()
	return s.DB.Close()
}
