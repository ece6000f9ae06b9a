package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"thru/internal/cli/settings"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/unit"
)

// Flags by their names: those that mean the same in every command, so that one setting is enough, beside the options of
// a test; and those that ask for something to be done once, which a setting would repeat: of all commands, or of one.
const (
	everywhere = "color json all store no-store log log-level nats nkey creds tls-ca"
	actions    = "hosts.watch report.watch audit.noted help rotate replace remove list forget rollback aa yes script resume dry-run nats-key nats-config verify my-key overwrite write print-join restart undo stand-by"
)

// ownVariables are those of other packages and of tests.
const ownVariables = "THRU_CONFIG THRU_PASSWORD THRU_TOKEN THRU_TOKEN_FILE THRU_BINARIES THRU_IPERF3 THRU_IPERF3_DETACHED THRU_REQUIRE_LAB THRU_BINARY"

// without are the commands that have no settings.
const without = "help version config completion support"

// inSpite reports whether a command works in spite of wrong settings: a package removes its services in any case.
func inSpite(words []string) bool {
	words = append(slices.Clone(words), "", "")
	return slices.Contains(strings.Fields(without), words[0]) || words[0] == "service" && (words[1] == "remove" || words[1] == "status")
}

// settable is a flag that files and variables can set.
type settable struct {
	flag   *kong.Flag
	option *askedFlag // nil: it is not in option's table
	own    []string   // its keys below the command, the usual one first
	shared []string   // its keys at the top, for all commands; none: it is of one command
}

// keys returns all keys that set the flag, the most specific first.
func (x settable) keys() []string { return slices.Concat(x.own, x.shared) }

// settables returns the flags of a command that files and variables can set.
func settables(n *kong.Node) (all []settable) {
	for _, f := range n.Flags {
		if x := settableOf(n, f); len(x.keys()) > 0 {
			all = append(all, x)
		}
	}
	return all
}

// isAction reports whether a key stands for a flag that asks for something to be done once.
func isAction(key string) bool {
	all := strings.Fields(actions)
	return slices.Contains(all, key[strings.LastIndexByte(key, '.')+1:]) || slices.Contains(all, key)
}

// settableOf returns a flag of a command with its keys; none: it is no setting.
func settableOf(n *kong.Node, f *kong.Flag) settable {
	x := settable{flag: f, option: optionOf(n, f)}
	if isAction(strings.ReplaceAll(n.Path(), " ", ".") + "." + f.Name) {
		return x
	}
	shared := x.option != nil || slices.Contains(strings.Fields(everywhere), f.Name)
	for _, name := range append([]string{f.Name}, f.Aliases...) {
		if above := strings.Fields(n.Path()); len(above) > 0 {
			x.own = append(x.own, strings.Join(append(above, name), "."))
		}
		if shared {
			x.shared = append(x.shared, name)
		}
	}
	return x
}

// optionOf returns the row of option's table that a flag stands for, or nil.
func optionOf(n *kong.Node, f *kong.Flag) *askedFlag {
	c, ok := n.Target.Addr().Interface().(asks)
	if !ok {
		return nil
	}
	at := f.Target.Addr().Interface()
	for _, a := range c.options().flags {
		if at == any(&a.text) || at == any(&a.on) {
			return a
		}
	}
	return nil
}

