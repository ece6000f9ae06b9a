// Package platform reads the facts of hosts that do not run Linux, by the
// standard commands of their systems: FreeBSD, Windows, Solaris, illumos,
// macOS and ESXi. The commands only read; nothing is installed or changed.
//
// Each system is a table of commands in its own file: what to run, which
// facts it reports, how to read its output. The output comes from a Runner,
// so that the same table serves this machine, another one by ssh, and
// recorded samples. The facts of a command that is missing, fails or reports
// less than expected are in not_checked, with the reason.
package platform

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/unit"
)

// Runner runs a program of the platform and returns its standard output. Time
// and size are limited. A program that exits by itself with a code other than
// 0 returns its output and an error with an *Exit in its chain; with any
// other error the output, if there is any, is incomplete.
type Runner interface {
	Run(ctx context.Context, name string, args ...string) ([]byte, error)
}

// Exit is the error of a program that exited by itself with a code other than
// 0.
type Exit struct {
	Code   int
	Stderr string // the beginning of its standard error
}

// Error returns the code and the program's message.
func (e *Exit) Error() string {
	first, _, _ := strings.Cut(strings.TrimSpace(Clean(e.Stderr)), "\n")
	if first == "" {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return fmt.Sprintf("exit code %d: %.200s", e.Code, first)
}

// The limits of a command: its time, its output, and how many run at a time
// (sshd allows 10 sessions on a connection).
const (
	commandTime = 30 * time.Second
	commandSize = 4 << 20
	atOnce      = 4
)

// command is one program to run.
type command struct {
	line  []string                      // program and arguments; with NIC, UNIT or DRIVER in it: run for each interface
	of    func(*measure.Interface) bool // interfaces that it reports on; nil: physical ones
	facts []string                      // facts of the host that it reports, by their JSON keys
	ports []string                      // facts of each such interface that it reports
	read  func(string, *reading) error  // reads the output
	row   func(Row, *reading)           // instead: reads each row of the columns that the line requests (-o)
	sees  string                        // fact that it reports for all interfaces, though some have no value
	shows []string                      // names shown for the command, where the line itself is unclear
}

// run splits a command line without quoted arguments.
func run(line string) []string { return strings.Fields(line) }

// system is one platform: its commands, in the order in which they are read.
type system struct {
	commands []command
	finish   func(*reading) // computes what needs several commands; may be nil
}

// systems maps the names in Facts.OS to the platforms.
func systems() map[string]system {
	return map[string]system{
		"freebsd": freebsd(), "darwin": darwin(), "windows": windows(),
		"solaris": solaris(), "illumos": solaris(), "esxi": esxi(),
	}
}

// Known reports whether the commands of a system are known.
func Known(name string) bool { _, ok := systems()[name]; return ok }

// ErrUnknown means a system whose commands are not known.
var ErrUnknown = errors.New("are not known")

// Detect returns the system of a host: "freebsd", "esxi", "solaris",
// "illumos", "darwin" or "linux".
func Detect(ctx context.Context, r Runner) (string, error) {
	kernel, err := ask(ctx, r, "uname", "-s")
	if err != nil {
		return "", fmt.Errorf("platform: detecting the system: %w", err)
	}
	names := map[string]string{"FreeBSD": "freebsd", "VMkernel": "esxi", "Darwin": "darwin", "Linux": "linux"}
	if name, ok := names[kernel]; ok {
		return name, nil
	}
	if kernel != "SunOS" {
		return "", fault.Failf("use a host that runs FreeBSD, macOS, Solaris, illumos or ESXi",
			"platform: detecting the system: unknown system %.40q (`uname -s`)", kernel)
	}
	// Solaris has no -o, or prints Solaris (uname(1) of illumos).
	if brand, err := ask(ctx, r, "uname", "-o"); err == nil && brand == "illumos" {
		return "illumos", nil
	}
	return "solaris", nil
}

// ask returns the one line that a program prints.
func ask(ctx context.Context, r Runner, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	b, err := r.Run(ctx, name, args...)
	return strings.TrimSpace(Clean(string(b))), err
}

// Read reads the facts of a host of that system. The facts of a command that
// is missing or fails are in not_checked; an error means that none worked.
// The returned facts are valid even with an error.
func Read(ctx context.Context, name string, r Runner) (measure.Facts, error) {
	s, ok := systems()[name]
	if !ok {
		return measure.Facts{}, fmt.Errorf("platform: reading facts: the commands of %.40q %w", name, ErrUnknown)
	}
	read := &reading{facts: measure.Facts{OS: &name}, failed: map[string]string{}, seen: map[string]bool{}}
	worked, first := false, error(nil)
	// The commands for each interface run once the interfaces are known.
	for _, each := range []bool{false, true} {
		var jobs []job
		for _, c := range s.commands {
			if c.each() == each {
				jobs = append(jobs, c.jobs(read)...)
			}
		}
		runAll(ctx, r, jobs)
		for _, j := range jobs {
			read.take(j)
			worked = worked || j.err == nil
			first = cmp.Or(first, j.err)
		}
	}
	if s.finish != nil {
		s.finish(read)
	}
	read.close(s.commands)
	if worked || first == nil {
		return read.facts, nil
	}
	return read.facts, fmt.Errorf("platform: reading facts of %s: no command worked: %w", name, first)
}

// placeholders returns the replacements in a command that runs for each
// interface.
func placeholders(i *measure.Interface) *strings.Replacer {
	driver := i.Name
	if i.Driver != nil && Plain(*i.Driver) {
		driver = *i.Driver
	}
	return strings.NewReplacer("NIC", i.Name, "UNIT", unitOf(i.Name), "DRIVER", driver)
}

// unitOf returns driver and number as in FreeBSD's sysctl: "ix.0" for ix0.
func unitOf(nic string) string {
	driver := strings.TrimRight(nic, "0123456789")
	return driver + "." + nic[len(driver):]
}

// each reports whether the command is run for each interface.
func (c command) each() bool {
	all := strings.Join(c.line, " ")
	return placeholders(&measure.Interface{Name: "x0"}).Replace(all) != all
}

// reader returns the function that reads the output.
func (c command) reader() func(string, *reading) error {
	if c.row == nil {
		return c.read
	}
	return eachRow(columnsOf(c.line[slices.Index(c.line, "-o")+1]), c.row)
}

// names returns how a command line is shown.
func (c command) names(line []string) []string {
	if c.shows != nil {
		return c.shows
	}
	return []string{strings.Join(unit.Mapped(line, quoteOdd), " ")}
}

// covers reports whether the command reports on an interface.
func (c command) covers(i *measure.Interface) bool {
	if c.of != nil {
		return c.of(i)
	}
	return i.Kind != nil && *i.Kind == physical
}

// job is one run of a command and its result.
type job struct {
	command
	nic string // interface that it is run for, or ""
	out []byte
	err error
}

// jobs returns the runs of a command: one, or one for each interface; only
// one where all would be the same.
func (c command) jobs(r *reading) []job {
	if !c.each() {
		return []job{{command: c}}
	}
	var all []job
	for i := range r.facts.Interfaces {
		d := &r.facts.Interfaces[i]
		if !c.covers(d) || !Plain(d.Name) {
			continue
		}
		j := job{command: c, nic: d.Name}
		j.line = nil
		for _, a := range c.line {
			j.line = append(j.line, placeholders(d).Replace(a))
		}
		if !slices.ContainsFunc(all, func(o job) bool { return slices.Equal(o.line, j.line) }) {
			all = append(all, j)
		}
	}
	return all
}

// runAll runs the jobs, a few at a time, and waits for all.
func runAll(ctx context.Context, r Runner, jobs []job) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range jobs {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			jobs[i].run(ctx, r)
		})
	}
	wg.Wait()
}

// run runs one job within its time limit.
func (j *job) run(ctx context.Context, r Runner) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	j.out, j.err = r.Run(ctx, j.line[0], j.line[1:]...)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && j.err != nil {
		j.err = fmt.Errorf("the command timed out: %w", context.DeadlineExceeded)
	}
}

// take reads the output of a job. It uses the output of a program that
// failed, but not that of one that was cut off.
func (r *reading) take(j job) {
	r.facts.Commands = append(r.facts.Commands, j.names(j.line)...)
	r.nic = j.nic
	var exit *Exit
	err := j.err
	if err == nil || errors.As(err, &exit) && len(j.out) > 0 {
		err = errors.Join(err, j.reader()(Clean(string(j.out)), r))
	}
	if err == nil && j.sees != "" {
		r.seePorts(j.sees)
	}
	if err != nil {
		r.fail(j, err)
	}
}
