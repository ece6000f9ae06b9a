package postgres

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// oldest is the first version of PostgreSQL that the archive is tested with.
const oldest = 15

// errOldServer is the error of an earlier version.
var errOldServer = errors.New("the server is too old")

// connector makes connections for database/sql. It needs of pgx only pgconn: pgx's own connector adds 2.6 MB to the program, for types that no
// statement here has.
type connector struct{ config *pgconn.Config }

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	p, err := pgconn.ConnectConfig(ctx, c.config)
	if err != nil {
		return nil, err
	}
	var major int
	if _, err := fmt.Sscanf(p.ParameterStatus("server_version"), "%d", &major); err == nil && major < oldest {
		_ = p.Close(ctx)
		return nil, fmt.Errorf("%w: PostgreSQL %d", errOldServer, major)
	}
	return conn{p}, nil
}

// Driver implements driver.Connector.
func (connector) Driver() driver.Driver { return nil }

// conn is a connection, of one goroutine at a time.
type conn struct{ p *pgconn.PgConn }

// closeTime bounds the farewell to a server.
const closeTime = 2 * time.Second

// Close implements driver.Conn.
func (c conn) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	_ = c.p.Close(ctx) // of a connection that is lost already
	return nil
}

// Prepare implements driver.Conn; statements are prepared when they run.
func (conn) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }

// Begin implements driver.Conn.
func (c conn) Begin() (driver.Tx, error) { return c.BeginTx(context.Background(), driver.TxOptions{}) }

// BeginTx implements driver.ConnBeginTx. What is committed must be on the disk, whatever the server's default.
func (c conn) BeginTx(ctx context.Context, _ driver.TxOptions) (driver.Tx, error) {
	const begin = "BEGIN; SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'"
	return transaction{c}, c.simple(ctx, begin)
}

// IsValid implements driver.Validator.
func (c conn) IsValid() bool { return !c.p.IsClosed() }

// ResetSession implements driver.SessionResetter.
func (c conn) ResetSession(context.Context) error {
	if c.p.IsClosed() || c.p.TxStatus() != 'I' {
		return driver.ErrBadConn
	}
	return nil
}

// simple runs statements without parameters.
func (c conn) simple(ctx context.Context, statements string) error {
	_, err := c.p.Exec(ctx, statements).ReadAll()
	return fresh(err)
}

// fresh has database/sql take another connection where this one sent nothing.
func fresh(err error) error {
	if err != nil && pgconn.SafeToRetry(err) {
		return driver.ErrBadConn
	}
	return err
}

// ExecContext implements driver.ExecerContext. Without arguments there can be several statements.
func (c conn) ExecContext(ctx context.Context, statement string, args []driver.NamedValue) (driver.Result, error) {
	if len(args) == 0 {
		all, err := c.p.Exec(ctx, statement).ReadAll()
		if err != nil || len(all) == 0 {
			return driver.RowsAffected(0), fresh(err)
		}
		return driver.RowsAffected(all[len(all)-1].CommandTag.RowsAffected()), nil
	}
	r := c.query(ctx, statement, args).Read()
	return driver.RowsAffected(r.CommandTag.RowsAffected()), fresh(r.Err)
}

// QueryContext implements driver.QueryerContext.
func (c conn) QueryContext(ctx context.Context, statement string, args []driver.NamedValue) (driver.Rows, error) {
	return rows{c.query(ctx, statement, args)}, nil
}

// query sends bytes as they are and other values as text, and receives values in their binary form.
func (c conn) query(ctx context.Context, statement string, args []driver.NamedValue) *pgconn.ResultReader {
	values, forms := make([][]byte, len(args)), make([]int16, len(args))
	for i, a := range args {
		switch v := a.Value.(type) {
		case nil:
		case []byte:
			values[i], forms[i] = v, 1
		case time.Time:
			values[i] = []byte(v.UTC().Format(time.RFC3339Nano))
		case string:
			values[i] = []byte(clean(v))
		default: // int64, float64, bool
			values[i] = fmt.Append(nil, v)
		}
	}
	return c.p.ExecParams(ctx, statement, values, nil, forms, []int16{1})
}

// clean replaces what PostgreSQL's text cannot hold.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd")
}

// transaction implements driver.Tx.
type transaction struct{ c conn }

// commitTime bounds the end of a transaction, for which database/sql has no context.
const commitTime = 20 * time.Second

func (t transaction) end(statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), commitTime)
	defer cancel()
	return t.c.simple(ctx, statement)
}

// Commit implements driver.Tx.
func (t transaction) Commit() error { return t.end("COMMIT") }

// Rollback implements driver.Tx.
func (t transaction) Rollback() error { return t.end("ROLLBACK") }

// rows implements driver.Rows.
type rows struct{ r *pgconn.ResultReader }

// Columns implements driver.Rows.
func (r rows) Columns() (names []string) {
	for _, f := range r.r.FieldDescriptions() {
		names = append(names, f.Name)
	}
	return names
}

// Close implements driver.Rows.
func (r rows) Close() error {
	_, err := r.r.Close()
	return err
}

// Next implements driver.Rows.
func (r rows) Next(to []driver.Value) error {
	if !r.r.NextRow() {
		if err := r.Close(); err != nil {
			return err
		}
		return io.EOF
	}
	for i, b := range r.r.Values() {
		v, err := valueOf(r.r.FieldDescriptions()[i].DataTypeOID, b)
		if err != nil {
			return err
		}
		to[i] = v
	}
	return nil
}

// errType is the error of a statement that selects something else.
var errType = errors.New("a column has a type that this driver does not read")

// epoch is the year 2000 in microseconds since 1970.
const epoch = 946_684_800_000_000

// valueOf decodes the binary form of the types that statements here select (PostgreSQL's pg_type.dat).
func valueOf(oid uint32, b []byte) (driver.Value, error) {
	switch {
	case b == nil:
		return nil, nil
	case oid == 16 && len(b) == 1: // boolean
		return b[0] != 0, nil
	case oid == 20 && len(b) == 8: // bigint
		return int64(binary.BigEndian.Uint64(b)), nil
	case oid == 23 && len(b) == 4: // integer
		return int64(int32(binary.BigEndian.Uint32(b))), nil
	case oid == 701 && len(b) == 8: // double precision
		return math.Float64frombits(binary.BigEndian.Uint64(b)), nil
	case oid == 1184 && len(b) == 8: // timestamptz: microseconds since 2000
		return time.UnixMicro(int64(binary.BigEndian.Uint64(b)) + epoch).UTC(), nil
	case oid == 3802 && len(b) > 0: // jsonb, behind its version
		return b[1:], nil
	case oid == 17, oid == 25, oid == 1043: // bytea, text, varchar
		return b, nil
	}
	return nil, fmt.Errorf("%w: %d", errType, oid)
}