// read returns a setting as kong reads it, after it has tried to.
func (x settable) read(s settings.Setting) (any, error) {
	list := x.flag.Target.Kind() == reflect.Slice
	if s.List && !list && (x.option == nil || !x.option.Many) {
		return nil, s.Errorf("write one value", "%s is a list", s.Key)
	}
	value := any(s.Text())
	switch {
	case x.flag.IsBool() && s.Source.Variable != "": // set to anything else, it is on
		value = isOn(s.Text())
	case list && s.List && x.flag.Tag.Sep == -1:
		value = unit.Mapped(s.Values, func(word string) any { return word })
	case list && s.List:
		value = kong.JoinEscaped(s.Values, x.flag.Tag.Sep)
	}
	err := x.flag.Parse(kong.Scan().PushTyped(value, kong.FlagValueToken), reflect.New(x.flag.Target.Type()).Elem())
	if err == nil && x.option != nil && x.option.Value == "" {
		err = x.option.Read(x.option.of, &plan.Request{}, s.Text())
	}
	if f := (*fault.Error)(nil); errors.As(err, &f) {
		return nil, s.Errorf(f.Hint, "%w", f.Err)
	}
	if err != nil || x.flag.Enum != "" && !slices.Contains(x.flag.EnumSlice(), s.Text()) {
		name := flagName(x.flag)
		return nil, s.Errorf(name+" "+x.flag.FormatPlaceHolder()+": "+x.flag.Help, "%s does not take %q", name, fault.Short(fault.Unsecret(s.Text())))
	}
	return value, nil
}

// isOn reports what a variable makes of a flag without a value.
func isOn(text string) bool {
	return !slices.Contains([]string{"0", "no", "false", "off"}, strings.ToLower(text))
}

// resolver gives kong the values of flags that were not typed. It implements kong.Resolver.
type resolver struct {
	*settings.Settings
	used    []string // "--limit by $THRU_HISTORY_LIST_LIMIT"
	lenient bool     // a wrong value sets nothing
}

// Validate implements kong.Resolver.
func (r *resolver) Validate(*kong.Application) error { return nil }

// Resolve implements kong.Resolver.
func (r *resolver) Resolve(c *kong.Context, at *kong.Path, f *kong.Flag) (any, error) {
	x := settableOf(at.Node(), f)
	all := r.Find(x.keys()...)
	if len(all) == 0 || excluded(c, at.Node(), x) {
		return nil, nil
	}
	value, err := x.read(all[0])
	if err != nil && r.lenient {
		return nil, nil
	}
	r.used = append(r.used, flagName(f)+" by "+all[0].Source.String())
	return value, err
}

// excluded reports whether a typed flag contradicts a setting: what was typed counts.
func excluded(c *kong.Context, n *kong.Node, x settable) bool {
	return slices.ContainsFunc(c.Path, func(p *kong.Path) bool {
		if p.Flag == nil {
			return false
		}
		o := optionOf(n, p.Flag)
		return slices.ContainsFunc(p.Flag.Xor, func(group string) bool { return slices.Contains(x.flag.Xor, group) }) ||
			o != nil && x.option != nil && (o.of.ID == x.option.of.ID || o.of.Either != "" && o.of.Either == x.option.of.Either)
	})
}

// loadSettings reads the settings.
func (e *env) loadSettings(words []string) (err error) {
	e.settings, err = settings.Load(settings.Paths(), os.Environ())
	if inSpite(words) {
		return nil
	}
	return err
}

// takeSettings refuses unknown keys at the top of the files and below the command.
func (e *env) takeSettings(k *kong.Context) error {
	e.AsJSON = e.isGiven("json")
	command, path, own := "", "", []settable{}
	for _, p := range k.Path {
		if n := p.Node(); n != nil {
			own = append(own, settables(n)...)
			path = n.Path()
			command = cmp.Or(command, path)
		}
	}
	if inSpite(strings.Fields(path)) || len(unknownKeys(e.settings, own, command)) == 0 {
		return nil
	}
	all, err := e.allSettables() // the keys of all commands: kong needs milliseconds for them
	if err != nil {
		return err
	}
	return refusedKeys(unknownKeys(e.settings, all, command), all)
}

// isTyped reports whether a flag is on the command line.
func (e *env) isTyped(flag string) bool { return len(e.TypedOf(flag)) > 0 }

// isGiven reports whether a flag without a value is on: typed, or by a setting.
func (e *env) isGiven(name string) bool {
	return e.line != nil && slices.ContainsFunc(e.line.Flags(), func(f *kong.Flag) bool { return f.Name == name && f.Target.Bool() })
}

