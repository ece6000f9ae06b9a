package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"thru/internal/fault"
	"thru/internal/library"
	"thru/internal/measure"
	"thru/internal/report"
	"thru/internal/store"
	"thru/internal/store/postgres"
	"thru/internal/unit"
)

// historyCmd works on the stored results.
type historyCmd struct {
	List   historyListCmd   `cmd:"" default:"withargs" help:"List results, newest first (the default). --help shows the filters."`
	Export historyExportCmd `cmd:"" help:"Write results as JSON lines: a backup, or for another machine."`
	Import historyImportCmd `cmd:"" help:"Import what export has written, or documents of --json."`
	Rm     historyRmCmd     `cmd:"" help:"Remove results."`
	Prune  historyPruneCmd  `cmd:"" help:"Remove the oldest results: by age, number or size."`

	Migrate historyMigrateCmd `cmd:"" help:"Make the archive in a team's PostgreSQL database, or bring it to the version of this thru."`
}

// filterFlags select results.
type filterFlags struct {
	storeFile
	Host    []string `group:"Which" name:"host" placeholder:"NAME" help:"Tests with this host, by its name as an end point or its own."`
	Pair    string   `group:"Which" name:"pair" placeholder:"A..B" help:"Measured from A to B."`
	Plan    string   `group:"Which" name:"plan" placeholder:"NAME" help:"Results of this plan."`
	Command []string `group:"Which" name:"command" placeholder:"COMMAND" help:"Of test, ladder, run, check, explain, tune, disk, transfer or serve."`
	Label   []string `group:"Which" name:"label" sep:"none" placeholder:"KEY=VALUE" help:"With this label, of the result or of one of its hosts."`
	Since   string   `group:"Which" name:"since" placeholder:"WHEN" help:"Not before: 7d, 12h, 2026-11-20, 2026-11-20T15:04, yesterday, last-week."`
	Until   string   `group:"Which" name:"until" placeholder:"WHEN" help:"Not after."`
	Verdict string   `group:"Which" name:"verdict" enum:",pass,fail,inconclusive,none" default:"" placeholder:"pass|fail|inconclusive|none" help:"With this verdict; none: without a verdict."`
	Failed  bool     `group:"Which" name:"failed" help:"Ended with an error."`
}

// filter converts the flags to a store.Filter.
func (f filterFlags) filter(now time.Time) (store.Filter, error) {
	s := store.Filter{Hosts: f.Host, Plan: f.Plan, Commands: f.Command, Verdict: f.Verdict}
	if f.Failed {
		s.Failed = &f.Failed
	}
	if f.Pair != "" {
		from, to, found := strings.Cut(f.Pair, "..")
		if !found || from == "" || to == "" {
			return s, fault.Usagef("such as --pair local..peer", "--pair %q is not of the form A..B", fault.Short(f.Pair))
		}
		s.Pair = measure.PairName(from, to)
	}
	var err error
	if s.Labels, err = readLabels(f.Label); err != nil {
		return s, err
	}
	if f.Since != "" {
		if s.Since, _, err = library.ReadWhen(f.Since, now); err != nil {
			return s, err
		}
	}
	if f.Until != "" {
		_, s.Until, err = library.ReadWhen(f.Until, now)
	}
	return s, err
}

// historyListCmd lists results.
type historyListCmd struct {
	Words []string `arg:"" optional:"" name:"word" help:"Word in title, hosts, plan or labels; or a span such as today or 2026-11-01..2026-11-07."`
	filterFlags
	Limit int  `group:"Output" name:"limit" default:"50" placeholder:"N" help:"Most results to list (default 50)."`
	JSON  bool `group:"Output" name:"json" help:"Print them as one JSON document."`
}

// historyList is what --json prints.
type historyList struct {
	Results []store.Entry  `json:"results"`
	More    bool           `json:"more"` // than --limit
	Error   *measure.Error `json:"error"`
}

