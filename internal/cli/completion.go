package cli

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"thru/docs"
	"thru/internal/bus"
	"thru/internal/cause"
	"thru/internal/cause/knob"
	"thru/internal/cli/manpage"
	"thru/internal/cli/settings"
	"thru/internal/cli/shell"
	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/plan/planfile"
	"thru/internal/remote"
	"thru/internal/store"
)

// completionCmd prints the completion of a shell.
type completionCmd struct {
	Shell string `arg:"" optional:"" name:"shell" help:"bash, zsh, fish or powershell. bash: thru completion bash > /etc/bash_completion.d/thru; zsh: > a folder of $$fpath, as _thru; fish: > ~/.config/fish/completions/thru.fish; PowerShell: thru completion powershell | Out-String | Invoke-Expression."`
	Write string `name:"write" hidden:"" type:"path" placeholder:"DIR" help:"Write the completions of all shells and the manual pages below this folder, for packages."`
}

// Run prints a script, or writes all of them with the manual pages.
func (c *completionCmd) Run(_ context.Context, e *env) error {
	text, _ := shell.Script(c.Shell)
	switch {
	case c.Write != "":
		return c.write(e)
	case text == nil:
		return fault.Usagef("such as `thru completion bash`", "completion takes %s", fault.Or(shell.Shells()))
	}
	_, err := e.Out.Write(text)
	return err
}

// write writes man/thru-test.1 and completions/bash/thru, and so on.
func (c *completionCmd) write(e *env) error {
	files := map[string][]byte{}
	for _, name := range shell.Shells() {
		text, file := shell.Script(name)
		files[filepath.Join("completions", name, file)] = text
	}
	parser, err := parserOf(&env{Console: e.Console}, &grammar{})
	if err != nil {
		return err
	}
	for _, page := range manual(newBuild(e.Version)).Pages(parser.Model) {
		files[filepath.Join("man", page.Name)] = page.Text
	}
	for name, text := range files {
		path := filepath.Join(c.Write, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return unwritten("--write", err)
		}
		if err := replaceFile("--write", path, text); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(e.Out, "%d files in %s\n", len(files), c.Write)
	return err
}

// manual returns what the manual says beside the flags.
func manual(b build) manpage.Manual {
	day, _, _ := strings.Cut(cmp.Or(b.CommitAt, "1970-01-01"), "T") // equal builds have equal pages
	if at, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		day = time.Unix(at, 0).UTC().Format(time.DateOnly)
	}
	return manpage.Manual{Version: b.Thru, Date: day, Described: description, Sections: []manpage.Section{
		{Title: "EXIT STATUS", Text: strings.TrimPrefix(strings.TrimSpace(exitCodes), "Exit codes: ")},
		{Title: "FILES", Text: "/etc/thru/config.yaml and $XDG_CONFIG_HOME/thru/config.yaml set flags, and so do variables such as THRU_STORE. thru config shows them, and thru help config describes them."},
	}}
}

// completeFor is the hidden command of the scripts: it prints what a command line may continue with.
func (e *env) completeFor(ctx context.Context) int {
	if len(e.Args) < 3 {
		return fault.Usage
	}
	words := shell.Read(e.Args[1], e.Args[2:])
	parser, err := parserOf(&env{Console: e.Console}, &grammar{})
	if err != nil || len(words) == 0 {
		return fault.Failed
	}
	e.line = &kong.Context{Kong: parser}
	p := shell.Locate(parser.Model, words)
	fmt.Fprint(e.Out, e.offered(ctx, p).Print(e.Args[1], p.Word))
	return fault.OK
}

// offered returns what may stand at the cursor.
func (e *env) offered(ctx context.Context, p shell.Position) shell.Answer {
	if p.Value == nil || p.Value.Flag == nil {
		if names := p.Names(); len(names) > 0 {
			return shell.Answer{Words: names, Kind: shell.Words}
		}
	}
	if p.Value == nil {
		return shell.Answer{Kind: shell.Words}
	}
	word := strings.TrimPrefix(p.Word, p.Before)
	list := ""
	if p.Value.Target.Kind() == reflect.Slice && p.Value.Flag != nil { // --allow tune,ca
		list = word[:strings.LastIndex(word, ",")+1]
	}
	a := e.valuesOf(ctx, p, strings.TrimPrefix(word, list))
	for i := range a.Words {
		a.Words[i].Text = p.Before + list + a.Words[i].Text
	}
	return a
}

// valuesOf returns the values of a flag or an argument.
func (e *env) valuesOf(ctx context.Context, p shell.Position, word string) shell.Answer {
	a := shell.Answer{Kind: shell.Words}
	name, kinds := p.Value.Name, []string{p.Value.Tag.Type}
	if f := p.Value.Flag; f != nil {
		name = "--" + f.Name
		kinds = append(kinds, f.PlaceHolder)
		if o := optionOf(p.Node, f); o != nil {
			a.Words = plain(o.of.Words...)
		}
	}
	if p.Value.Enum != "" {
		a.Words = plain(slices.DeleteFunc(p.Value.EnumSlice(), func(s string) bool { return s == "" })...)
	}
	for _, row := range e.sources(ctx, word) {
		if names := strings.Fields(row.of); !slices.Contains(names, name) && !slices.ContainsFunc(kinds, func(k string) bool { return slices.Contains(names, k) }) {
			continue
		}
		if row.words != nil {
			a.Words = append(a.Words, row.words()...)
		}
		if row.kind != "" {
			a.Kind = row.kind
		}
	}
	return a
}

