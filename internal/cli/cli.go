// Package cli is the command line, and the only code that prints to the user. It reads flags, connects the
// end points, hands a plan to control, and prints the result.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"thru/internal/cli/console"
	"thru/internal/cli/iperf3"
	"thru/internal/cli/settings"
	"thru/internal/cli/shell"
	"thru/internal/control"
	"thru/internal/engine/worker"
	"thru/internal/fault"
	"thru/internal/library"
	"thru/internal/measure"
	"thru/internal/node"
	"thru/internal/plan/option"
	"thru/internal/remote"
	"thru/internal/report"
	"thru/internal/service"
	"thru/internal/unit"
)

// Version of thru; set by the linker (`make build`) and never changed.
var Version = "0.1.0-dev"

// grammar is the whole command line.
type grammar struct {
	Color string `name:"color" enum:"auto,always,never" default:"auto" help:"Colour: auto (a terminal, without $$NO_COLOR), always, never."`

	Test      testCmd      `cmd:"" help:"Measure a path: both directions, CPU of both ends, and what the figures mean."`
	Check     checkCmd     `cmd:"" help:"Check whether this host and the path to an end point are fit to be measured, and what to fix."`
	Explain   explainCmd   `cmd:"" help:"Explain what limits the rate: run experiments with an end point, or read results or captures (pcap, pcapng)."`
	Tune      tuneCmd      `cmd:"" help:"Change one setting at a time, measure the gain, keep or revert it; --dry-run: only advice, --rollback: undo."`
	Ladder    ladderCmd    `cmd:"" help:"Measure what each layer costs, rung by rung: 1, 2, 4, 8 streams with the default window and with 800K."`
	Run       runCmd       `cmd:"" help:"Run a plan: sweeps, matrices and many hosts at once, from a file."`
	Watch     watchCmd     `cmd:"" help:"Watch pairs: probes always, TCP tests seldom; says what changes, since when, and why."`
	Plan      planCmd      `cmd:"" help:"Write a plan file to start from, or check one."`
	Serve     serveCmd     `cmd:"" help:"Make this host an end point that others can measure with."`
	Service   serviceCmd   `cmd:"" help:"Run thru serve, control or watch as a service of this system: install, remove, status."`
	IPerf3    iperf3Cmd    `cmd:"" name:"iperf3" passthrough:"" help:"The command line and output of iperf3, for old scripts: alias iperf3='thru iperf3'."`
	Join      joinCmd      `cmd:"" help:"Store a join string (from stdin) under a name."`
	Control   controlCmd   `cmd:"" help:"Run the controller of a fleet: hosts connect to it, and operators find them there."`
	Token     tokenCmd     `cmd:"" help:"Give, list and revoke tokens: who may do what in a fleet (thru help access)."`
	Login     loginCmd     `cmd:"" help:"Log in at a controller by the provider of your organization (OpenID Connect)."`
	Audit     auditCmd     `cmd:"" help:"Show who did what in the fleet of this controller, and verify that the log was not changed."`
	Deploy    deployCmd    `cmd:"" help:"Install thru serve as a service on hosts over ssh, under a controller; shows a plan first; --undo."`
	Hosts     hostsCmd     `cmd:"" help:"List the hosts of a fleet and what they are doing."`
	Inventory inventoryCmd `cmd:"" help:"List virtual machines, their hosts and networks, from vCenter, ESXi or QEMU, and anomalies."`
	Disk      diskCmd      `cmd:"" help:"Measure the disk of a folder: sequential and random reads and writes, here or at an end point."`
	Transfer  transferCmd  `cmd:"" help:"Transfer a file by a real protocol (ftp, sftp, smb, nfs, rsync, http), and name the layer that limits it: disk, network, protocol or client."`
	Report    reportCmd    `cmd:"" help:"Show a stored result as text, page, Markdown, CSV or JSON; check who signed a page."`
	History   historyCmd   `cmd:"" help:"List, export, import and remove stored results."`
	Compare   compareCmd   `cmd:"" help:"Show what changed between results: figures with their uncertainty, and facts of the hosts. A regression ends with exit code 3."`
	Config    configCmd    `cmd:"" help:"Show which flags files and variables set, and where."`
	Help      helpCmd      `cmd:"" help:"Print a page of the documentation; without a topic, the list of pages by question."`
	Version   versionCmd   `cmd:"" help:"Print the version."`
	Support   supportCmd   `cmd:"" help:"Write one file for a bug report, without names, addresses and secrets."`

	Completion completionCmd `cmd:"" help:"Print the completion of bash, zsh, fish or PowerShell."`
}

// env is the environment of a command.
type env struct {
	*console.Console
	archive library.Archive // where the result is stored
	network *remote.Network // connects end points
	line    *kong.Context   // the parsed command line

	settings *settings.Settings // nil: the command does without
	resolver *resolver          // what they set
	hangUp   chan os.Signal     // asks a service to read its settings again
}

// AfterApply implements kong.AfterApply.
func (g *grammar) AfterApply(e *env) error {
	e.Color = g.Color
	return nil
}

