package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"thru/internal/cli/iperf3"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan/option"
)

// flowFlags are the flags of every test.
type flowFlags struct {
	formFlags
	storeFlags
	asked
}

// trafficFlags are the flags of the commands that measure once.
type trafficFlags struct {
	flowFlags
	Force bool `group:"Output" name:"force" help:"Measure although a gate fails (thru check), and note it in the result."`
}

// above reads a value above zero. The flag's tags describe it: `like` is an example, `most` the maximum,
// `none` what is wrong with zero.
func above[T ~int64](parse func(string) (T, error)) kong.MapperFunc {
	return func(ctx *kong.DecodeContext, to reflect.Value) error {
		var text string
		if err := ctx.Scan.PopValueInto("string", &text); err != nil {
			return err
		}
		name, tag := flagName(ctx.Value.Flag), ctx.Value.Tag
		if text == "" {
			return noValue(ctx.Value.Flag)
		}
		v, err := parse(text)
		if err == nil && v <= 0 {
			err = errors.New(cmp.Or(tag.Get("none"), "it must be above 0"))
		}
		if most, _ := parse(tag.Get("most")); err == nil && most > 0 && v > most {
			err = fmt.Errorf("that is more than %s", tag.Get("most"))
		}
		if err != nil {
			return option.Misread(name, text, name+" takes a value such as "+tag.Get("like"), err)
		}
		to.SetInt(int64(v))
		return nil
	}
}

// placeFlag reads a path and refuses an empty one, which would be the current folder.
func placeFlag(ctx *kong.DecodeContext, to reflect.Value) error {
	if err := readOnce(ctx, to); err != nil {
		return err
	}
	to.SetString(kong.ExpandPath(to.String()))
	return nil
}

// refuseEmpty refuses empty values, which an unset shell variable gives: an empty --only would allow changes
// to all knobs.
func refuseEmpty(k *kong.Context) error {
	for _, p := range k.Path {
		switch {
		case p.Flag != nil && isEmpty(p.Flag.Target):
			return noValue(p.Flag)
		case p.Positional != nil && isEmpty(p.Positional.Target):
			switch name, _, _ := strings.Cut(p.Positional.Name, "|"); name {
			case "end-point", "source":
				return fault.Usagef("leave it out for this machine, or say `local`", "the %s is empty", strings.ReplaceAll(name, "-", " "))
			}
		}
	}
	return nil
}

// noValue refuses a flag without a value. The flag's tag `list` is the command that lists the values.
func noValue(f *kong.Flag) error {
	name := flagName(f)
	hint := "leave " + name + " out, or give it a value; perhaps a shell variable is unset"
	if list := f.Tag.Get("list"); list != "" {
		hint += "; `" + list + "` lists them"
	}
	return fault.Usagef(hint, "%s has no value", name)
}

// isEmpty reports whether a text, or a list of texts, is empty.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice:
		all, is := v.Interface().([]string)
		return is && !slices.ContainsFunc(all, func(s string) bool { return strings.TrimSpace(s) != "" })
	case reflect.String:
		return v.String() == ""
	}
	return false
}

// typedFlags returns the flags of a command line in order, each once, by their short names if they have one.
func typedFlags(k *kong.Context) (names []string) {
	for _, p := range k.Path {
		if p.Flag == nil || p.Resolved {
			continue
		}
		if name := flagName(p.Flag); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// flagName returns the short name of a flag if it has one.
func flagName(f *kong.Flag) string {
	if f.Short != 0 {
		return "-" + string(f.Short)
	}
	return "--" + f.Name
}

// flagsDo begins a sentence about flags: "-P and -t do".
func flagsDo(names []string) string {
	if len(names) == 1 {
		return names[0] + " does"
	}
	return fault.Few(names) + " do"
}

// joinedFlag reads a flag whose values add up, separated by commas or by repeating the flag.
func joinedFlag(ctx *kong.DecodeContext, to reflect.Value) error {
	before := to.String()
	if err := readOnce(ctx, to); err != nil || before == "" {
		return err
	}
	to.SetString(before + "," + to.String())
	return nil
}

// onceFlag reads a flag that takes one value: a second, different one would mean another path.
func onceFlag(ctx *kong.DecodeContext, to reflect.Value) error {
	before := to.String()
	if err := readOnce(ctx, to); err != nil || before == "" || before == to.String() {
		return err
	}
	return fmt.Errorf("it is given as %s and as %s", before, to)
}

func readOnce(ctx *kong.DecodeContext, to reflect.Value) error {
	var value string
	if err := ctx.Scan.PopValueInto("string", &value); err != nil {
		return err
	}
	if value == "" {
		return noValue(ctx.Value.Flag)
	}
	to.SetString(value)
	return nil
}

// dropRepeats removes repeated values from the lists of flags.
func dropRepeats(k *kong.Context) {
	for _, f := range k.Flags() {
		all, _ := f.Target.Interface().([]string)
		for i := len(all) - 1; i > 0; i-- {
			if slices.Contains(all[:i], all[i]) {
				all = slices.Delete(all, i, i+1)
				f.Target.Set(reflect.ValueOf(all))
			}
		}
	}
}

// iperf3Cmd is iperf3's command line, for scripts and habits: alias iperf3='thru iperf3'.
type iperf3Cmd struct {
	Args []string `arg:"" optional:"" name:"arguments" help:"As of iperf3: thru iperf3 --help."`
}

// Run runs iperf3's command line.
func (c *iperf3Cmd) Run(ctx context.Context, e *env) error {
	e.archive = archiveOf(e.storeSettings())
	return iperf3.Run(ctx, e.asIPerf3(), c.Args)
}

// asIPerf3 returns the environment for a command that prints as iperf3 does.
func (e *env) asIPerf3() iperf3.Host {
	return iperf3.Host{Console: e.Console, Network: e.network, Keep: func(doc *measure.Document) {
		doc.Labels = e.archive.Labels
		e.store(doc, true)
	}}
}
