package library

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/report"
	"thru/internal/store"
	"thru/internal/store/postgres"
)

// putTime bounds how long a command waits for the store after it has printed its
// result: other processes may be writing to it.
const putTime = 20 * time.Second

// Archive says where the result of this command is stored.
type Archive struct {
	Path    string // empty: the default; or the URL of a database
	Off     bool
	Labels  map[string]string
	Instead string // id of an earlier result of the same run, which is replaced
	ID      string // id of the stored result
	most    int    // number of results of the command to keep; 0: no limit

	Sent func(results int) // is told how many results of an outage were sent on; may be nil
}

// AtMost returns the Archive with a limit: remote clients cause what a server stores.
func (a Archive) AtMost(n int) Archive {
	a.most = n
	return a
}

// defaultStore returns the default file of the store (XDG Base Directory Specification).
func defaultStore() (string, error) {
	if d := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "thru", "results.db"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fault.Failf("name a file with --store", "library: finding the data folder: %w", err)
	}
	return filepath.Join(home, ".local", "share", "thru", "results.db"), nil
}

// Open opens the store.
func (a Archive) Open(o store.Options) (store.Store, error) {
	path, err := a.Path, error(nil)
	if path == "" {
		path, err = defaultStore()
	}
	if err != nil {
		return nil, err
	}
	o.Patience = putTime
	if postgres.Is(path) {
		return postgres.Open(path, o)
	}
	return store.Open(path, o)
}

// Keep stores a document and returns its id; empty where it is not stored. With a *Waits it is stored in a file until the database is back.
func (a Archive) Keep(doc *measure.Document) (string, error) {
	if a.Off || !WorthKeeping(doc) {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), putTime) // an interrupted test is stored too
	defer cancel()
	if postgres.Is(a.Path) {
		return a.send(ctx, doc)
	}
	s, err := a.Open(store.Options{})
	if err != nil {
		return "", err
	}
	id, err := s.Put(ctx, doc, report.Answer(doc))
	if err == nil {
		err = a.tidy(ctx, s, doc, id)
	}
	return id, errors.Join(err, s.Close())
}

// tidy removes what a stored result replaces.
func (a Archive) tidy(ctx context.Context, s store.Store, doc *measure.Document, id string) (err error) {
	if a.Instead != "" && a.Instead != id {
		_, err = s.Delete(ctx, a.Instead)
	}
	if err == nil && a.most > 0 {
		_, err = s.Prune(ctx, store.Retention{Command: doc.Command, Count: a.most})
	}
	return err
}

// send stores a document in a database, and sends on what waits for it.
func (a Archive) send(ctx context.Context, doc *measure.Document) (string, error) {
	file, err := defaultStore()
	if err != nil {
		return "", err
	}
	s := NewSender(a.Path, filepath.Dir(file))
	id, err := s.Put(ctx, doc, report.Answer(doc))
	if err == nil {
		var sent int
		sent, err = s.Send(ctx)
		if sent > 0 && a.Sent != nil {
			a.Sent(sent)
		}
		err = errors.Join(a.tidy(ctx, s.opened, doc, id), err)
	}
	return id, errors.Join(err, s.Close())
}
