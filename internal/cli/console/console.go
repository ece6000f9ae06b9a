// Package console is what a command has of the person who runs it: where lines,
// errors and progress are shown, and where something may be asked.
package console

import (
	"fmt"
	"io"
	"slices"

	"thru/internal/fault"
	"thru/internal/measure"
)

// Console is the command line of this process, and where it reads and writes.
type Console struct {
	In       io.Reader
	Out, Err io.Writer
	Args     []string
	Typed    []string // flags of the command line, as in --help: "-P", "--dry-run"
	Color    string   // auto, always, never
	Version  string
	Password *string // of THRU_PASSWORD; nil: none was set
}

// Arguments are those of the command line, for a document.
func (c *Console) Arguments() []string {
	told := make([]string, len(c.Args))
	for i, a := range c.Args {
		told[i] = fault.Unsecret(a)
	}
	return told
}

// TypedOf are the typed flags that are some of these.
func (c *Console) TypedOf(these ...string) []string {
	return slices.DeleteFunc(slices.Clone(c.Typed), func(name string) bool { return !slices.Contains(these, name) })
}

// TypedBut are those that are none of these.
func (c *Console) TypedBut(these ...string) []string {
	return slices.DeleteFunc(slices.Clone(c.Typed), func(name string) bool { return slices.Contains(these, name) })
}

// mostErrors bounds the lines of several mistakes at once.
const mostErrors = 20

// ErrorLines are the error and its hint, on stderr; of several that are joined each.
func (c *Console) ErrorLines(err error) {
	all := eachOf(err)
	for i, one := range all {
		if i == mostErrors {
			c.Line(fmt.Sprintf("thru: and %d more", len(all)-i))
			return
		}
		c.Line("thru: " + fault.Plain(one.Error()))
		if h := fault.Hint(one); h != "" && (i+1 == len(all) || h != fault.Hint(all[i+1])) { // the next has the same
			c.Line("hint: " + h)
		}
	}
}

// eachOf are the errors that are joined in one.
func eachOf(err error) (all []error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, one := range joined.Unwrap() {
		all = append(all, eachOf(one)...)
	}
	return all
}

// Warn says that something beside the figures went wrong, and what would mend it.
func (c *Console) Warn(what string, err error) {
	c.Line("warning: " + what + ": " + fault.Plain(err.Error()))
	if h := fault.Hint(err); h != "" {
		c.Line("hint: " + h)
	}
}

// Line writes one to stderr. Names of files and what other hosts say may hold
// characters that command a terminal: they are shown as question marks. No
// secret is shown.
func (c *Console) Line(text string) { fmt.Fprintln(c.Err, fault.Printable(fault.Unsecret(text))) }

// WantsJSON looks at the bare arguments, since flags may be what is wrong.
func (c *Console) WantsJSON() bool { return slices.Contains(c.Args, "--json") }

// Verb is the command that was typed; "" where the first word is a flag.
func (c *Console) Verb() string {
	if len(c.Args) > 0 && len(c.Args[0]) > 0 && c.Args[0][0] != '-' {
		return c.Args[0]
	}
	return ""
}

// Asks is where a program writes that asks the person itself; nil: nobody is there.
func (c *Console) Asks() io.Writer {
	if !IsTerminal(c.In) {
		return nil
	}
	return c.Err
}

// UnsecretError is an error of a document without secrets.
func UnsecretError(e *measure.Error) *measure.Error {
	if e == nil {
		return nil
	}
	told := *e
	told.Message, told.Hint = fault.Unsecret(e.Message), fault.Unsecret(e.Hint)
	return &told
}
