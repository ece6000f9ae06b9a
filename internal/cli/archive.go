package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"thru/internal/cli/console"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/report"
	"thru/internal/store"
)

// putTime bounds how long a command waits for the store when its figures are
// printed already: other processes may be writing to it.
const putTime = 20 * time.Second

// storeFile is a flag of all commands that read or write the store.
type storeFile struct {
	Store string `group:"History" name:"store" type:"newfile" placeholder:"FILE" help:"The file in which results are kept (default: $$THRU_STORE, else results.db in the data folder)."`
}

// keepFlags say whether a result is kept, and where.
type keepFlags struct {
	storeFile
	NoStore bool `group:"History" name:"no-store" help:"Do not keep the result for thru history; so does $$THRU_NO_STORE."`
}

// storeFlags say also by what it is found again.
type storeFlags struct {
	keepFlags
	Label []string `group:"History" name:"label" sep:"none" placeholder:"KEY=VALUE" help:"Name the result, such as site=fra or ticket=4711, to find it by. Can be repeated."`
}

// AfterApply implements kong.AfterApply: the flags are checked before anything is connected.
func (f storeFlags) AfterApply(e *env) error {
	labels, err := readLabels(f.Label)
	if err != nil {
		return err
	}
	if f.NoStore && len(labels) > 0 {
		return fault.Usagef("leave one of them out", "--label names a kept result, and --no-store keeps none")
	}
	e.archive = archiveOf(f.keepFlags)
	e.archive.labels = labels
	return nil
}

// Bounds of labels, so that a table can show them.
const (
	mostLabels = 32
	mostLabel  = 200 // bytes of a key, and of a value
)

// readLabels reads KEY=VALUE.
func readLabels(words []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, w := range words {
		key, value, found := strings.Cut(w, "=")
		key, value = fault.Unsecret(strings.TrimSpace(key)), fault.Unsecret(strings.TrimSpace(value))
		switch {
		case !found, key == "", value == "":
			return nil, fault.Usagef("such as --label site=fra", "--label %q: no KEY=VALUE", short(w))
		case len(key) > mostLabel, len(value) > mostLabel, console.Printable(w) != w:
			return nil, fault.Usagef(fmt.Sprintf("at most %d bytes of plain text each", mostLabel), "--label %q: no label", short(w))
		}
		if before, twice := labels[key]; twice && before != value {
			return nil, fault.Usagef("give each key once", "--label %s is given as %s and as %s", key, before, value)
		}
		labels[key] = value
	}
	if len(labels) > mostLabels {
		return nil, fault.Usagef(fmt.Sprintf("at most %d", mostLabels), "%d labels", len(labels))
	}
	return labels, nil
}

// archive is where the result of this command goes.
type archive struct {
	path    string // empty: the default
	off     bool
	labels  map[string]string
	instead string // id of what the same run had kept before, which goes
	id      string // under which it was kept
	most    int    // results of the command that are kept; 0 is no bound
}

// atMost is the same with a bound: strangers cause what a server keeps.
func (a archive) atMost(n int) archive {
	a.most = n
	return a
}

// archiveOf is what flags ask for, and where they say nothing the environment.
func archiveOf(f keepFlags) archive {
	return archive{path: cmp.Or(f.Store, os.Getenv("THRU_STORE")), off: f.NoStore || !slices.Contains([]string{"", "0", "no", "false"}, os.Getenv("THRU_NO_STORE"))}
}

// defaultStore is the default place of the store (XDG Base Directory Specification).
func defaultStore() (string, error) {
	if d := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "thru", "results.db"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fault.Failf("name a file with --store", "cli: finding the data folder: %w", err)
	}
	return filepath.Join(home, ".local", "share", "thru", "results.db"), nil
}

// open opens the store.
func (a archive) open(o store.Options) (store.Store, error) {
	path, err := a.path, error(nil)
	if path == "" {
		path, err = defaultStore()
	}
	if err != nil {
		return nil, err
	}
	o.Patience = putTime
	return store.Open(path, o)
}

// worthKeeping tells whether a document says anything that was found out.
func worthKeeping(doc *measure.Document) bool {
	t := doc.Tuning
	return measured(doc) || doc.Command == "check" && len(doc.Gates) > 0 || t != nil && len(t.Attempts) > 0
}

// keep puts a document into the store and returns its id; empty where nothing
// is kept.
func (a archive) keep(doc *measure.Document) (string, error) {
	if a.off || !worthKeeping(doc) {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), putTime) // an interrupted test is kept too
	defer cancel()
	s, err := a.open(store.Options{})
	if err != nil {
		return "", err
	}
	id, err := s.Put(ctx, doc, report.Answer(doc))
	if err == nil && a.instead != "" && a.instead != id {
		_, err = s.Delete(ctx, a.instead)
	}
	if err == nil && a.most > 0 {
		_, err = s.Prune(ctx, store.Retention{Command: doc.Command, Count: a.most})
	}
	return id, errors.Join(err, s.Close())
}

// store keeps what was printed, and says so. That it cannot be kept takes
// nothing along: figures and exit code stay.
func (e *env) store(doc *measure.Document, quiet bool) {
	id, err := e.archive.keep(doc)
	switch {
	case errors.Is(err, store.ErrNone): // nothing that anybody here could mend
	case err != nil:
		e.Warn("the result is not in the history", err)
	case id != "" && !quiet:
		fmt.Fprintf(e.Out, "stored: %s\n", id)
	}
	e.archive.id = id
}
