package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"thru/internal/bus"
	"thru/internal/cli/console"
	"thru/internal/cli/settings"
	"thru/internal/cli/support"
	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/host"
	"thru/internal/measure"
	"thru/internal/node"
	"thru/internal/store"
	"thru/internal/unit"
)

// versionCmd prints the version.
type versionCmd struct {
	JSON bool `name:"json" help:"Print JSON: version, commit, wire and schemas."`
}

// build is what --json prints.
type build struct {
	Thru       string `json:"thru_version"`
	Commit     string `json:"commit,omitempty"`    // absent: built outside a repository
	CommitAt   string `json:"commit_at,omitempty"` // its time, UTC
	Modified   bool   `json:"modified"`            // built with changes that are in no commit
	Wire       string `json:"wire_version"`        // hosts with the same first number work together
	Result     string `json:"result_schema"`
	Comparison string `json:"comparison_schema"`
	Go         string `json:"go_version"`
	System     string `json:"system"`
}

func newBuild(version string) build {
	b := build{
		Thru: version, Wire: fmt.Sprintf("%d.%d", bus.WireMajor, bus.WireMinor), Result: measure.Schema, Comparison: measure.ComparedSchema,
		Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.CommitAt = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// Run prints the version.
func (c *versionCmd) Run(_ context.Context, e *env) error {
	if c.JSON {
		return printJSON(e.Out, newBuild(e.Version))
	}
	_, err := fmt.Fprintf(e.Out, "thru %s\n", e.Version)
	return err
}

// supportCmd writes a file for a bug report.
type supportCmd struct {
	File          string `arg:"" optional:"" name:"file" type:"newfile" help:"Output file (default: thru-support-DATE.tar.gz here)."`
	Results       int    `name:"results" default:"5" placeholder:"N" help:"The newest results to add (default 5)."`
	KeepAddresses bool   `name:"keep-addresses" help:"Leave IP and MAC addresses as they are. Names, users, tokens and keys are always replaced."`
	Yes           bool   `name:"yes" help:"Write it without asking."`
	JSON          bool   `name:"json" help:"Print JSON."`
	storeFile
}

// supported is what --json prints.
type supported struct {
	File    string         `json:"file"`
	Written bool           `json:"written"`
	Parts   []support.Part `json:"parts"`
	Missing []string       `json:"missing"` // parts that are not there, with the reason
	Error   *measure.Error `json:"error"`
}

// mostResults limits how many results go into a file.
const mostResults = 100

// Run lists the parts, asks, and writes the file.
func (c *supportCmd) Run(ctx context.Context, e *env) error {
	if c.Results < 0 || c.Results > mostResults {
		return fault.Usagef(fmt.Sprintf("--results takes 0 to %d", mostResults), "--results %d", c.Results)
	}
	now := time.Now()
	folder := "thru-support-" + now.Format("20060102-150405")
	out := supported{File: cmp.Or(c.File, folder+".tar.gz"), Missing: []string{}}
	out.Parts = c.collect(ctx, e, &out)
	if !c.JSON {
		printParts(e, out)
	}
	err := ctx.Err()
	if err == nil && !c.Yes {
		err = e.Confirm(ctx, fmt.Sprintf("Write %s?", out.File), "nothing was written")
	}
	if err == nil {
		err = writeSupport(folder, out, now)
		out.Written = err == nil
	}
	switch {
	case !c.JSON && err == nil:
		fmt.Fprintf(e.Out, "written: %s; to read it first: tar -xzf %s\n", out.File, out.File)
	case !c.JSON:
		return err
	case err != nil:
		out.Error = control.Describe(err)
		e.ErrorLines(err)
		err = console.Printed(err)
	}
	return cmp.Or(printJSON(e.Out, out), err)
}

// writeSupport writes the file; it replaces none.
func writeSupport(folder string, out supported, now time.Time) error {
	text, err := support.Archive(folder, out.Parts, now)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(out.File, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fault.Usagef("name another file: thru support FILE", "%s exists", out.File)
	}
	if err != nil {
		return fault.Failf("name a file in a writable folder: thru support FILE", "cli: writing the file: %w", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(out.File)
		return fmt.Errorf("cli: writing %s: %w", out.File, err)
	}
	return nil
}

// printParts lists what the file will have.
func printParts(e *env, out supported) {
	fmt.Fprintf(e.Out, "parts of %s, and what is replaced in each:\n", out.File)
	for _, p := range out.Parts {
		fmt.Fprintf(e.Out, "  %-32s %10s  %s\n", p.Name, unit.Size(int64(p.Bytes)), replaced(p.Removed))
	}
	for _, m := range out.Missing {
		fmt.Fprintf(e.Out, "  not there: %s\n", fault.Printable(m))
	}
}

func replaced(r support.Removed) string {
	all := []string{}
	for _, x := range []struct {
		n    int
		what string
	}{{r.Names, "name"}, {r.Addresses, "address"}, {r.Secrets, "secret"}} {
		if x.n > 0 {
			all = append(all, strings.Replace(unit.Plural(x.n, x.what), "addresss", "addresses", 1))
		}
	}
	return cmp.Or(strings.Join(all, ", "), "nothing")
}

// draft is a part before its names are replaced.
type draft struct {
	name  string
	value any    // of JSON
	text  string // else
}

// collect returns the parts: it learns the names from all of them first, since any may have those of another.
func (c *supportCmd) collect(ctx context.Context, e *env, out *supported) (parts []support.Part) {
	r := &support.Redactor{KeepAddresses: c.KeepAddresses}
	r.Name(ownNames()...)
	drafts := []draft{{name: "version.json", value: newBuild(e.Version)}, {name: "facts.json", value: host.New().Facts()}, settingsPart(r, out)}
	drafts = append(drafts, c.results(ctx, e, out)...)
	if text, err := journal(ctx); err != nil {
		out.Missing = append(out.Missing, "journal.txt: "+fault.Plain(err.Error()))
	} else {
		drafts = append(drafts, draft{name: "journal.txt", text: text})
	}
	for i, d := range drafts {
		if d.value != nil {
			drafts[i].value = plainJSON(d.value)
			r.Learn(drafts[i].value)
		}
	}
	for _, d := range drafts {
		p := support.Part{Name: d.name}
		if d.value != nil {
			var b bytes.Buffer
			if err := printJSON(&b, r.JSON(d.value, &p.Removed)); err != nil {
				out.Missing = append(out.Missing, d.name+": "+err.Error())
				continue
			}
			p.Text = b.Bytes()
		} else {
			p.Text = []byte(r.Text(d.text, &p.Removed))
		}
		p.Bytes = len(p.Text)
		parts = append(parts, p)
	}
	return parts
}

// plainJSON returns a value as JSON has it, with numbers as they are written.
func plainJSON(value any) (plain any) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&plain) != nil {
		return nil
	}
	return plain
}

// ownNames returns the names of this host, of its user and of what it has joined.
func ownNames() []string {
	names := []string{node.Hostname(), os.Getenv("USER"), os.Getenv("LOGNAME"), os.Getenv("SUDO_USER")}
	if dir, err := os.UserHomeDir(); err == nil {
		names = append(names, filepath.Base(dir))
	}
	if keys, err := bus.DefaultKeyring(); err == nil {
		joined, _ := keys.List() // without a folder of names there are none
		names = append(names, joined...)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "root" || name == "." || name == "/" })
}

