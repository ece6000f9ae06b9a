// Package store keeps results: whole documents (docs/result.md), found again by
// when, where and what was measured. A Store is safe for several goroutines and
// for several processes at once, and a document that Put has returned an id for
// is there after whatever ends the process or the machine.
//
// # One history
//
//  1. A command that has measured prints its document, then hands it to a Store. Put returns an id when the result is on the disk. A store
//     that fails costs a warning, never the figures. Nothing else knows where results are.
//  2. Open is the store of one person: a SQLite file, opened by each process for itself (open.go), so there is no service. A document is
//     compressed JSON; beside it are an Entry, made of it in one place (entry.go), and the names that it is found by. Find
//     reads no document.
//  3. An id is when the result began and the beginning of the SHA-256 of its JSON (document.go). So the same result is kept once,
//     wherever it comes from: an export that is imported on another machine has its id there too.
//  4. storetest is the contract of every Store.
//
// On a network file system there is no write-ahead log: SQLite's needs memory that all writers share, which two machines do not have. There it
// uses the older journal, with locks of the file system alone (netfs_linux.go).
package store

import (
	"context"
	"errors"
	"time"

	"thru/internal/measure"
)

// Errors that callers tell apart.
var (
	ErrNotFound = errors.New("no such result")
	ErrNewer    = errors.New("the store was written by a newer thru")
	ErrNone     = errors.New("no store on this system") // the database has no port to it
)

// Entry is what is known of a kept result without reading it.
type Entry struct {
	ID        string            `json:"id"`         // sorts by time: "20261122-201530-a3f9"
	StartedAt time.Time         `json:"started_at"` // UTC
	ElapsedNs int64             `json:"elapsed_ns"`
	Command   string            `json:"command"` // "test", "ladder", "run"...
	Title     string            `json:"title"`   // the answer in one line, as it was said then
	Hosts     []string          `json:"hosts"`   // names of the end points and of their machines, each once
	Pairs     []string          `json:"pairs"`   // measure.PairName of its cells, each once
	Plan      string            `json:"plan,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`      // of the result, and of its end points
	Verdict   string            `json:"verdict"`               // Pass, Fail, Inconclusive or NoVerdict
	Goodput   *float64          `json:"goodput_bps,omitempty"` // of the first cell that is a result of its own, bulk data before requests; of a transfer its own
	Error     string            `json:"error,omitempty"`       // how it ended, where it failed
	Thru      string            `json:"thru_version"`
	Bytes     int64             `json:"document_bytes"` // of its JSON
	KeptAt    time.Time         `json:"kept_at"`        // when this store took it, UTC
}

// Verdicts of an Entry.
const (
	Pass         = "pass"
	Fail         = "fail"
	Inconclusive = "inconclusive"
	NoVerdict    = "none"
)

// Filter says which entries are wanted; what is zero does not bind. All that is
// given must hold.
type Filter struct {
	Hosts    []string // each took part, by name of the end point or of the machine
	Pair     string   // measure.PairName
	Plan     string
	Commands []string // any of them
	Labels   map[string]string
	Verdict  string
	Since    time.Time // began then or later
	Until    time.Time // began before
	Text     string    // in title, hosts, plan or labels, whatever the case
	Failed   *bool     // ended by an error
	Prefix   string    // only ids that begin with it
	Limit    int       // at most so many; 0 is DefaultLimit, and less no bound
	Before   string    // only what comes after this id in the order of Find: for the next page
}

// Options of Open. With ReadOnly or Existing nothing is made: a file that is not
// there, or is empty, is an error (fs.ErrNotExist).
type Options struct {
	ReadOnly bool          // change nothing
	Existing bool          // change what is there
	Patience time.Duration // how long to wait for other processes; 0 is half a minute
}

// MaxDocument bounds a document, in bytes of its JSON without spaces: twice what
// a plan of 10,000 pairs has (docs/scale.md).
const MaxDocument = 256 << 20

// DefaultLimit is how many entries Find returns where Limit is 0.
const DefaultLimit = 100

// Retention says what may go; what is zero does not bind. The newest stay.
type Retention struct {
	Age   time.Duration // older ones go
	Count int           // more than so many: the oldest go
	Bytes int64         // while the store's file is larger: the oldest go, up to the newest one

	Command string // only results of this command go, and Count counts only them

	DryRun bool // only count what would go
}

// Stats are figures of a whole store.
type Stats struct {
	Count  int       `json:"count"`
	Bytes  int64     `json:"bytes"` // that it takes on the disk
	Oldest time.Time `json:"oldest,omitzero"`
	Newest time.Time `json:"newest,omitzero"`
}

// Store keeps results. What is not found is ErrNotFound.
type Store interface {
	// Put keeps a document and returns its id. The same document again has the
	// same id and is kept once; a title that it had not yet is added. It is on disk
	// when Put returns.
	Put(ctx context.Context, doc *measure.Document, title string) (id string, err error)
	// Get returns a document as it was kept.
	Get(ctx context.Context, id string) (*measure.Document, error)
	// Entry returns what Find would of one id.
	Entry(ctx context.Context, id string) (Entry, error)
	// Find returns entries, the newest first by when they began, and whether there are more.
	Find(ctx context.Context, f Filter) (found []Entry, more bool, err error)
	// Delete removes results; ids that are not there are no error. It returns how many went.
	Delete(ctx context.Context, ids ...string) (int, error)
	// Prune removes what a retention lets go, and returns how many went.
	Prune(ctx context.Context, r Retention) (int, error)
	// Stats counts.
	Stats(ctx context.Context) (Stats, error)
	// Close gives the file back.
	Close() error
}