// reader returns the reader of stored results that a command names.
func (e *env) reader() *library.Reader {
	return &library.Reader{In: e.In, Version: e.Version, Line: e.Line, Archive: e.archive}
}

const description = `thru proves what a network path carries, and explains what limits it.

With no END POINT a command measures this machine against itself.
thru help lists the documentation by question.`

const exitCodes = `
Exit codes: 0 fine, 1 failed, 2 wrong usage, 3 measured but below the required
rate or worse than before, or a gate fails, 4 inconclusive.`

// Main runs the command line and returns the exit code of the process.
func Main(args []string, in io.Reader, out, errw io.Writer) int {
	if len(args) > 0 && args[0] == worker.Verb {
		return moveData(in, out, errw)
	}
	if len(args) > 0 && args[0] == node.GuardVerb {
		return node.GuardTuning(args[1:], in, errw)
	}
	log.SetOutput(io.Discard) // net/http logs text of remote servers; thru itself logs nothing
	c := &console.Console{In: in, Out: out, Err: errw, Args: args, Version: Version, Password: console.TakePassword()}
	e := &env{Console: c, network: remote.New(c, c.Version)}
	serve := e.command
	if len(args) > 0 && args[0] == remote.AttendVerb {
		serve = e.attend
	}
	if len(args) > 0 && args[0] == shell.Verb {
		serve = e.completeFor
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	serves := isService(c.Verb())
	switch {
	case signal.Ignored(syscall.SIGHUP): // nohup(1) ignores it
	case serves && !console.HasTerminal():
		e.hangUp = make(chan os.Signal, 1)
		signal.Notify(e.hangUp, syscall.SIGHUP)
		defer signal.Stop(e.hangUp)
	default:
		signal.Notify(signals, syscall.SIGHUP)
	}
	defer signal.Stop(signals)
	if !serves {
		return untilTwice(signals, serve)
	}
	log, ended := service.Attach(c.Verb(), signals)
	if log != nil {
		c.Out, c.Err = log, log
	}
	code := untilTwice(signals, serve)
	ended(code)
	return code
}

// isService reports whether a command can run as a service.
func isService(verb string) bool { return slices.Contains([]string{"serve", "control", "watch"}, verb) }

// untilTwice runs a command. The first signal cancels it; the second ends the program at once. It handles
// Ctrl-C itself because a shell makes the processes that it starts with & ignore it. A closed terminal sends
// more than one signal: they count as one.
func untilTwice(signals <-chan os.Signal, command func(context.Context) int) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	ended := make(chan int, 1)
	go func() { ended <- command(ctx) }()
	for {
		select {
		case code := <-ended:
			return code
		case s := <-signals:
			if ctx.Err() != nil && s != syscall.SIGHUP {
				return fault.Failed
			}
			cancel(console.Signalled{Signal: s})
		}
	}
}

// command runs the command line, prints the error, and returns the exit code.
func (e *env) command(ctx context.Context) int {
	err := run(ctx, e)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = fault.Failf("", "interrupted")
	}
	var done helpShown
	if errors.As(err, &done) {
		return fault.OK
	}
	if err != nil {
		e.printError(err)
	}
	return fault.Code(err)
}

// attend is the hidden command that runs at the far end of ssh; a program reads its stdout.
func (e *env) attend(ctx context.Context) int {
	err := remote.Attend(ctx, e.Version, e.Args[1:], e.In, e.Out)
	if err != nil {
		e.ErrorLines(err)
	}
	return fault.Code(err)
}

// moveData is the hidden command of the process that moves test traffic.
func moveData(in io.Reader, out, errw io.Writer) int {
	if err := worker.Main(in, out); err != nil {
		fmt.Fprintln(errw, err)
		return fault.Failed
	}
	return fault.OK
}

// command is what a command line selects. kong could call it too, but by names that the linker does not know.
type command interface {
	Run(context.Context, *env) error
}

// helpShown ends the command line after --help.
type helpShown int

func (helpShown) Error() string { return "help was shown" }

func run(ctx context.Context, e *env) (err error) {
	defer func() { // kong leaves by its exit function; help is the only case
		if r := recover(); r != nil {
			h, ok := r.(helpShown)
			if !ok {
				panic(r)
			}
			err = h
		}
	}()
	args := e.Args
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case len(args) == 1 && (args[0] == "--version" || args[0] == "-v"):
		args = []string{"version"}
	}
	if err := misread(args); err != nil {
		return err
	}
	wrong := e.loadSettings(args)
	k, err := parse(e, args) // it prints the help in spite of wrong settings
	if err != nil {
		return usage(e.Args, err)
	}
	e.line, e.Typed = k, typedFlags(k)
	if err := cmp.Or(wrong, e.takeSettings(k), refuseEmpty(k)); err != nil {
		return err
	}
	dropRepeats(k)
	err = option.Spelled(k.Selected().Target.Addr().Interface().(command).Run(ctx, e), option.AsFlag)
	if clash := (*fault.Clash)(nil); errors.As(err, &clash) {
		*clash = clash.Typed(e.Typed)
	}
	return err
}

