package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"thru/docs"
	"thru/internal/bus"
	"thru/internal/cause"
	"thru/internal/cause/gate"
	"thru/internal/cause/knob"
	"thru/internal/cli/manpage"
	"thru/internal/cli/settings"
	"thru/internal/cli/shell"
	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/plan/planfile"
	"thru/internal/remote"
	"thru/internal/store"
	"thru/internal/unit"
)

// completionCmd prints the completion of a shell.
type completionCmd struct {
	Shell string `arg:"" optional:"" name:"shell" help:"bash, zsh, fish or powershell. bash: thru completion bash > /etc/bash_completion.d/thru; zsh: > a folder of $$fpath, as _thru; fish: > ~/.config/fish/completions/thru.fish; PowerShell: thru completion powershell | Out-String | Invoke-Expression."`
	Write string `name:"write" hidden:"" type:"path" placeholder:"DIR" help:"Write the completions of all shells and the manual pages below this folder, for packages."`
}

// Run prints a script, or writes man/thru-test.1, completions/bash/thru and so on below a folder.
func (c *completionCmd) Run(_ context.Context, e *env) error {
	files := map[string][]byte{}
	for _, name := range shell.Shells() {
		text, file := shell.Script(name)
		if name == c.Shell {
			_, err := e.Out.Write(text)
			return err
		}
		files[filepath.Join("completions", name, file)] = text
	}
	if c.Write == "" {
		return fault.Usagef("such as `thru completion bash`", "completion takes %s", fault.Or(shell.Shells()))
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
	parser, err := parserOf(&env{Console: e.Console}, &grammar{})
	if err != nil || len(e.Args) < 3 {
		return fault.Usage
	}
	e.line = &kong.Context{Kong: parser}
	p := shell.Locate(parser.Model, shell.Read(e.Args[1], e.Args[2:]))
	fmt.Fprint(e.Out, e.offered(ctx, p).Print(e.Args[1], p.Word))
	return fault.OK
}

// offered returns what may stand at the cursor.
func (e *env) offered(ctx context.Context, p shell.Position) shell.Answer {
	a := shell.Answer{Words: p.Names, Kind: shell.Words}
	if p.Value == nil || len(a.Words) > 0 {
		return a
	}
	kinds, begin := []string{p.Value.Name, p.Value.Tag.Type}, p.Before
	if f := p.Value.Flag; f != nil {
		kinds = []string{"--" + f.Name, f.PlaceHolder, f.Tag.Type}
		if o := optionOf(p.Node, f); o != nil {
			a.Words = plain(o.of.Words)
		}
		if f.IsSlice() { // --allow tune,ca
			begin = p.Word[:max(len(begin), strings.LastIndex(p.Word, ",")+1)]
		}
	}
	if p.Value.Enum != "" {
		a.Words = plain(p.Value.EnumSlice())
	}
	for _, kind := range kinds {
		if words, files := e.valuesOf(ctx, kind, strings.TrimPrefix(p.Word, begin)); files != "" {
			a = shell.Answer{Words: words, Kind: files}
			break
		}
	}
	for i := range a.Words {
		a.Words[i].Text = begin + a.Words[i].Text
	}
	return a
}

// valuesOf returns the values of an argument, by its name, or of a flag, by its name, placeholder or type; and what
// else it takes: files is empty if it is not known here.
func (e *env) valuesOf(ctx context.Context, of, word string) (words []shell.Word, files string) {
	switch of {
	case "end-point", "end-points", "name", "--host", "--end-point":
		return e.joinedNames(ctx, word), shell.Words
	case "end-point|file", "end-point|result.json", "end-point|plan":
		return e.joinedNames(ctx, word), shell.Files
	case "controller", "--controller":
		return e.joinedNames(ctx, word), shell.Words
	case "id":
		return e.resultIDs(ctx), shell.Words
	case "result", "before", "after":
		return e.resultIDs(ctx), shell.Files
	case "KNOB":
		return unit.Mapped(knob.Table(), func(k knob.Knob) shell.Word { return shell.Word{Text: k.ID, Help: k.Title} }), shell.Words
	case "GATE":
		return unit.Mapped(cause.Gates(), func(g gate.Rule) shell.Word { return shell.Word{Text: g.ID, Help: g.Title} }), shell.Words
	case "PRIVILEGE":
		return plain(bus.Privileges()), shell.Words
	case "COMMAND", "command":
		return e.commandNames(), shell.Words
	case "topic":
		return append(e.commandNames(), plain(slices.Concat(docs.Topics(), docs.IDs()))...), shell.Words
	case "role", "serve|control":
		return plain([]string{"serve", "control"}), shell.Words
	case "kind":
		return plain(planfile.Starters()), shell.Words
	case "shell":
		return plain(shell.Shells()), shell.Words
	case "FILE", "file", "plan", "newfile", "outfile", "FILE|URL", "nowhere|memory|FILE", "generated|FILE":
		return nil, shell.Files
	case "DIR", "path":
		return nil, shell.Folders
	}
	return nil, ""
}

func plain(all []string) []shell.Word {
	return unit.Mapped(all, func(text string) shell.Word { return shell.Word{Text: text} })
}

func (e *env) commandNames() []shell.Word {
	return unit.Mapped(e.line.Model.Children, func(n *kong.Node) shell.Word { return shell.Word{Text: n.Name, Help: n.Help} })
}

// askTime limits how long a completion waits for a controller.
const askTime = 2 * time.Second

// joinedNames returns the joined names, and behind CONTROLLER/ the hosts of that fleet.
func (e *env) joinedNames(ctx context.Context, word string) (all []shell.Word) {
	keys, err := bus.DefaultKeyring()
	if err != nil {
		return nil
	}
	controllers := remote.Controllers(keys, bus.PrivilegeOperate)
	if controller, _, below := strings.Cut(word, "/"); below && slices.Contains(controllers, controller) {
		ctx, cancel := context.WithTimeout(ctx, askTime)
		defer cancel()
		found, _ := e.network.FleetHosts(ctx, []string{controller}) // without an answer there is nothing to offer
		return unit.Mapped(found[controller], func(h planfile.Host) shell.Word {
			return shell.Word{Text: controller + "/" + h.Name, Help: labelsText(store.Entry{Labels: h.Labels}, "")}
		})
	}
	names, _ := keys.List() // without a folder there are none
	for i, name := range names {
		if slices.Contains(controllers, name) {
			names[i] += "/"
		}
	}
	return plain(append(names, control.Local))
}

// mostOffered limits the results that are offered.
const mostOffered = 30

// resultIDs returns the ids of the newest results.
func (e *env) resultIDs(ctx context.Context) []shell.Word {
	e.settings, _ = settings.Load(settings.Paths(), os.Environ()) // what can be read counts
	all := []shell.Word{{Text: "last"}}
	_ = e.withStore(e.storeSettings().storeFile, store.Options{ReadOnly: true}, func(s store.Store) error {
		found, _, err := s.Find(ctx, store.Filter{Limit: mostOffered})
		all = append(all, unit.Mapped(found, func(x store.Entry) shell.Word { return shell.Word{Text: x.ID, Help: x.Command + ": " + titleText(x)} })...)
		return err
	})
	return all
}
