package session

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"thru/internal/fault"
	"thru/internal/transfer"
	"thru/internal/transfer/runner"
	"thru/internal/unit"
)

// besideGenerated is in the name of generated data where the URL's own name
// is taken.
const besideGenerated = ".thru-generated"

// name returns the names of a client's files at the server.
func (m *Transfer) name(suffix string) func(client, file int) string {
	several := m.Many > 1 && (m.uploads() || m.generates())
	return func(client, file int) string {
		n := m.target.Path
		if suffix != "" { // the suffix must fit as well (NAME_MAX)
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

// vacant refuses to write over an existing file. Generated data that is
// removed again never replaces a file: with --overwrite it gets another name
// in the same folder.
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
			return fault.Failf("replace it with --overwrite, or name another", "session: %s: %w", at, transfer.ErrExists)
		case m.generates() && !m.Keep && m.nameSuffix == "":
			m.nameSuffix = besideGenerated
			m.warnings = append(m.warnings, "thru keeps the existing file: it uploads generated data as "+m.name(m.nameSuffix)(client, 0)+", and removes it at the end (replace the file with --keep)")
		}
	}
	return nil
}

// replaces reports whether an existing file may be replaced. Generated data
// that is to be removed replaces none, not even one that was created after
// the check.
func (m *Transfer) replaces() bool { return m.Overwrite && (m.Keep || !m.generates()) }

// keep removes files that are to stay from the list of those to clean.
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

// Limits for the removal of created files, also after an interrupt. A second
// interrupt ends it.
const (
	cleanSilence  = 10 * time.Second // longest time without any byte
	cleanSessions = 8                // parallel
	cleanEach     = 16               // files for each session
	cleanNames    = 3                // names in a message
)

// Clean removes the files that the measurement has created.
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
	return fmt.Errorf("session: %s remain at the server, %s: %w", unit.Plural(len(left), "file"), patterns(left), err)
}

// numbered matches the number at the end of a name.
var numbered = unit.Pattern(`-[0-9]+$`)

// patterns returns a few names, or the common patterns of many.
func patterns(names []string) string {
	if len(names) > cleanNames {
		short := unit.Mapped(names, func(n string) string { return numbered().ReplaceAllString(n, "-*") })
		slices.Sort(short)
		names = slices.Compact(short)
	}
	if len(names) > cleanNames {
		return strings.Join(names[:cleanNames], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}
