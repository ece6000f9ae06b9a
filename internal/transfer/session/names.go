package session

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"thru/internal/fault"
	"thru/internal/transfer"
	"thru/internal/transfer/runner"
	"thru/internal/unit"
)

// besideGenerated is in the name of generated data where the URL's own is somebody's.
const besideGenerated = ".thru-generated"

// name is that of a file of a client at the server.
func (m *Transfer) name(suffix string) func(client, file int) string {
	several := m.Many > 1 && (m.uploads() || m.generates())
	return func(client, file int) string {
		n := m.target.Path
		if suffix != "" { // what comes behind it must fit as well (NAME_MAX)
			dir, base := path.Split(n)
			n = dir + strings.ToValidUTF8(base[:min(len(base), 200)], "")
		}
		if several {
			n += fmt.Sprintf(".%d", client+1)
		}
		if suffix != "" {
			n += fmt.Sprintf("%s-%s-%d", suffix, m.mark, file)
		}
		return n
	}
}

// vacant refuses to write where something is already. Generated data that is removed
// again never takes the place of a file: with --overwrite it lies beside it.
func (m *Transfer) vacant(ctx context.Context, s transfer.Session) error {
	names := m.name("")
	for client := range m.Many {
		_, err := s.Size(ctx, names(client, 0))
		switch {
		case errors.Is(err, transfer.ErrMissing):
		case err != nil:
			return err
		case !m.Overwrite:
			at := m.target
			at.Path = names(client, 0)
			return fault.Failf("--overwrite replaces it, or name another", "session: %s: %w", at, transfer.ErrExists)
		case m.generates() && !m.Keep && m.nameSuffix == "":
			m.nameSuffix = besideGenerated
			m.warnings = append(m.warnings, "the file that is there stays: generated data lies beside it, as "+m.name(m.nameSuffix)(client, 0)+", and is removed at the end (--keep replaces the file)")
		}
	}
	return nil
}

// replaces reports whether what has the name of a file may go. Generated data that is to
// be removed takes no file along, also none that came after it was looked for.
func (m *Transfer) replaces() bool { return m.Overwrite && (m.Keep || !m.generates()) }

// keep takes files that are to stay out of what was made.
func (m *Transfer) keep(name func(client, file int) string) {
	m.made = slices.DeleteFunc(m.made, func(made string) bool {
		for client := range m.Many {
			if made == name(client, 0) {
				return true
			}
		}
		return false
	})
}

// Bounds of the removal of what was made, also after an interrupt. A second one ends it.
const (
	cleanSilence  = 10 * time.Second // at most, without any byte
	cleanSessions = 8                // at once
	cleanEach     = 16               // files that are worth a session
	cleanNames    = 3                // that are said
)

// Clean removes what was made for the measurement's sake.
func (m *Transfer) Clean() error {
	if m.Keep {
		m.keep(m.name(""))
	}
	slices.Sort(m.made)
	names := slices.Compact(m.made)
	by := *m
	by.config.Timeout = min(by.config.Timeout, cleanSilence)
	left, err := runner.Remove(context.Background(), by.clients(min(cleanSessions, 1+len(names)/cleanEach)), names)
	if len(left) == 0 {
		return err
	}
	return fmt.Errorf("session: %s left at the server, %s: %w", unit.Plural(len(left), "file"), patterns(left), err)
}

// numbered is the number at the end of a name.
var numbered = regexp.MustCompile(`-[0-9]+$`)

// patterns names files: a few by their names, many by what their names have in common.
func patterns(names []string) string {
	if len(names) > cleanNames {
		short := make([]string, len(names))
		for i, n := range names {
			short[i] = numbered.ReplaceAllString(n, "-*")
		}
		slices.Sort(short)
		names = slices.Compact(short)
	}
	if len(names) > cleanNames {
		return strings.Join(names[:cleanNames], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}
