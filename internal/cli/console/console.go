// Package console gives a command its access to the user: it prints lines, errors and progress, and asks
// questions.
package console

import (
	"fmt"
	"io"
	"slices"

	"thru/internal/fault"
)

// Console holds the arguments of this process and the streams it reads and writes.
type Console struct {
	In       io.Reader
	Out, Err io.Writer
	Args     []string
	Typed    []string // typed flags as in --help: "-P", "--dry-run"
	Color    string   // auto, always, never
	Version  string
	Password *string // of THRU_PASSWORD; nil: not set
	AsJSON   bool    // a setting, not the command line, asks for --json
	Log      Log
}

// Arguments returns the arguments of the command line for a document, without secrets.
func (c *Console) Arguments() []string {
	args := make([]string, len(c.Args))
	for i, a := range c.Args {
		args[i] = fault.Unsecret(a)
	}
	return args
}

// TypedOf returns the typed flags that are among these.
func (c *Console) TypedOf(these ...string) []string {
	return slices.DeleteFunc(slices.Clone(c.Typed), func(name string) bool { return !slices.Contains(these, name) })
}

// TypedBut returns the typed flags that are not among these.
func (c *Console) TypedBut(these ...string) []string {
	return slices.DeleteFunc(slices.Clone(c.Typed), func(name string) bool { return slices.Contains(these, name) })
}

// mostErrors limits the lines of joined errors.
const mostErrors = 20

// ErrorLines prints an error and its hint to stderr; of joined errors each one.
func (c *Console) ErrorLines(err error) {
	all := eachOf(err)
	for i, one := range all {
		if c.Log.JSON || c.Log.Journal {
			c.logError(one)
			continue
		}
		if i == mostErrors {
			c.Line(fmt.Sprintf("thru: and %d more", len(all)-i))
			return
		}
		c.Line("thru: " + fault.Plain(one.Error()))
		if h := fault.Hint(one); h != "" && (i+1 == len(all) || h != fault.Hint(all[i+1])) { // the next error has the same hint
			c.Line("hint: " + h)
		}
	}
}

// eachOf splits joined errors.
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

// Warn prints a warning about something other than the figures, and the hint of the error.
func (c *Console) Warn(what string, err error) {
	if !c.Logs(Warning) {
		return
	}
	c.Line("warning: " + what + ": " + fault.Plain(err.Error()))
	if h := fault.Hint(err); h != "" {
		c.Line("hint: " + h)
	}
}

// Line writes a line to stderr. Control characters in file names and in text of other hosts become question
// marks, and secrets are removed.
func (c *Console) Line(text string) {
	line := c.Log.mark(Warning) + fault.Printable(fault.Unsecret(text))
	if width, ok := terminalSize(c.Err); ok {
		line = folded(line, width)
	}
	fmt.Fprintln(c.Err, line)
}

// WantsJSON reports whether --json is among the raw arguments, since it must work when parsing the flags fails, or set.
func (c *Console) WantsJSON() bool { return c.AsJSON || slices.Contains(c.Args, "--json") }

// Verb returns the typed command; "" if the first argument is a flag.
func (c *Console) Verb() string {
	if len(c.Args) > 0 && len(c.Args[0]) > 0 && c.Args[0][0] != '-' {
		return c.Args[0]
	}
	return ""
}

// Asks returns the writer for the prompts of a program that asks the user itself; nil without a terminal.
func (c *Console) Asks() io.Writer {
	if !IsTerminal(c.In) {
		return nil
	}
	return c.Err
}
