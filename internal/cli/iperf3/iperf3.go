// Package iperf3 is `thru iperf3`: iperf3's command line, output and exit codes, for scripts and habits; and
// iperf3's documents for thru test -J.
package iperf3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"thru/internal/bus"
	"thru/internal/cli/console"
	"thru/internal/control"
	"thru/internal/engine/iperf3"
	"thru/internal/fault"
	"thru/internal/iperfdoc"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/plan/option"
	"thru/internal/remote"
	"thru/internal/stat"
)

// Host is the environment of the command.
type Host struct {
	*console.Console
	Network *remote.Network
	Keep    func(doc *measure.Document) // stores a result in the history
}

// Run runs as an iperf3 client or server, with its output, and exit code 1 for any error.
func Run(ctx context.Context, e Host, args []string) error {
	o, err := Parse(args)
	switch {
	case err != nil:
		return originalError(e.Err, "parameter error", err)
	case o.help:
		return o.usage(e.Out)
	case o.version:
		_, err := fmt.Fprintln(e.Out, iperfdoc.Version(e.Version))
		return err
	case o.daemon && os.Getenv(detachedVariable) == "":
		if err := detach(); err != nil {
			return originalError(e.Err, "error", err)
		}
		return nil
	}
	out, done, err := o.open(&e)
	if err != nil {
		return originalError(e.Err, "error", err)
	}
	defer done()
	if o.server {
		return o.serve(ctx, e, out)
	}
	return o.measure(ctx, e, out)
}

// originalError prints an error to stderr as iperf3 does, and ends the command with exit code 1.
func originalError(w io.Writer, kind string, err error) error {
	err = option.Spelled(err, option.AsIPerf)
	fmt.Fprintf(w, "iperf3: %s - %s\n", kind, originalWords(err))
	if h := fault.Hint(err); kind == "parameter error" { // its hints name thru's own options
		fmt.Fprint(w, "\nUsage: thru iperf3 [-s|-c host] [options]\nTry `thru iperf3 --help' for more information.\n")
	} else if h != "" {
		fmt.Fprintf(w, "hint: %s\n", h)
	}
	return console.Printed(fault.New(fault.Failed, "", "%w", err))
}

// noConnection begins iperf3's messages about a missing connection.
const noConnection = "unable to connect to server - server may have stopped running or use a different port, firewall issue, etc.: "

// originalWords words an error as iperf3 does if scripts may look for that, else as thru does.
func originalWords(err error) string {
	return cmp.Or(map[fault.Reason]string{
		iperf3.ReasonRefused:    noConnection + "Connection refused",
		iperf3.ReasonNoRoute:    noConnection + "No route to host",
		iperf3.ReasonNoNetwork:  noConnection + "Network is unreachable",
		iperf3.ReasonNoName:     noConnection + "Name or service not known",
		iperf3.ReasonNoAddress:  noConnection + "Cannot assign requested address",
		iperf3.ReasonNoDevice:   noConnection + "No such device",
		iperf3.ReasonCongestion: "unable to set TCP_CONGESTION: Supplied congestion control algorithm not supported on this host",
		iperf3.ReasonWindow:     "socket buffer size not set correctly",
		iperf3.ReasonBusy:       "the server is busy running a test. try again later",
		iperf3.ReasonLogin:      "test authorization failed",
		iperf3.ReasonTerminated: "the server has terminated",
		iperf3.ReasonLeft:       "the client has terminated",
		iperf3.ReasonClosed:     "control socket has closed unexpectedly",
	}[fault.ReasonOf(err)], fault.Plain(err.Error()))
}

// open opens the log file, or stdout, and writes the pid file.
func (o *original) open(e *Host) (io.Writer, func(), error) {
	out, done := e.Out, func() {}
	if o.logFile != "" {
		f, err := os.OpenFile(o.logFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, nil, fault.Failf("--logfile needs a file in a writable folder", "iperf3: opening the log: %w", err)
		}
		out, done = f, func() { f.Close() }
		c := *e.Console
		c.Err = either{f, e.Err} // errors go there, too, as in iperf3
		e.Console = &c
	}
	if o.pidFile == "" {
		return out, done, nil
	}
	if err := os.WriteFile(o.pidFile, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644); err != nil {
		done()
		return nil, nil, fault.Failf("-I needs a file in a writable folder", "iperf3: writing the process id: %w", err)
	}
	return out, func() { os.Remove(o.pidFile); done() }, nil
}

// either writes to the first writer that accepts the data: if the log's disk is full, the error must still be
// shown.
type either struct{ first, second io.Writer }