// source is where values of arguments (by name) and of flags (by name, placeholder or type) come from.
type source struct {
	of    string
	words func() []shell.Word
	kind  string // "": words only
}

func (e *env) sources(ctx context.Context, word string) []source {
	ends := func() []shell.Word { return e.joinedNames(ctx, word, false) }
	controllers := func() []shell.Word { return e.joinedNames(ctx, word, true) }
	results := func() []shell.Word { return e.resultIDs(ctx) }
	return []source{
		{of: "end-point end-points name --host --end-point", words: ends},
		{of: "end-point|file end-point|result.json end-point|plan", words: ends, kind: shell.Files},
		{of: "controller --controller", words: controllers},
		{of: "id", words: results},
		{of: "result before after", words: results, kind: shell.Files},
		{of: "KNOB", words: knobIDs},
		{of: "GATE", words: gateIDs},
		{of: "PRIVILEGE", words: func() []shell.Word { return plain(bus.Privileges()...) }},
		{of: "DEVICE", words: devices},
		{of: "COMMAND command", words: func() []shell.Word { return e.commandNames() }},
		{of: "topic", words: func() []shell.Word {
			return append(e.commandNames(), plain(slices.Concat(docs.Topics(), docs.IDs())...)...)
		}},
		{of: "kind", words: func() []shell.Word { return plain(planfile.Starters()...) }},
		{of: "shell", words: func() []shell.Word { return plain(shell.Shells()...) }},
		{of: "--pattern", words: func() []shell.Word { return plain("seq-read", "rand-read", "seq-write", "rand-write") }},
		{of: "--by", words: func() []shell.Word { return plain("fio", "thru") }},
		{of: "FILE plan file newfile outfile nowhere|memory|FILE generated|FILE", kind: shell.Files},
		{of: "DIR path", kind: shell.Folders},
	}
}

func plain(words ...string) (all []shell.Word) {
	for _, w := range words {
		all = append(all, shell.Word{Text: w})
	}
	return all
}

func (e *env) commandNames() (all []shell.Word) {
	for _, n := range e.line.Model.Children {
		if !n.Hidden {
			all = append(all, shell.Word{Text: n.Name, Help: n.Help})
		}
	}
	return all
}

func knobIDs() (all []shell.Word) {
	for _, k := range knob.Table() {
		all = append(all, shell.Word{Text: k.ID, Help: k.Title})
	}
	return all
}

func gateIDs() (all []shell.Word) {
	for _, g := range cause.Gates() {
		all = append(all, shell.Word{Text: g.ID, Help: g.Title})
	}
	return all
}

func devices() (all []shell.Word) {
	found, err := net.Interfaces()
	if err != nil {
		return nil
	}
	for _, x := range found {
		all = append(all, shell.Word{Text: x.Name, Help: x.Flags.String()})
	}
	return all
}

// askTime limits how long a completion waits for a controller.
const askTime = 2 * time.Second

// joinedNames returns the joined names, and behind CONTROLLER/ the hosts of that fleet.
func (e *env) joinedNames(ctx context.Context, word string, onlyControllers bool) (all []shell.Word) {
	keys, err := bus.DefaultKeyring()
	if err != nil {
		return nil
	}
	controllers := remote.Controllers(keys, bus.PrivilegeOperate)
	if controller, _, below := strings.Cut(word, "/"); below {
		if slices.Contains(controllers, controller) {
			return e.fleetHosts(ctx, controller)
		}
		return nil
	}
	if onlyControllers {
		return plain(controllers...)
	}
	names, err := keys.List()
	if err != nil {
		return nil
	}
	for _, name := range append(names, control.Local) {
		if slices.Contains(controllers, name) {
			name += "/"
		}
		all = append(all, shell.Word{Text: name})
	}
	return all
}

// fleetHosts asks a controller for its hosts.
func (e *env) fleetHosts(ctx context.Context, controller string) (all []shell.Word) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	fleet, err := e.network.DialFleet(ctx, controller, bus.FleetConfig{})
	if err != nil {
		return nil
	}
	defer fleet.Close()
	hosts, err := fleet.Hosts(ctx)
	if err != nil {
		return nil
	}
	for _, h := range hosts {
		all = append(all, shell.Word{Text: controller + "/" + h.Name, Help: labelsText(store.Entry{Labels: h.Labels}, "")})
	}
	return all
}

// mostOffered limits the results that are offered.
const mostOffered = 30

// resultIDs returns the ids of the newest results.
func (e *env) resultIDs(ctx context.Context) []shell.Word {
	e.settings, _ = settings.Load(settings.Paths(), os.Environ()) // what can be read counts
	all := plain("last")
	err := e.withStore(e.storeSettings().storeFile, store.Options{ReadOnly: true}, func(s store.Store) error {
		found, _, err := s.Find(ctx, store.Filter{Limit: mostOffered})
		for _, x := range found {
			all = append(all, shell.Word{Text: x.ID, Help: x.Command + ": " + titleText(x)})
		}
		return err
	})
	if err != nil {
		return nil
	}
	return all
}
