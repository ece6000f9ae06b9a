// Package store stores results: whole documents (docs/result.md), found by time, hosts
// and kind of measurement. A Store is safe for several goroutines and several processes
// at once. A document for which Put has returned an id survives any end of the process
// or the machine.
//
// # One history
//
//  1. A command that has measured prints its document, then passes it to a Store. Put returns an id when the result is on the disk. A store
//     that fails causes a warning, and never loses the figures. No other package knows where results are.
//  2. Open is the store of one user: a SQLite file, which each process opens for itself (open.go), so there is no service. A document is
//     compressed JSON; with it are an Entry, made from it in one place (entry.go), and its search keys. Find reads no document.
//  3. An id is the time when the result began and the beginning of the SHA-256 of its JSON (document.go). So the same result is stored once,
//     wherever it comes from: an export that is imported on another machine has the same id there.
//  4. A team has one archive instead (package postgres). What both do in the same way is in Results (results.go).
//  5. contract_test.go tests the contract of every Store.
//
// # Samples of watches
//
// The samples of an hour of a pair and layer are one pack of columns (pack.go), which takes a tenth of them. When it is removed, a summary of the hour
// stays (PruneSamples).
//
// On a network file system there is no write-ahead log: SQLite's needs memory that all writers share, which two machines do not have. There it
// uses the rollback journal, with locks of the file system alone (netfs_linux.go).
package store

import (
	"context"
	"errors"
	"time"

	"thru/internal/measure"
)

// Errors that callers distinguish.
var (
	ErrNotFound = errors.New("no such result")
	ErrNewer    = errors.New("the store was written by a newer thru")
	ErrNone     = errors.New("no store on this system") // the database does not support it
	ErrPartly   = errors.New("all other samples are stored")
	ErrDamaged  = errors.New("it is damaged")
)

// Entry holds the facts of a stored result for lists.
type Entry struct {
	ID        string            `json:"id"`         // sorts by time: "20261122-201530-a3f9"
	StartedAt time.Time         `json:"started_at"` // UTC
	ElapsedNs int64             `json:"elapsed_ns"`
	Command   string            `json:"command"` // "test", "ladder", "run"...
	Title     string            `json:"title"`   // the answer in one line, as it was printed then
	Hosts     []string          `json:"hosts"`   // names of the end points and of their machines, each once
	Pairs     []string          `json:"pairs"`   // measure.PairName of its cells, each once
	Plan      string            `json:"plan,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`      // of the result, and of its end points
	Verdict   string            `json:"verdict"`               // Pass, Fail, Inconclusive or NoVerdict
	Goodput   *float64          `json:"goodput_bps,omitempty"` // of the first cell with its own result, bulk data before requests; of a transfer its own
	Error     string            `json:"error,omitempty"`       // how it failed
	Thru      string            `json:"thru_version"`
	Bytes     int64             `json:"document_bytes"` // of its JSON
	KeptAt    time.Time         `json:"kept_at"`        // when this store received it, UTC
}

// Verdicts of an Entry.
const (
	Pass         = "pass"
	Fail         = "fail"
	Inconclusive = "inconclusive"
	NoVerdict    = "none"
)

// Filter selects entries; a zero field is no condition. All conditions must hold.
type Filter struct {
	Hosts    []string // all of them took part, by name of the end point or of the machine
	Pair     string   // measure.PairName
	Plan     string
	Commands []string // any of them
	Labels   map[string]string
	Verdict  string
	Since    time.Time // began then or later
	Until    time.Time // began before
	Text     string    // in title, hosts, plan or labels, case-insensitive
	Failed   *bool     // ended with an error
	Prefix   string    // only ids with this prefix
	Limit    int       // at most so many; 0 is DefaultLimit, negative no limit
	Before   string    // only what follows this id in the order of Find: for the next page
}

// Options of Open. With ReadOnly or Existing nothing is created: a file that is missing
// or empty is an error (fs.ErrNotExist).
type Options struct {
	ReadOnly bool          // change nothing
	Existing bool          // change only an existing store
	Patience time.Duration // how long to wait for other processes; 0 is half a minute
}

// MaxDocument bounds a document, in bytes of its JSON without spaces: twice the size of a
// plan of 10,000 pairs (docs/scale.md).
const MaxDocument = 256 << 20

// DefaultLimit is how many entries Find returns where Limit is 0.
const DefaultLimit = 100

// Retention says what is deleted; a zero field is no condition. The newest are kept.
type Retention struct {
	Age   time.Duration // delete older ones
	Count int           // keep at most so many
	Bytes int64         // delete the oldest while the store's file, without what watches stored, is larger; except the newest result

	Command string // delete only results of this command, and count only them

	DryRun bool // only count what would be deleted
}

// Stats are figures of a whole store.
type Stats struct {
	Count  int       `json:"count"`
	Bytes  int64     `json:"bytes"` // size on the disk
	Oldest time.Time `json:"oldest,omitzero"`
	Newest time.Time `json:"newest,omitzero"`
}

// Store stores results, and what watches find. The error of an unknown id is ErrNotFound.
type Store interface {
	Watches
	// Put stores a document and returns its id. The same document again has the
	// same id and is stored once; a missing title is added. The document is on disk
	// when Put returns.
	Put(ctx context.Context, doc *measure.Document, title string) (id string, err error)
	// Get returns a document as it was stored.
	Get(ctx context.Context, id string) (*measure.Document, error)
	// Entry returns the entry of one id.
	Entry(ctx context.Context, id string) (Entry, error)
	// Find returns entries, the newest first by their begin, and whether there are more.
	Find(ctx context.Context, f Filter) (found []Entry, more bool, err error)
	// Delete removes results; unknown ids are no error. It returns how many were removed.
	Delete(ctx context.Context, ids ...string) (int, error)
	// Prune removes what a retention allows, and returns how many were removed.
	Prune(ctx context.Context, r Retention) (int, error)
	// Stats returns figures of the whole store.
	Stats(ctx context.Context) (Stats, error)
	// Close closes the file.
	Close() error
}