func (e either) Write(b []byte) (int, error) {
	if n, err := e.first.Write(b); err == nil {
		return n, nil
	}
	return e.second.Write(b)
}

// measure runs the client.
func (o *original) measure(ctx context.Context, e Host, out io.Writer) error {
	r := o.Request
	r.Local, r.Peer = control.Local, "iperf3://"+bracketed(o.host)+":"+strconv.Itoa(o.port)
	r.LocalCPUs, r.PeerCPUs = 2, 2 // the number of streams is given
	p, err := plan.Test(r)
	if err != nil {
		return originalError(e.Err, "parameter error", err)
	}
	p.Steps = slices.DeleteFunc(p.Steps, func(s plan.Step) bool { return s.Baseline }) // iperf3 measures no baseline
	d := remote.Dialer{Network: e.Network, Family: r.Family, Device: r.BindDev, Source: r.BindAddr}
	d.Login = func() (*bus.Login, error) { return e.Login(r.Login) }
	ends, closeAll, err := d.Pair(ctx, r.Peer)
	if err != nil {
		return originalError(e.Err, "error", err)
	}
	defer closeAll()
	v := newOriginalView(o, out, e.Version)
	v.introduce(ctx, ends.Local)
	runner := control.Runner{Version: e.Version, Ends: ends.All(), Link: stat.Link{}, Watch: v}
	doc, err := runner.Run(ctx, p)
	doc.Arguments = e.Arguments()
	defer e.Keep(doc)
	if words := endedBySignal(ctx, "client"); words != "" && err != nil {
		writing := v.end(doc, errors.New(words))
		if !v.reportsErrors() {
			fmt.Fprintf(e.Err, "iperf3: %s\n", words)
		}
		return o.conclude(e, v, writing, nil)
	}
	return o.conclude(e, v, v.end(doc, err), err)
}

// endedBySignal returns iperf3's message if a signal ended the test, which is no failure; else "".
func endedBySignal(ctx context.Context, role string) string {
	cause, ok := errors.AsType[console.Signalled](context.Cause(ctx))
	number, _ := cause.Signal.(syscall.Signal)
	if !ok || number == 0 {
		return ""
	}
	name := number.String()
	return fmt.Sprintf("interrupt - the %s has terminated by signal %s%s(%d)", role, strings.ToUpper(name[:1]), name[1:], int(number))
}

// conclude prints why a test failed, unless the output contains it.
func (o *original) conclude(e Host, v *originalView, writing, err error) error {
	switch {
	case err != nil && !v.reportsErrors():
		return originalError(e.Err, "error", err)
	case err != nil:
		return console.Printed(fault.New(fault.Failed, "", "%w", err))
	case writing != nil:
		return originalError(e.Err, "error", writing)
	}
	return nil
}

// bracketed returns a host as written before a port: IPv6 addresses in brackets.
func bracketed(host string) string {
	if strings.Contains(host, ":") && !strings.HasPrefix(host, "[") {
		return "[" + host + "]"
	}
	return host
}

// usage lists the options by role.
func (o *original) usage(w io.Writer) error {
	var b strings.Builder
	b.WriteString(`Usage: thru iperf3 -c HOST [options]
       thru iperf3 -s [options]

The command line, the output and the exit codes of iperf3, measured by thru.
What thru cannot do is refused. Sizes take K, M, G (1024), rates too (1000).
`)
	all := o.options()
	for _, group := range []struct {
		title string
		side  side
	}{{"Client or server", ofBoth}, {"Server", ofServer}, {"Client", ofClient}} {
		fmt.Fprintf(&b, "\n%s\n", group.title)
		for i := range all {
			if x := &all[i]; x.side == group.side && x.help != "" {
				b.WriteString(x.line())
			}
		}
	}
	b.WriteString("\nRefused:")
	for i := range all {
		if x := &all[i]; x.help == "" {
			fmt.Fprintf(&b, " %s", x)
		}
	}
	b.WriteString("\n\nThe environment's IPERF3_PASSWORD is the password of --username.\nExit codes: 0 fine, 1 anything else.\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// line returns an option's line of the help.
func (x *flagRow) line() string {
	short, takes := "    ", ""
	if x.short != 0 {
		short = "-" + string(x.short) + ", "
	}
	switch {
	case x.value == optionalValue && x.takes != "":
		takes = "[=" + x.takes + "]"
	case x.value == needsValue:
		takes = " " + x.takes
	}
	return fmt.Sprintf("  %s%-27s %s\n", short, "--"+x.long+takes, x.help)
}