// allSettables returns the settings of all commands, in the order of the help.
func (e *env) allSettables() (all []settable, err error) {
	parser, err := parserOf(&env{Console: e.Console}, &grammar{}) // without settings
	if err != nil {
		return nil, err
	}
	err = kong.Visit(parser.Model, func(v kong.Visitable, next kong.Next) error {
		switch n := v.(type) {
		case *kong.Application:
			all = append(all, settables(n.Node)...)
		case *kong.Node:
			if first, _, _ := strings.Cut(n.Path(), " "); !slices.Contains(strings.Fields(without), first) {
				all = append(all, settables(n)...)
			}
		}
		return next(nil)
	})
	return all, err
}

// unknownKeys returns what the files have and no flag takes. It leaves out what is below another command than this one, if
// one is named.
func unknownKeys(s *settings.Settings, all []settable, command string) []settings.Setting {
	return slices.DeleteFunc(slices.Clone(s.Written), func(one settings.Setting) bool {
		first, _, below := strings.Cut(one.Key, ".")
		return command != "" && below && first != command && commands()[first] != "" ||
			slices.ContainsFunc(all, func(x settable) bool { return slices.Contains(x.keys(), one.Key) })
	})
}

// refusedKeys returns an error for each unknown key.
func refusedKeys(unknown []settings.Setting, all []settable) error {
	var errs []error
	for _, s := range unknown {
		errs = append(errs, s.Errorf(meantKey(s.Key, all), "there is no setting %q", fault.Short(s.Key)))
	}
	return errors.Join(errs...)
}

// meantKey returns the hint for an unknown key.
func meantKey(key string, all []settable) string {
	first, _, _ := strings.Cut(key, ".")
	lastOf := func(key string) string { return key[strings.LastIndex(key, ".")+1:] }
	last := lastOf(key)
	var names, below []string
	for _, x := range all {
		for _, name := range x.keys() {
			if fault.Nearest(last, []string{lastOf(name)}) != "" { // not only the command, which may be most of the key
				names = append(names, name)
			}
		}
		if last == x.flag.Name && len(x.own) > 0 && (last == key || strings.HasPrefix(x.own[0], first+".")) {
			below = append(below, x.own[0])
		}
	}
	switch near := fault.Nearest(key, names); {
	case isAction(key):
		return "--" + last + " asks for something to be done once: it is only a flag"
	case len(below) > 0:
		return "write it below its command: " + fault.Few(below)
	case near != "":
		return "did you mean " + near + "? `thru config --all` lists the settings"
	}
	return "`thru config --all` lists the settings; serve.port is the key port below serve"
}

// configCmd shows the settings.
type configCmd struct {
	Command []string `arg:"" optional:"" name:"command" help:"Only what is in force for this command, such as serve, or history list."`
	All     bool     `name:"all" help:"Also list settings that have their default, with their variables."`
	JSON    bool     `name:"json" help:"Print JSON."`
}

// shownSetting is a setting as thru config prints it.
type shownSetting struct {
	Key      string            `json:"key"`
	Variable string            `json:"variable"`
	Value    string            `json:"value"`
	Source   *settings.Source  `json:"source"` // null: the default
	Over     []settings.Source `json:"over,omitempty"`
}

// shownSettings is what --json prints.
type shownSettings struct {
	Files    []settings.File `json:"files"`
	Settings []shownSetting  `json:"settings"`
	Error    *measure.Error  `json:"error"`
}

