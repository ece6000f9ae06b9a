package cli

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/alecthomas/kong"

	"thru/internal/bus"
	"thru/internal/cli/iperf3"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan/option"
	"thru/internal/remote"
)

// flowFlags go with every test.
type flowFlags struct {
	formFlags
	storeFlags
	asked
}

// trafficFlags are those of tests that are measured once and for all.
type trafficFlags struct {
	flowFlags
	Force bool `group:"Output" name:"force" help:"Measure although a gate fails (thru check), and say so in the result."`
}

// reading is the text of a flag and what reads it.
type reading struct {
	flag, text, like string
	parse            func(string) error
}

// readAll reads those that were given.
func readAll(flags []reading) error {
	for _, f := range flags {
		if f.text == "" {
			continue
		}
		if err := f.parse(f.text); err != nil {
			return option.Misread(f.flag, f.text, fmt.Sprintf("%s takes a value such as %s", f.flag, f.like), err)
		}
	}
	return nil
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
		return errors.New("it is empty")
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

// loginFlags are iperf3's, for servers that ask who their client is.
type loginFlags struct {
	User      string `group:"iperf end points" name:"username" placeholder:"NAME" help:"User of an iperf3 server that asks for one; the password comes from IPERF3_PASSWORD or is asked for."`
	PublicKey string `group:"iperf end points" name:"rsa-public-key-path" type:"path" placeholder:"FILE" help:"That server's public RSA key."`
	PKCS1     bool   `group:"iperf end points" name:"use-pkcs1-padding" help:"The older padding, for servers before 3.17."`
}

// engineOf is the engine of an end point, which has to be iperf3's for a login there.
func (f loginFlags) engineOf(e *env, name string) (string, error) {
	engine, err := remote.EngineOf(name)
	if these := e.TypedOf("--username", "--rsa-public-key-path", "--use-pkcs1-padding"); err == nil && engine != measure.IPerf3 && len(these) > 0 {
		err = fault.Usagef("name a server of iperf3: iperf3://HOST", "%s not go with this end point", flagsDo(these))
	}
	return engine, err
}

// login reads what the flags name; nil where no user is named.
func (f loginFlags) login(e *env) (*bus.Login, error) { return e.Login(f.User, f.PublicKey, f.PKCS1) }