// Run lists the stored results.
func (c *historyListCmd) Run(ctx context.Context, e *env) error {
	if c.Limit < 1 {
		return fault.Usagef("such as --limit 50", "--limit %d is less than 1", c.Limit)
	}
	now := time.Now()
	f, err := c.filter(now)
	if err != nil {
		return err
	}
	f.Limit = c.Limit
	if err := c.addWords(&f, now); err != nil {
		return err
	}
	var found []store.Entry
	var more bool
	err = e.withStore(c.storeFile, store.Options{ReadOnly: true}, func(s store.Store) (err error) {
		found, more, err = s.Find(ctx, f)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	list, none := historyList{Results: append([]store.Entry{}, found...), More: more}, errors.Is(err, fs.ErrNotExist)
	if len(found) == 0 && f.Text != "" && (!none || !e.isTyped("--store")) {
		err := fault.Usagef("list all results with thru history; thru report ID shows one", "no result matches %q", fault.Short(f.Text))
		if !c.JSON {
			return err
		}
		list.Error, err = e.described(err)
		return cmp.Or(printJSON(e.Out, list), err)
	}
	if c.JSON {
		return printJSON(e.Out, list)
	}
	return c.print(e, found, more, none, now)
}

// addWords adds the words to a filter: a span of time, and text.
func (c *historyListCmd) addWords(f *store.Filter, now time.Time) error {
	var text []string
	for _, w := range c.Words {
		if when, err := library.ReadSpan(w, now); err == nil {
			if !f.Since.IsZero() || !f.Until.IsZero() {
				return fault.Usagef("give a span, or --since and --until", "%s is a second time span", fault.Named(w))
			}
			f.Since, f.Until = when.Since, when.Until
			continue
		}
		text = append(text, w)
	}
	f.Text = strings.Join(text, " ")
	return nil
}

// print writes the table, or why it is empty.
func (c *historyListCmd) print(e *env, found []store.Entry, more, none bool, now time.Time) error {
	if none && e.isTyped("--store") {
		return fault.Failf("leave --store out for the default file", "%s has no results", fault.Unsecret(c.Store))
	}
	if none || len(found) == 0 && len(c.Words) == 0 && c.none() {
		_, err := fmt.Fprintln(e.Out, "No result is stored yet. Run thru test: it stores its result.")
		return err
	}
	if len(found) == 0 {
		_, err := fmt.Fprintln(e.Out, "No result matches. `thru history` lists all.")
		return err
	}
	width, colour := e.Terminal()
	w := bufio.NewWriter(e.Out)
	writeEntries(w, found, width, colour, now)
	if more {
		fmt.Fprintf(w, "There are more: raise the --limit, such as %d, or filter by --host, --pair, --since.\n", 4*c.Limit)
	}
	return w.Flush()
}

// none reports whether no filter is set.
func (f filterFlags) none() bool {
	return len(f.Host)+len(f.Command)+len(f.Label) == 0 && f.Pair+f.Plan+f.Since+f.Until+f.Verdict == "" && !f.Failed
}

// withStore opens the store, calls use, and closes the store.
func (e *env) withStore(at storeFile, o store.Options, use func(store.Store) error) error {
	s, err := archiveOf(keepFlags{storeFile: at}).Open(o)
	if err != nil {
		return err
	}
	return errors.Join(use(s), s.Close())
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("cli: printing JSON: %w", err)
	}
	return nil
}

// historyExportCmd writes results as JSON lines.
type historyExportCmd struct {
	File string `arg:"" optional:"" name:"file" help:"Output file (default: stdout). An existing file is not overwritten."`
	filterFlags
}

// Run exports.
func (c *historyExportCmd) Run(ctx context.Context, e *env) error {
	f, err := c.filter(time.Now())
	if err != nil {
		return err
	}
	f.Limit = -1 // all
	return e.withStore(c.storeFile, store.Options{ReadOnly: true}, func(s store.Store) error {
		if c.File == "" || c.File == "-" {
			_, err := store.Export(ctx, e.Out, s, f)
			return err
		}
		n, err := exportTo(ctx, c.File, s, f)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(e.Out, "%s written to %s\n", unit.Plural(n, "result"), c.File)
		return err
	})
}

// exportTo writes a new file, complete or not at all.
func exportTo(ctx context.Context, path string, s store.Store, f store.Filter) (int, error) {
	const hint = "name a file that does not exist yet, in a writable folder"
	if _, err := os.Lstat(path); err == nil {
		return 0, fault.Failf(hint, "%s exists already", path)
	}
	out, err := temporaryBeside(path, 0o600)
	if err != nil {
		return 0, unwritten("export", err)
	}
	defer os.Remove(out.Name())
	n, err := store.Export(ctx, out, s, f)
	if err = errors.Join(err, out.Sync(), out.Close()); err == nil {
		err = os.Link(out.Name(), path)                                                // fails if the file exists by now
		if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, os.ErrPermission) { // a file system without hard links
			err = os.Rename(out.Name(), path)
		}
	}
	if err != nil {
		return 0, fault.Failf(hint, "cli: writing %s: %w", path, err)
	}
	return n, nil
}

// historyImportCmd imports results.
type historyImportCmd struct {
	Files []string `arg:"" name:"file" help:"Output of export, or a document of --json; - is stdin."`
	storeFile
}