// namedFlags are flags whose values are names.
const namedFlags = "name label controller end-point host pair plan username vm agent operator registry nats hypervisor from to"

// settingsPart returns what the files and variables set.
func settingsPart(r *support.Redactor, out *supported) draft {
	s, err := settings.Load(settings.Paths(), os.Environ())
	if err != nil {
		out.Missing = append(out.Missing, "some settings: "+fault.Plain(err.Error()))
	}
	for _, one := range s.Written {
		if flag := one.Key[strings.LastIndex(one.Key, ".")+1:]; slices.Contains(strings.Fields(namedFlags), flag) {
			for _, value := range one.Values {
				r.Name(value[strings.Index(value, "=")+1:])
			}
		}
	}
	all := map[string]any{"files": s.Files, "variables": s.Variables(), "written": s.Written}
	return draft{name: "settings.json", value: all}
}

// results returns the newest results of the store.
func (c *supportCmd) results(ctx context.Context, e *env, out *supported) (drafts []draft) {
	if c.Results == 0 {
		return nil
	}
	err := e.withStore(c.storeFile, store.Options{ReadOnly: true}, func(s store.Store) error {
		found, _, err := s.Find(ctx, store.Filter{Limit: c.Results})
		for _, x := range found {
			doc, gerr := s.Get(ctx, x.ID)
			if gerr != nil {
				err = errors.Join(err, gerr)
				continue
			}
			drafts = append(drafts, draft{name: "result-" + x.ID + ".json", value: doc})
		}
		return err
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		out.Missing = append(out.Missing, "results: none is stored")
	case err != nil:
		out.Missing = append(out.Missing, "results: "+fault.Plain(err.Error()))
	}
	return drafts
}

// journalTime limits how long the journal is read.
const journalTime = 10 * time.Second

// journal returns the last lines that the services of thru have logged.
func journal(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, journalTime)
	defer cancel()
	text, err := exec.CommandContext(ctx, "journalctl", "--unit=thru*", "--lines=2000", "--no-pager", "--quiet", "--output=short-iso").Output()
	if err == nil && len(text) == 0 {
		err = errors.New("no service of thru has logged")
	}
	return string(text), err
}
