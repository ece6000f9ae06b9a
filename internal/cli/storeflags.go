package cli

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"thru/internal/fault"
	"thru/internal/library"
	"thru/internal/measure"
	"thru/internal/store"
	"thru/internal/store/postgres"
	"thru/internal/unit"
)

// storeFile is the flag of all commands that read or write the store.
type storeFile struct {
	Store string `group:"History" name:"store" type:"store" placeholder:"FILE|URL" help:"The file in which results are stored, or a team's database: postgres://HOST/DATABASE (default: $$THRU_STORE, else results.db in the data folder)."`
}

// storeName reads the name of a store: a file, or the URL of a database.
func storeName(ctx *kong.DecodeContext, to reflect.Value) error {
	name, _ := ctx.Scan.Peek().Value.(string)
	if !postgres.Is(name) {
		return newFile(ctx, to)
	}
	ctx.Scan.Pop()
	to.SetString(name)
	return postgres.Check(name)
}

// keepFlags choose whether and where a result is stored.
type keepFlags struct {
	storeFile
	NoStore bool `group:"History" name:"no-store" help:"Do not store the result for thru history (or set $$THRU_NO_STORE)."`
}

// storeFlags also set the labels of a result.
type storeFlags struct {
	keepFlags
	Label []string `group:"History" name:"label" sep:"none" placeholder:"KEY=VALUE" help:"Label the result, such as site=fra or ticket=4711, to find it later. Can be repeated."`
}

// AfterApply implements kong.AfterApply: it checks the flags before anything is connected.
func (f storeFlags) AfterApply(e *env, k *kong.Context) error {
	labels, err := readLabels(f.Label)
	if err != nil {
		return err
	}
	if f.NoStore && len(labels) > 0 && slices.Contains(typedFlags(k), "--no-store") {
		return fault.Usagef("leave one of them out", "--label needs a stored result, and --no-store stores none")
	}
	e.archive = archiveOf(f.keepFlags)
	e.archive.Labels = labels
	e.archive.Sent = func(n int) { e.Line(unit.Plural(n, "result") + " that waited: sent to the database") }
	return nil
}

// Limits of labels, so that a table can show them.
const (
	mostLabels = 32
	mostLabel  = 200 // bytes of a key, and of a value
)

// readLabels parses KEY=VALUE.
func readLabels(words []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, w := range words {
		key, value, found := strings.Cut(w, "=")
		key, value = fault.Unsecret(strings.TrimSpace(key)), fault.Unsecret(strings.TrimSpace(value))
		switch {
		case !found, key == "", value == "":
			return nil, fault.Usagef("such as --label site=fra", "--label %q is not KEY=VALUE", fault.Short(w))
		case len(key) > mostLabel, len(value) > mostLabel, fault.Printable(w) != w:
			return nil, fault.Usagef(fmt.Sprintf("at most %d bytes of plain text each", mostLabel), "--label %q is not a label", fault.Short(w))
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

// storeSettings returns what the settings say about the store, for a command that does not have its flags.
func (e *env) storeSettings() (f keepFlags) {
	if found := e.settings.Find("store"); len(found) > 0 {
		if f.Store = found[0].Text(); !postgres.Is(f.Store) {
			f.Store = kong.ExpandPath(f.Store)
		}
	}
	if found := e.settings.Find("no-store"); len(found) > 0 {
		f.NoStore = isOn(found[0].Text())
	}
	return f
}

// archiveOf returns the archive that the flags choose.
func archiveOf(f keepFlags) library.Archive {
	return library.Archive{Path: f.Store, Off: f.NoStore}
}

// store stores the printed result and prints its id. A failure to store changes neither figures nor exit
// code.
func (e *env) store(doc *measure.Document, quiet bool) {
	id, err := e.archive.Keep(doc)
	switch {
	case errors.As(err, new(*library.Waits)):
		e.Warn("the database has not taken the result", err)
		id = "" // thru history does not list it yet
	case errors.Is(err, store.ErrNone): // nothing that the user could fix
	case err != nil:
		e.Warn("the result is not in the history", err)
	case id != "" && !quiet:
		fmt.Fprintf(e.Out, "stored: %s\n", id)
	}
	e.archive.ID = id
}
