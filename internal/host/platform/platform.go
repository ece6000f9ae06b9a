// Package platform reads the facts of hosts that are not Linux by the
// standard commands of their systems: FreeBSD, Windows, Solaris, illumos,
// macOS and ESXi. The commands only read; nothing is installed or changed.
//
// Each system is a table of commands in a file of its own: what is run, which
// facts it tells, how its output is read. The output comes from a Runner, so
// that the same table serves this machine, another one by ssh, and recorded
// samples. A command that is missing, fails or says less than it should
// leaves its facts in not_checked, with the reason.
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
)

// Runner runs a program of the platform and returns its standard output.
// Time and size are bounded. A program that ends by itself with another code
// than 0 gives its output and an error with an *Exit in its chain; any other
// error means that the output, if there is any, is not whole.
type Runner interface {
	Run(ctx context.Context, name string, args ...string) ([]byte, error)
}

// Exit is a program that ended by itself, with a code other than 0.
type Exit struct {
	Code   int
	Stderr string // what it wrote to standard error, the beginning of it
}

// Error names the code and what the program said of it.
func (e *Exit) Error() string {
	first, _, _ := strings.Cut(strings.TrimSpace(Clean(e.Stderr)), "\n")
	if first == "" {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return fmt.Sprintf("exit code %d: %.200s", e.Code, first)
}

// The bounds of a command: how long it may take, how much it may print, and
// how many run at a time (sshd allows 10 sessions on a connection).
const (
	commandTime = 30 * time.Second
	commandSize = 4 << 20
	atOnce      = 4
)

// command is one program to run.
type command struct {
	line  []string                      // program and arguments; with NIC, UNIT or DRIVER in it: run for each interface
	of    func(*measure.Interface) bool // interfaces that it tells of; nil: physical ones
	facts []string                      // facts of the host that it tells, by their keys in the document
	ports []string                      // facts of each such interface that it tells
	read  func(string, *reading) error  // takes in the output
	row   func(Row, *reading)           // instead: takes in each row of the columns that the line asks for (-o)
	sees  string                        // fact that is told of all interfaces, though some have none
	shows []string                      // how the command is named, where the line itself is no good name
}

// run is the line of a command without odd arguments.
func run(line string) []string { return strings.Fields(line) }

// system is one platform: its commands, in the order in which they are read.
type system struct {
	commands []command
	finish   func(*reading) // what follows from several commands; may be nil
}

// systems are the platforms by the names that Facts.OS has for them.
func systems() map[string]system {
	return map[string]system{
		"freebsd": freebsd(), "darwin": darwin(), "windows": windows(),
		"solaris": solaris(), "illumos": solaris(), "esxi": esxi(),
	}
}

// Known reports whether the commands of a system are known.
func Known(name string) bool { _, ok := systems()[name]; return ok }

// ErrUnknown is of a system whose commands are not known.
var ErrUnknown = errors.New("are not known")

// Detect asks a host what system it is: "freebsd", "esxi", "solaris",
// "illumos", "darwin" or "linux".
func Detect(ctx context.Context, r Runner) (string, error) {
	kernel, err := ask(ctx, r, "uname", "-s")
	if err != nil {
		return "", fmt.Errorf("platform: asking what system it is: %w", err)
	}
	names := map[string]string{"FreeBSD": "freebsd", "VMkernel": "esxi", "Darwin": "darwin", "Linux": "linux"}
	if name, ok := names[kernel]; ok {
		return name, nil
	}
	if kernel != "SunOS" {
		return "", fault.Failf("thru reads FreeBSD, macOS, Solaris, illumos and ESXi by their commands",
			"platform: asking what system it is: `uname -s` says %.40q, which is not known", kernel)
	}
	// Solaris has no -o, or says Solaris (uname(1) of illumos).
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

// Read reads the facts of a host of that system. A command that is missing or
// fails leaves lines in not_checked; an error means that none worked. The
// facts are good also beside an error, as far as they go.
func Read(ctx context.Context, name string, r Runner) (measure.Facts, error) {
	s, ok := systems()[name]
	if !ok {
		return measure.Facts{}, fmt.Errorf("platform: reading facts: the commands of %.40q %w", name, ErrUnknown)
	}
	read := &reading{facts: measure.Facts{OS: &name}, failed: map[string]string{}, seen: map[string]bool{}}
	worked, first := false, error(nil)
	// What is run for each interface has to wait until they are known.
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

// placeholders are replaced in a command that is run for each interface.
func placeholders(i *measure.Interface) *strings.Replacer {
	driver := i.Name
	if i.Driver != nil && Plain(*i.Driver) {
		driver = *i.Driver
	}
	return strings.NewReplacer("NIC", i.Name, "UNIT", unitOf(i.Name), "DRIVER", driver)
}

// unitOf is driver and number as FreeBSD's sysctl has them: "ix.0" of ix0.
func unitOf(nic string) string {
	driver := strings.TrimRight(nic, "0123456789")
	return driver + "." + nic[len(driver):]
}

// each reports whether the command is run for each interface.
func (c command) each() bool {
	all := strings.Join(c.line, " ")
	return placeholders(&measure.Interface{Name: "x0"}).Replace(all) != all
}

// reader is what takes in the output.
func (c command) reader() func(string, *reading) error {
	if c.row == nil {
		return c.read
	}
	return eachRow(columnsOf(c.line[slices.Index(c.line, "-o")+1]), c.row)
}

// names is how a command line is shown.
func (c command) names(line []string) []string {
	if c.shows != nil {
		return c.shows
	}
	var words []string
	for _, a := range line {
		words = append(words, quoteOdd(a))
	}
	return []string{strings.Join(words, " ")}
}

// covers says whether the command tells of an interface.
func (c command) covers(i *measure.Interface) bool {
	if c.of != nil {
		return c.of(i)
	}
	return i.Kind != nil && *i.Kind == physical
}

// job is one run of a command and what came of it.
type job struct {
	command
	nic string // interface that it is run for, or ""
	out []byte
	err error
}

// jobs are the runs of a command: one, or one for each interface; but one for
// all where that would be the same.
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

// run runs one job within its time.
func (j *job) run(ctx context.Context, r Runner) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	j.out, j.err = r.Run(ctx, j.line[0], j.line[1:]...)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && j.err != nil {
		j.err = fmt.Errorf("it did not end in time: %w", context.DeadlineExceeded)
	}
}

// take reads the output of a job. That of a program which failed counts as
// far as it goes; that of one which was cut off does not.
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