// Run prints the settings in force, and what is wrong with them.
func (c *configCmd) Run(_ context.Context, e *env) error {
	all, err := e.allSettables()
	if err != nil {
		return err
	}
	if command := strings.Join(c.Command, "."); command != "" && !slices.ContainsFunc(all, func(x settable) bool { return len(x.own) > 0 && strings.HasPrefix(x.own[0], command+".") }) {
		return fault.Usagef("such as `thru config serve`, or another command of thru --help", "%s has no settings", fault.Short(strings.Join(c.Command, " ")))
	}
	s, wrong := settings.Load(settings.Paths(), os.Environ())
	wrong = errors.Join(wrong, refusedKeys(unknownKeys(s, all, ""), all))
	out := shownSettings{Files: s.Files, Settings: []shownSetting{}}
	for _, r := range c.rows(all) {
		found := s.Find(r.keys...)
		shown := shownSetting{Key: r.keys[0], Variable: settings.Variable(r.keys[0]), Value: r.flag.Default}
		for i, one := range found {
			if _, err := r.read(one); err != nil {
				wrong = errors.Join(wrong, err)
			}
			if i > 0 {
				shown.Over = append(shown.Over, one.Source)
			}
		}
		if len(found) > 0 {
			shown.Value, shown.Source = fault.Printable(fault.Unsecret(found[0].Text())), &found[0].Source
		}
		if len(found) > 0 || c.All && !r.also {
			out.Settings = append(out.Settings, shown)
		}
	}
	if !c.JSON {
		c.print(e, out)
		warnVariables(e, s, all)
		return wrong
	}
	out.Error, wrong = e.described(wrong)
	return cmp.Or(printJSON(e.Out, out), wrong)
}

// settingRow is a line of thru config: a flag by some of its keys.
type settingRow struct {
	settable
	keys []string
	also bool // the keys at the top have a line too
}

// rows returns the settings of all commands by their keys, or those of one command with all keys that set them.
func (c *configCmd) rows(all []settable) (rows []settingRow) {
	command, seen := strings.Join(c.Command, "."), map[string]bool{}
	for _, x := range all {
		switch {
		case command != "":
			if len(x.own) == 0 || strings.HasPrefix(x.own[0], command+".") {
				rows = append(rows, settingRow{x, x.keys(), false})
			}
		case len(x.shared) > 0 && !seen[x.shared[0]]:
			seen[x.shared[0]] = true
			rows = append(rows, settingRow{x, x.shared, false})
		}
		if command == "" && len(x.own) > 0 {
			rows = append(rows, settingRow{x, x.own, len(x.shared) > 0})
		}
	}
	return rows
}

// print prints a line for each setting, and the files.
func (c *configCmd) print(e *env, out shownSettings) {
	if len(out.Settings) == 0 {
		fmt.Fprintln(e.Out, "no setting: `thru config --all` lists all, `thru help config` describes them")
	}
	wide, value := 0, 0
	for _, s := range out.Settings {
		wide, value = max(wide, len(s.Key)), max(value, len(s.Value))
	}
	for _, s := range out.Settings {
		from := "default; $" + s.Variable
		if s.Source != nil {
			from = s.Source.String()
		}
		for i, over := range s.Over {
			from += map[bool]string{true: ", not ", false: " "}[i == 0] + over.String()
		}
		fmt.Fprintf(e.Out, "%-*s  %-*s  %s\n", wide, s.Key, min(value, 40), cmp.Or(s.Value, "-"), from)
	}
	fmt.Fprintln(e.Out)
	for _, f := range out.Files {
		fmt.Fprintf(e.Out, "%s: %s\n", f.Path, map[bool]string{true: "read", false: "does not exist"}[f.Found])
	}
}

// warnVariables names variables that set nothing.
func warnVariables(e *env, s *settings.Settings, all []settable) {
	known := strings.Fields(ownVariables)
	for _, x := range all {
		for _, key := range x.keys() {
			known = append(known, settings.Variable(key))
		}
	}
	for _, name := range s.Variables() {
		if slices.Contains(known, name) {
			continue
		}
		text := "warning: $" + name + " sets nothing"
		if near := fault.Nearest(name, known); near != "" {
			text += "; did you mean $" + near + "?"
		}
		e.Line(text)
	}
}
