package library

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"

	"thru/internal/measure"
	"thru/internal/store"
	"thru/internal/store/postgres"
)

// Sender stores results in an archive that may be away. What it cannot store waits in a file, a store of its own, until Send stores it there.
type Sender struct {
	url  string
	file string

	mu     sync.Mutex
	opened store.Store // nil: not connected
	away   bool        // results go to the file; Send tries again
}

// Waits says that a result waits, and why.
type Waits struct {
	File  string
	Cause error
}

// Error implements error.
func (w *Waits) Error() string {
	return fmt.Sprintf("the result waits in %s until the database takes it: %v", w.File, w.Cause)
}

// Unwrap returns the cause.
func (w *Waits) Unwrap() error { return w.Cause }

// NewSender returns the Sender to an archive. Its file is in a folder, one for each archive.
func NewSender(url, folder string) *Sender {
	sum := sha256.Sum256([]byte(postgres.Name(url)))
	return &Sender{url: url, file: filepath.Join(folder, fmt.Sprintf("waiting-%x.db", sum[:4]))}
}

// open connects to the archive. The caller holds the lock.
func (s *Sender) open() (store.Store, error) {
	if s.opened != nil {
		return s.opened, nil
	}
	x, err := postgres.Open(s.url, store.Options{Patience: putTime})
	if err == nil {
		s.opened = x
	}
	return x, err
}

// Put stores a document in the archive, or in the file: the error is then a *Waits.
func (s *Sender) Put(ctx context.Context, doc *measure.Document, title string) (id string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var cause error = errAway
	if !s.away {
		id, cause = s.put(ctx, doc, title)
		if cause == nil {
			return id, nil
		}
		s.away = true
	}
	w, err := store.Open(s.file, store.Options{Patience: putTime})
	if err != nil {
		return "", errors.Join(cause, err)
	}
	kept, cancel := context.WithTimeout(context.WithoutCancel(ctx), putTime) // the archive may have used the time
	defer cancel()
	if id, err = w.Put(kept, doc, title); err == nil {
		err = w.Close()
	} else {
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		return "", errors.Join(cause, err)
	}
	return id, &Waits{s.file, cause}
}

// errAway is the cause of results that wait with others.
var errAway = errors.New("other results wait there")

func (s *Sender) put(ctx context.Context, doc *measure.Document, title string) (string, error) {
	x, err := s.open()
	if err != nil {
		return "", err
	}
	return x.Put(ctx, doc, title)
}

// Send stores in the archive what waits in the file, the newest first, and returns how many it stored. A result leaves the file when the archive
// has confirmed it; one that is sent twice is stored once.
func (s *Sender) Send(ctx context.Context) (sent int, err error) {
	w, err := store.Open(s.file, store.Options{Existing: true, Patience: putTime})
	if errors.Is(err, fs.ErrNotExist) {
		s.mu.Lock()
		defer s.mu.Unlock()
		_, err = s.open()
		s.away = err != nil
		return 0, err
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	var damaged error
	for f := (store.Filter{}); ; {
		found, more, err := w.Find(ctx, f)
		if err != nil {
			return sent, err
		}
		for _, e := range found {
			f.Before = e.ID
			doc, err := w.Get(ctx, e.ID)
			if err != nil {
				damaged = err // it stays
				continue
			}
			if err := s.send(ctx, doc, e.Title); err != nil {
				return sent, err
			}
			if _, err := w.Delete(ctx, e.ID); err != nil {
				return sent, err
			}
			sent++
		}
		if !more {
			s.mu.Lock()
			s.away = false
			s.mu.Unlock()
			return sent, damaged
		}
	}
}

// send stores one result, between those of Put.
func (s *Sender) send(ctx context.Context, doc *measure.Document, title string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.put(ctx, doc, title)
	s.away = err != nil
	return err
}

// Close ends the connection to the archive.
func (s *Sender) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened == nil {
		return nil
	}
	return s.opened.Close()
}
