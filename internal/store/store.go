// Package store keeps results: whole documents (docs/result.md), found again by
// when, where and what was measured. A Store is safe for several goroutines and
// for several processes at once, and a document that Put has returned an id for
// is there after whatever ends the process or the machine.
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
	Labels    map[string]string `json:"labels,omitempty"` // of the result, and of its end points
	Verdict   string            `json:"verdict"`          // Pass, Fail or NoVerdict
	Goodput   *float64          `json:"goodput_bps,omitempty"`
	Error     string            `json:"error,omitempty"` // how it ended, where it failed
	Thru      string            `json:"thru_version"`
	Bytes     int64             `json:"document_bytes"` // of its JSON
}

// Verdicts of an Entry.
const (
	Pass      = "pass"
	Fail      = "fail"
	NoVerdict = "none"
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
	Limit    int       // at most so many; 0 is DefaultLimit
	Before   string    // only ids that sort before this one: for the next page
}

// Options of Open.
type Options struct {
	ReadOnly bool // make nothing: a file that is not there is an error (fs.ErrNotExist)
}

// DefaultLimit is how many entries Find returns where Limit is 0.
const DefaultLimit = 100

// Retention says what may go; what is zero does not bind. The newest stay.
type Retention struct {
	Age   time.Duration // older ones go
	Count int           // more than so many: the oldest go
	Bytes int64         // while the store's file is larger: the oldest go
	Dry   bool          // only count them
}

// Store keeps results. What is not found is ErrNotFound.
type Store interface {
	// Put keeps a document and returns its id. The same document again has the
	// same id and is kept once. It is on disk when Put returns.
	Put(ctx context.Context, doc *measure.Document, title string) (id string, err error)
	// Get returns a document as it was kept.
	Get(ctx context.Context, id string) (*measure.Document, error)
	// Entry returns what Find would of one id.
	Entry(ctx context.Context, id string) (Entry, error)
	// Find returns entries, the newest first, and whether there are more.
	Find(ctx context.Context, f Filter) (found []Entry, more bool, err error)
	// Delete removes results; ids that are not there are no error. It returns how many went.
	Delete(ctx context.Context, ids ...string) (int, error)
	// Prune removes what a retention lets go, and returns how many went.
	Prune(ctx context.Context, r Retention) (int, error)
	// Close gives the file back.
	Close() error
}
