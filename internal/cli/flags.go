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

// flowFlags go with every test.
type flowFlags struct {
	formFlags
	wholeFlag
	storeFlags
	asked
}

// trafficFlags are those of tests that are measured once and for all.
type trafficFlags struct {
	flowFlags
	Force bool `group:"Output" name:"force" help:"Measure although a gate fails (thru check), and say so in the result."`
}

// above reads a value above zero. The flag's tags say what it takes: `like` shows
// it, `most` bounds it, and `none` says what is wrong with zero.
func above[T ~int64](parse func(string) (T, error)) kong.MapperFunc {
	return func(ctx *kong.DecodeContext, to reflect.Value) error {
		var text string
		if err := ctx.Scan.PopValueInto("string", &text); err != nil {
			return err
		}
		name, tag := flagName(ctx.Value.Flag), ctx.Value.Tag
		if text == "" {
			return noValue(name)
		}
		v, err := parse(text)
		if err == nil && v <= 0 {
			err = errors.New(cmp.Or(tag.Get("none"), "nothing would pass"))
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

// placeFlag reads a path, of which an empty one would be the folder that one is in.
func placeFlag(ctx *kong.DecodeContext, to reflect.Value) error {
	if err := readOnce(ctx, to); err != nil {
		return err
	}
	to.SetString(kong.ExpandPath(to.String()))
	return nil
}

// refuseEmpty refuses what is empty on a command line, as an unset variable of a
// shell leaves it: an empty --only would else leave all knobs to be changed.
func refuseEmpty(k *kong.Context) error {
	for _, p := range k.Path {
		switch {
		case p.Flag != nil && isEmpty(p.Flag.Target):
			return noValue(flagName(p.Flag))
		case p.Positional != nil && isEmpty(p.Positional.Target):
			switch name, _, _ := strings.Cut(p.Positional.Name, "|"); name {
			case "end-point", "source":
				return fault.Usagef("leave it out for this machine, or say `local`", "the %s is empty", strings.ReplaceAll(name, "-", " "))
			}
		}
	}
	return nil
}

func noValue(flag string) error {
	return fault.Usagef("leave "+flag+" out, or give it a value; where the shell put one there, it is unset", "%s has no value", flag)
}

// isEmpty tells of a text, or a list of texts, that was given and says nothing.
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

// typedFlags are the flags of a command line in order, each once, by their short
// names where they have one.
func typedFlags(k *kong.Context) (names []string) {
	for _, p := range k.Path {
		if p.Flag == nil {
			continue
		}
		if name := flagName(p.Flag); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// flagName is the short name of a flag where it has one.
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

// joinedFlag reads a flag whose values add up, by commas or by naming it again.
func joinedFlag(ctx *kong.DecodeContext, to reflect.Value) error {
	before := to.String()
	if err := readOnce(ctx, to); err != nil || before == "" {
		return err
	}
	to.SetString(before + "," + to.String())
	return nil
}

// onceFlag reads a flag of which a second value would mean another path.
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
		return noValue(flagName(ctx.Value.Flag))
	}
	to.SetString(value)
	return nil
}

// dropRepeats leaves out of lists of flags what was given before: twice says no more than once.
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

// iperf3Cmd is iperf3's command line for those that have it in scripts and in
// their fingers: alias iperf3='thru iperf3'.
type iperf3Cmd struct {
	Args []string `arg:"" optional:"" name:"arguments" help:"As of iperf3: thru iperf3 --help."`
}

// Run is iperf3.
func (c *iperf3Cmd) Run(ctx context.Context, e *env) error {
	e.archive = archiveOf(keepFlags{})
	return iperf3.Run(ctx, e.asIPerf3(), c.Args)
}

// asIPerf3 is this command as one that prints as iperf3 does.
func (e *env) asIPerf3() iperf3.Host {
	return iperf3.Host{Console: e.Console, Network: e.network, Keep: func(doc *measure.Document) {
		doc.Labels = e.archive.Labels
		e.store(doc, true)
	}}
}
