package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"thru/internal/fault"
	"thru/internal/store"
)

var (
	errReadOnly = errors.New("it was opened read-only")
	errSlow     = errors.New("it took too long")
	errNone     = errors.New("the database has no archive of thru")
	errOlder    = errors.New("the archive is older than this thru")
	errURL      = errors.New("the URL is not one of a database")
)

// trouble is what an error means to the user.
type trouble struct{ says, hint string }

// Hints for several troubles.
const (
	migrateIt  = "have its owner run thru history migrate --store URL (thru help archive)"
	askServer  = "check the server: its log names the cause"
	grantIt    = "have its owner grant them: thru help archive has the statements"
	checkPlace = "check host and port of the URL, and that the server runs and listens there"
	freeSpace  = "free space on the server's disk, or remove results: thru history prune"
)

// Explain implements store.Engine.
func (s *archive) Explain(doing string, err error) error { return explain(doing, s.name, err) }

func explain(doing, name string, err error) error {
	if err == nil {
		return nil
	}
	if t := troubleOf(err); t.says != "" {
		return fault.Failf(t.hint, "store: %s %s: %s: %w", doing, name, t.says, brief{err})
	}
	return fault.New(fault.Code(err), fault.Hint(err), "store: %s %s: %w", doing, name, brief{err})
}

// brief is an error in one line: pgconn lists each address and each attempt.
type brief struct{ error }

// Unwrap returns the whole error.
func (b brief) Unwrap() error { return b.error }

// Error returns what the server says, or the innermost cause.
func (b brief) Error() string {
	if e := (*pgconn.PgError)(nil); errors.As(b.error, &e) {
		return fault.Printable(e.Message) + " (SQLSTATE " + fault.Printable(e.Code) + ")"
	}
	if !errors.As(b.error, new(*pgconn.ConnectError)) {
		return fault.Printable(fault.Unsecret(b.error.Error()))
	}
	err := b.error
	for next := err; next != nil; {
		err = next
		switch x := err.(type) {
		case interface{ Unwrap() []error }:
			next = x.Unwrap()[0]
		case interface{ Unwrap() error }:
			next = x.Unwrap()
		default:
			next = nil
		}
	}
	return fault.Printable(fault.Unsecret(err.Error()))
}

// troubleOf explains errors whose cause is outside of thru.
func troubleOf(err error) trouble {
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) {
		return troubleOfState(e.Code)
	}
	switch {
	case errors.Is(err, errNone), errors.Is(err, errOlder):
		return trouble{"it is not ready for this thru", migrateIt}
	case errors.Is(err, store.ErrNewer):
		return trouble{"this thru cannot use it", "install a newer thru, or name another store with --store"}
	case errors.Is(err, errOldServer):
		return trouble{"the archive needs PostgreSQL 15 or newer", "name a newer server with --store"}
	case errors.Is(err, context.Canceled), errors.Is(err, errReadOnly), errors.Is(err, store.ErrDamaged):
		return trouble{}
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return trouble{"its certificate is not trusted", "add sslrootcert=FILE to the URL, with the certificate of its issuer, and use the name that the certificate has"}
	case errors.Is(err, errSlow), errors.Is(err, context.DeadlineExceeded), pgconn.Timeout(err):
		return trouble{"the server takes too long", "check the server and the network to it"}
	case errors.As(err, new(*net.DNSError)):
		return trouble{"its name is not known", checkPlace}
	case errors.As(err, new(*net.OpError)):
		return trouble{"the server does not answer", checkPlace}
	case errors.As(err, new(*pgconn.ConnectError)):
		return trouble{"the server does not answer as PostgreSQL with the sslmode of the URL does", checkPlace + "; and whether it offers TLS"}
	case lost(err):
		return trouble{"the connection to the server was lost", askServer}
	}
	return trouble{}
}

// troubleOfState explains an SQLSTATE (PostgreSQL's documentation, appendix A).
func troubleOfState(code string) trouble {
	switch code {
	case "28P01", "28000":
		return trouble{"the server does not admit this user", "set the password in PGPASSWORD or in the file of PGPASSFILE, and see the server's pg_hba.conf"}
	case "3D000":
		return trouble{"there is no such database", "create it (createdb), or correct the URL"}
	case "42501":
		return trouble{"the user lacks rights", grantIt}
	case "3F000", "42P01", "42883", "42703":
		return trouble{"its tables are not those of thru", migrateIt}
	case "53100":
		return trouble{"its disk is full", freeSpace}
	case "53300":
		return trouble{"it has no free connection", "raise max_connections of the server, or the limit of the user or the database"}
	case "25006":
		return trouble{"the server is read-only, such as a standby", "name the primary in the URL, or add target_session_attrs=read-write"}
	case "57014":
		return trouble{"the server has cancelled the statement", "raise statement_timeout for this user"}
	}
	switch class(code) {
	case "53":
		return trouble{"the server lacks resources", askServer}
	case "08", "57", "58", "XX":
		return trouble{"the server fails or shuts down", askServer}
	}
	return trouble{}
}

// class is the first part of an SQLSTATE.
func class(code string) string { return code[:min(len(code), 2)] }

// Away reports whether an error is one of an outage: the database would have stored the same later.
func Away(err error) bool {
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) {
		return strings.Contains(" 08 53 57 58 XX ", " "+class(e.Code)+" ") || e.Code == "25006"
	}
	if errors.As(err, new(*tls.CertificateVerificationError)) {
		return false
	}
	return lost(err) || errors.Is(err, errSlow) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(*pgconn.ConnectError))
}

// lost reports whether the connection is gone, and with it the answer.
func lost(err error) bool {
	return errors.As(err, new(net.Error)) || errors.Is(err, net.ErrClosed) || errors.As(err, new(interface{ SafeToRetry() bool }))
}

// temporary reports whether the same transaction may succeed at once: others were in its way, or the connection was old.
func temporary(err error) bool {
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) {
		switch e.Code {
		case "40001", "40P01", "23505", "57P01": // serialization, deadlock, the same at the same time, the server was restarted
			return true
		}
		return false
	}
	return lost(err) && !errors.As(err, new(*pgconn.ConnectError))
}