// parse parses a command line. kong needs milliseconds for the flags of all commands, so it first knows only the
// command that the line begins with. An error may name others.
func parse(e *env, args []string) (*kong.Context, error) {
	if others := othersThan(args[0]); others != "" {
		parser, err := parserOf(e, &grammar{}, kong.IgnoreFields(others))
		if err != nil {
			return nil, err
		}
		if k, err := parser.Parse(args); err == nil {
			return k, nil
		}
	}
	parser, err := parserOf(e, &grammar{})
	if err != nil {
		return nil, err
	}
	return parser.Parse(args)
}

// othersThan returns an expression for the fields of all commands but one. It is empty if the name is no command, or
// help, which knows all.
func othersThan(name string) string {
	all := commands()
	if all[name] == "" || name == "help" {
		return ""
	}
	delete(all, name)
	return `^grammar\.(` + strings.Join(slices.Collect(maps.Values(all)), "|") + ")$"
}

// commands returns the fields of grammar by the names of their commands.
func commands() map[string]string {
	all := map[string]string{}
	for f := range reflect.TypeFor[grammar]().Fields() {
		if _, is := f.Tag.Lookup("cmd"); is {
			all[cmp.Or(f.Tag.Get("name"), strings.ToLower(f.Name))] = f.Name
		}
	}
	return all
}

// parserOf builds kong's parser of the command line into g.
func parserOf(e *env, g *grammar, more ...kong.Option) (*kong.Kong, error) {
	options := []kong.Option{
		kong.Name("thru"), kong.Description(description), kong.UsageOnError(),
		kong.Writers(e.Out, e.Err), kong.Exit(func(code int) { panic(helpShown(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}), kong.Help(helpWithExitCodes),
		kong.NamedMapper("newfile", kong.MapperFunc(newFile)), kong.NamedMapper("outfile", kong.MapperFunc(outFile)), kong.NamedMapper("store", kong.MapperFunc(storeName)),
		kong.NamedMapper("joined", kong.MapperFunc(joinedFlag)), kong.NamedMapper("once", kong.MapperFunc(onceFlag)),
		kong.NamedMapper("place", kong.MapperFunc(placeFlag)), kong.NamedMapper("size", above(unit.ParseSize)),
		kong.NamedMapper("rate", above(unit.ParseRate)), kong.NamedMapper("time", above(unit.ParseDuration)),
		kong.PostBuild(withOptions), kong.Bind(e),
	}
	if e.settings.Any() {
		e.resolver = &resolver{Settings: e.settings, lenient: inSpite(e.Args)}
		options = append(options, kong.Resolvers(e.resolver))
	}
	parser, err := kong.New(g, append(options, more...)...)
	if err != nil {
		return nil, fmt.Errorf("cli: building the command line: %w", err)
	}
	return parser, nil
}

// newFile reads the name of a file to write. It refuses an empty name, which an unset shell variable gives.
func newFile(ctx *kong.DecodeContext, to reflect.Value) error {
	var path string
	if err := ctx.Scan.PopValueInto("file", &path); err != nil {
		return err
	}
	if path == "" {
		return errors.New("the name of the file is empty")
	}
	if path == "-" {
		return errors.New("- is not a file")
	}
	to.SetString(kong.ExpandPath(path))
	return nil
}

// outFile reads the name of a file to write; - is stdout.
func outFile(ctx *kong.DecodeContext, to reflect.Value) error {
	if ctx.Scan.Peek().String() != "-" {
		return newFile(ctx, to)
	}
	ctx.Scan.Pop()
	to.SetString("-")
	return nil
}

func helpWithExitCodes(o kong.HelpOptions, k *kong.Context) error {
	if err := kong.DefaultHelpPrinter(o, k); err != nil {
		return err
	}
	_, err := fmt.Fprintln(k.Stdout, exitCodes)
	return err
}

// printError prints an error to the user, and with --json also a document.
func (e *env) printError(err error) {
	if isService(e.Verb()) {
		showStatus(fault.WithHint(err)) // why the service ends
	}
	if console.WasPrinted(err) {
		return
	}
	if e.WantsJSON() {
		doc := e.document()
		doc.Error = control.Describe(err)
		report.JSON(e.Out, doc)
	}
	if e.Verb() != "iperf3" {
		iperf3.Fail(e.Console, err)
	}
	e.ErrorLines(err)
	if fault.Code(err) == fault.Usage && e.resolver != nil && len(e.resolver.used) > 0 { // one of them may be what is wrong
		e.Line("not typed but set: " + strings.Join(e.resolver.used, ", "))
	}
}

// described prints an error for people, and returns it for a document of its own with the error that ends the command.
func (e *env) described(err error) (*measure.Error, error) {
	if err == nil {
		return nil, nil
	}
	e.ErrorLines(err)
	return control.Describe(err), console.Printed(err)
}

// document returns an empty document of this command.
func (e *env) document() *measure.Document {
	return &measure.Document{
		Schema: measure.Schema, Thru: e.Version, Command: e.Verb(), Arguments: e.Arguments(), StartedAt: time.Now(),
		EndPoints: []measure.EndPoint{}, Cells: []measure.Cell{},
	}
}