// Run imports.
func (c *historyImportCmd) Run(ctx context.Context, e *env) error {
	sources, err := e.reader().Open(ctx, c.Files)
	if err != nil {
		return err
	}
	defer library.CloseSources(sources)
	return e.withStore(c.storeFile, store.Options{}, func(s store.Store) error {
		bad := 0
		for _, from := range sources {
			got, err := store.Import(ctx, from, s, report.Answer)
			for _, b := range got.Left {
				e.Line(fmt.Sprintf("%s, line %d: %s", from.Name, b.Line, b.Why))
			}
			if bad += got.Bad; err != nil {
				return fmt.Errorf("%s: %w", fault.Named(from.Name), err)
			}
			fmt.Fprintf(e.Out, "%s: %s imported\n", from.Name, unit.Plural(got.Kept, "result"))
		}
		if bad > 0 {
			return fault.Failf("check the rest: it is not a result of thru; what could be read is imported", "%s could not be imported", unit.Plural(bad, "line"))
		}
		return nil
	})
}

// notRemoved is what happens without a yes.
const notRemoved = "nothing was removed"

// historyRmCmd removes results.
type historyRmCmd struct {
	IDs []string `arg:"" name:"id" help:"Id of thru history, or its first 6 or more characters if they are unique; last, last~1."`
	storeFile
	Yes bool `name:"yes" short:"y" help:"Do not ask."`
}

// Run removes results.
func (c *historyRmCmd) Run(ctx context.Context, e *env) error {
	return e.withStore(c.storeFile, store.Options{Existing: true}, func(s store.Store) error {
		var going []store.Entry
		for _, word := range c.IDs {
			x, err := library.EntryOf(ctx, s, word, store.Filter{})
			if err != nil {
				return err
			}
			going = append(going, x)
		}
		return e.remove(ctx, s, going, c.Yes)
	})
}

// historyPruneCmd removes the oldest results.
type historyPruneCmd struct {
	Older string `name:"older" placeholder:"TIME" help:"Remove results older than this, such as 90d or 12w."`
	Keep  int    `name:"keep" placeholder:"N" help:"Keep only the newest N."`
	Bytes int64  `name:"max-bytes" type:"size" like:"500M" placeholder:"SIZE" help:"Remove the oldest until the file has at most this size, such as 500M."`
	storeFile
	Yes bool `name:"yes" short:"y" help:"Do not ask."`
}

// Run prunes.
func (c *historyPruneCmd) Run(ctx context.Context, e *env) error {
	r := store.Retention{Bytes: c.Bytes, Count: c.Keep}
	if c.Older != "" {
		begin, _, werr := library.ReadWhen(c.Older, time.Now())
		if !library.Ago().MatchString(c.Older) || werr != nil {
			return fault.Usagef("such as --older 90d", "--older %q is not an age", fault.Short(c.Older))
		}
		r.Age = time.Since(begin)
	}
	if c.Keep < 0 || r == (store.Retention{}) {
		return fault.Usagef("give one, such as --older 90d, --keep 1000 or --max-bytes 500M", "no limit is given")
	}
	return e.withStore(c.storeFile, store.Options{Existing: true}, func(s store.Store) error {
		if !c.Yes {
			count := r
			count.DryRun = true
			n, err := s.Prune(ctx, count)
			if err == nil && n > 0 {
				err = e.Confirm(ctx, fmt.Sprintf("Remove the oldest %s?", unit.Plural(n, "result")), notRemoved)
			}
			if err != nil {
				return err
			}
		}
		n, err := s.Prune(ctx, r)
		if err == nil {
			_, err = fmt.Fprintf(e.Out, "%s removed\n", unit.Plural(n, "result"))
		}
		return err
	})
}

// historyMigrateCmd makes or upgrades the archive in a database.
type historyMigrateCmd struct {
	storeFile
}

// Run migrates.
func (c *historyMigrateCmd) Run(ctx context.Context, e *env) error {
	if !postgres.Is(c.Store) {
		return fault.Usagef("such as --store postgres://HOST/DATABASE; thru upgrades a file by itself", "no database is named")
	}
	name, from, to, err := postgres.Migrate(ctx, c.Store)
	switch {
	case err != nil:
		return err
	case from == to:
		_, err = fmt.Fprintf(e.Out, "%s has version %d already\n", name, to)
	default:
		_, err = fmt.Fprintf(e.Out, "%s has version %d now. Grant its users their rights: thru help archive\n", name, to)
	}
	return err
}

