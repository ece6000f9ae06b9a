package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"thru/internal/bus"
	"thru/internal/cli/settings"
	"thru/internal/cli/support"
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
	Results       int    `name:"results" default:"5" placeholder:"N" help:"How many of the newest results to add (default 5)."`
	KeepAddresses bool   `name:"keep-addresses" help:"Leave IP and MAC addresses as they are. Names and secrets are always replaced."`
	Yes           bool   `name:"yes" short:"y" help:"Write it without asking."`
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

// replaced explains the table.
const replaced = `names: of hosts, users, VMs, networks, labels, domains; UUIDs, public keys
addresses: IP, MAC; secrets: passwords, join strings, tokens, private keys
kept: interfaces, hardware, versions, files and folders but a home's name
`

// Run lists the parts, asks, and writes the file; it replaces none.
func (c *supportCmd) Run(ctx context.Context, e *env) error {
	now := time.Now()
	folder := "thru-support-" + now.Format("20060102-150405")
	out := supported{File: cmp.Or(c.File, folder+".tar.gz"), Missing: []string{}}
	err := c.collect(ctx, &out, e)
	if !c.JSON && err == nil {
		fmt.Fprintf(e.Out, "parts of %s, and what is replaced in them:\n  %-32s %10s %5s %9s %7s\n", out.File, "part", "size", "names", "addresses", "secrets")
		for _, p := range out.Parts {
			fmt.Fprintf(e.Out, "  %-32s %10s %5d %9d %7d\n", p.Name, unit.Size(int64(p.Bytes)), p.Removed.Names, p.Removed.Addresses, p.Removed.Secrets)
		}
		for _, m := range out.Missing {
			fmt.Fprintf(e.Out, "  not there: %s\n", fault.Printable(m))
		}
		fmt.Fprint(e.Out, replaced)
	}
	if err == nil && !c.Yes {
		err = e.Confirm(ctx, fmt.Sprintf("Write %s?", out.File), "nothing was written")
	}
	if err == nil {
		var text []byte
		if text, err = support.Archive(folder, out.Parts, now); err == nil {
			err = newFileOnly(out.File, text, 0o600)
		}
	}
	out.Written = err == nil
	if c.JSON {
		out.Error, err = e.described(err)
		return cmp.Or(printJSON(e.Out, out), err)
	}
	if err == nil {
		fmt.Fprintf(e.Out, "written: %s; to read it first: tar -xzf %[1]s\n", out.File)
	}
	return err
}

// collect adds the parts, without names, addresses and secrets.
func (c *supportCmd) collect(ctx context.Context, out *supported, e *env) error {
	r := support.New(c.KeepAddresses)
	names := []string{node.Hostname(), os.Getenv("USER"), os.Getenv("LOGNAME"), os.Getenv("SUDO_USER")}
	if dir, err := os.UserHomeDir(); err == nil {
		names = append(names, filepath.Base(dir))
	}
	if keys, err := bus.DefaultKeyring(); err == nil {
		joined, _ := keys.List() // without a folder of names there are none
		names = append(names, joined...)
	}
	r.Name(names...)
	out.Parts = []support.Part{{Name: "version.json", Value: newBuild(e.Version)}, {Name: "facts.json", Value: host.New().Facts()}}
	for _, x := range []struct {
		what string
		err  error
	}{{"settings", addSettings(r, out)}, {"results", c.addResults(ctx, e, r, out)}, {"journal", addJournal(ctx, out)}} {
		if x.err != nil {
			out.Missing = append(out.Missing, x.what+": "+fault.Plain(x.err.Error()))
		}
	}
	return cmp.Or(ctx.Err(), r.Redact(out.Parts))
}

// namedFlags are flags whose values are names.
const namedFlags = "name label controller end-point host pair plan username vm agent operator registry nats hypervisor from to"

// addNames adds the values of a flag if they are names, or have one, such as site=east.
func addNames(r *support.Redactor, flag string, values ...string) {
	for _, value := range values {
		if slices.Contains(strings.Fields(namedFlags), flag) && !filepath.IsAbs(value) { // a file may be given for a name
			r.Name(value[strings.Index(value, "=")+1:])
		}
	}
}

// addTyped adds the names in the arguments of a command.
func addTyped(r *support.Redactor, args []string) {
	for i, arg := range args {
		flag, value, with := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !with && i+1 < len(args) {
			value = args[i+1]
		}
		if strings.HasPrefix(arg, "--") {
			addNames(r, flag, value)
		}
	}
}

// addSettings adds what the files set, and which variables are set.
func addSettings(r *support.Redactor, out *supported) error {
	s, err := settings.Load(settings.Paths(), os.Environ())
	for _, one := range s.Written {
		addNames(r, one.Key[strings.LastIndex(one.Key, ".")+1:], one.Values...)
	}
	out.Parts = append(out.Parts, support.Part{Name: "settings.json", Value: map[string]any{"files": s.Files, "variables": s.Variables(), "written": s.Written}})
	return err
}

// addResults adds the newest results of the store.
func (c *supportCmd) addResults(ctx context.Context, e *env, r *support.Redactor, out *supported) error {
	if c.Results < 1 {
		return nil
	}
	return e.withStore(c.storeFile, store.Options{ReadOnly: true}, func(s store.Store) error {
		found, _, err := s.Find(ctx, store.Filter{Limit: c.Results})
		for _, x := range found {
			doc, gerr := s.Get(ctx, x.ID)
			if err = errors.Join(err, gerr); gerr == nil {
				addTyped(r, doc.Arguments)
				out.Parts = append(out.Parts, support.Part{Name: "result-" + x.ID + ".json", Value: doc})
			}
		}
		return err
	})
}

// journalTime limits how long the journal is read.
const journalTime = 10 * time.Second

// addJournal adds the last lines that the services of thru have logged.
func addJournal(ctx context.Context, out *supported) error {
	ctx, cancel := context.WithTimeout(ctx, journalTime)
	defer cancel()
	text, err := exec.CommandContext(ctx, "journalctl", "--unit=thru*", "--lines=2000", "--no-pager", "--quiet", "--output=short-iso").Output()
	exit, said := errors.AsType[*exec.ExitError](err)
	switch {
	case len(text) > 0:
		out.Parts = append(out.Parts, support.Part{Name: "journal.txt", Value: string(text)})
	case said && len(exit.Stderr) > 0:
		return errors.New(strings.TrimSpace(string(exit.Stderr)))
	case said || err == nil:
		return errors.New("it has no lines of thru's services")
	}
	return err
}