// remove removes results after a confirmation.
func (e *env) remove(ctx context.Context, s store.Store, going []store.Entry, yes bool) error {
	ids := unit.Mapped(going, func(x store.Entry) string { return x.ID })
	named := strings.Join(ids, ", ")
	if len(ids) > 4 {
		named = strings.Join(ids[:3], ", ") + ", ..."
	}
	if !yes {
		if err := e.Confirm(ctx, fmt.Sprintf("Remove %s (%s)?", unit.Plural(len(ids), "result"), named), notRemoved); err != nil {
			return err
		}
	}
	n, err := s.Delete(ctx, ids...)
	if err == nil {
		_, err = fmt.Fprintf(e.Out, "%s removed\n", unit.Plural(n, "result"))
	}
	return err
}

// narrow is the width below which an entry takes two lines.
const narrow = 120

// commandColumn is the width of the longest command: inventory.
const commandColumn = 9

// writeEntries prints results as a table: id, local time, command, verdict, and what the result found. On a
// narrow terminal the last has a line of its own.
func writeEntries(w io.Writer, entries []store.Entry, width int, colour bool, now time.Time) {
	longest := len("id")
	for _, x := range entries {
		longest = max(longest, len(fault.Printable(x.ID)))
	}
	head := "result"
	if width > 0 && width < narrow {
		head = "labels"
	}
	fmt.Fprintf(w, "%-*s  %-7s  %-*s  %-4s  %s\n", longest, "id", "when", commandColumn, "command", "", head)
	for _, x := range entries {
		line := fmt.Sprintf("%-*s  %-7s  %-*s  ", longest, fault.Printable(x.ID), whenText(x.StartedAt, now), commandColumn, unit.Cut(fault.Printable(x.Command), commandColumn))
		verdict := fmt.Sprintf("%-4s", fault.Printable(verdictText(x.Verdict)))
		room := width - len(line) - len(verdict) - 2
		said, below := titleText(x)+labelsText(x, "  "), ""
		if width > 0 && width < narrow {
			said, below = labelsText(x, ""), "  "+unit.Cut(titleText(x), width-2)+"\n"
		}
		if width > 0 {
			said = unit.Cut(said, room)
		}
		fmt.Fprintf(w, "%s\n%s", strings.TrimRight(line+coloured(verdict, x.Verdict, colour)+"  "+said, " "), below)
	}
}

// whenText shortens a time: the clock time of today, the day of this year, else the month.
func whenText(t, now time.Time) string {
	t = t.In(now.Location())
	switch {
	case t.Year() == now.Year() && t.YearDay() == now.YearDay():
		return t.Format("15:04")
	case t.Year() == now.Year():
		return t.Format("Jan _2")
	}
	return t.Format("2006-01")
}

func verdictText(v string) string {
	if v == store.NoVerdict {
		return ""
	}
	return v
}

// titleText returns what the result found, and its pairs or hosts if the title does not name them.
func titleText(x store.Entry) string {
	said := []string{}
	if len(x.Pairs) > 0 && !slices.ContainsFunc(x.Pairs, func(pair string) bool { return strings.Contains(x.Title, pair) }) {
		said = append(said, pairsText(x.Pairs))
	}
	if len(x.Pairs) == 0 {
		said = append(said, strings.Join(x.Hosts[:min(len(x.Hosts), 3)], ", "))
	}
	if x.Title != "" {
		said = append(said, x.Title)
	}
	if x.Error != "" {
		said = append(said, "error: "+x.Error)
	}
	return fault.Printable(strings.Join(said, "  "))
}

// labelsText returns the labels of a result after a gap.
func labelsText(x store.Entry, gap string) string {
	said := ""
	for _, k := range slices.Sorted(maps.Keys(x.Labels)) {
		said += gap + k + "=" + x.Labels[k]
		gap = "  "
	}
	return fault.Printable(said)
}

// pairsText returns "a <-> b" if both directions were measured, and counts the other pairs.
func pairsText(pairs []string) string {
	a, b, _ := strings.Cut(pairs[0], " -> ")
	text, rest := pairs[0], len(pairs)-1
	if a == b {
		text = a
	}
	if len(pairs) > 1 && pairs[1] == b+" -> "+a {
		text, rest = a+" <-> "+b, rest-1
	}
	if rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text
}

// coloured gives a verdict the colour that it has in reports.
func coloured(text, verdict string, colour bool) string {
	switch {
	case !colour || verdict == store.NoVerdict:
		return text
	case verdict == store.Inconclusive:
		return "\x1b[33m" + text + "\x1b[0m"
	case verdict == store.Pass:
		return "\x1b[32m" + text + "\x1b[0m"
	}
	return "\x1b[31m" + text + "\x1b[0m"
}
