// Package option is the table of all options of a test. Each row names the flags of thru's and of iperf3's
// command line, the key in a plan file, the allowed values, and how the option changes a plan.Request.
//
// Errors name options by id (plan.Refused: "{window}", "{io=lean}"). Each front end replaces the ids with its
// own spelling (Spelled): thru's command line with -w, `thru iperf3` with iperf3's flag, a plan file with the
// key and its position.
package option

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"thru/internal/fault"
	"thru/internal/plan"
)

// Option is a row of the table.
type Option struct {
	ID     string // as in plan.Refused; the key of a plan file, if there is one
	Key    Section
	Either string // options with the same word exclude each other
	Value
	Flags []Flag
	IPerf []Flag // of iperf3's command line
}

// Section is the section of a plan file that contains an option's key.
type Section int

// Sections of a plan file.
const (
	NoKey Section = iota
	OfTraffic
	OfPlan // at the top of the file
)

// Value describes the values of an option.
type Value struct {
	Kind  Kind
	Words []string // all allowed words
	Range string   // limits, for hints: "1 to 128"
	Like  string   // examples, for hints
	Set   func(r *plan.Request, text string) error
}

// Kind distinguishes values by their YAML type in a plan file.
type Kind int

// Kinds of values.
const (
	Text Kind = iota
	Word
	Whole
	Truth
)

// Flag is a spelling of an option on a command line.
type Flag struct {
	Names string // separated by spaces, the usual one first: "-P --streams --parallel"
	Value string // fixed value of the flag; "" if the flag takes a value
	Place string // name of that value in the help
	Group string // of the help
	Help  string
	Set   func(r *plan.Request, text string) error // if this command line parses the value differently
	None  bool                                     // 0 means not given
	Serve bool                                     // of iperf3: the server accepts it, too
	Last  bool                                     // in its group of the help, after a command's own flags
	First bool                                     // in its group of the help, before a command's own flags
	Many  bool                                     // repeated flags make a comma-separated list
}

// Name returns the usual spelling: "-P".
func (f Flag) Name() string { return strings.Fields(f.Names)[0] }

// Spellings returns the letter, 0 if there is none, and the long names without dashes.
func (f Flag) Spellings() (short rune, long []string) {
	for _, name := range strings.Fields(f.Names) {
		if name, is := strings.CutPrefix(name, "--"); is {
			long = append(long, name)
		} else {
			short = rune(name[1])
		}
	}
	return short, long
}

// Apply changes a request by the flag and its value.
func (f Flag) Apply(o *Option, r *plan.Request, text string) error {
	if f.None && text == "0" {
		return nil
	}
	set := o.Set
	if f.Set != nil {
		set = f.Set
	}
	return set(r, cmp.Or(f.Value, text))
}

// Read is Apply with an error for the user that names the allowed values.
func (f Flag) Read(o *Option, r *plan.Request, text string) error {
	err := f.Apply(o, r, text)
	if err == nil {
		return nil
	}
	return Misread(f.Name(), text, cmp.Or(fault.Hint(err), o.Hint(f.Name(), text)), err)
}

// Misread returns the error of an invalid flag value, without repeating the flag and the value.
func Misread(flag, text, hint string, err error) error {
	if cause := errors.Unwrap(err); cause != nil {
		err = cause
	}
	return fault.Usagef(hint, "%s %s: %w", flag, text, err)
}

// LinkRate parses the nominal rate of one path, as in --link-rate.
func LinkRate(text string) (plan.Link, error) {
	var r plan.Request
	o := Find("link_rate")
	err := o.Flags[0].Read(o, &r, text)
	return r.Link, err
}

// Find returns the option with that id; nil: there is none.
func Find(id string) *Option {
	all := Table()
	if i := slices.IndexFunc(all, func(o Option) bool { return o.ID == id }); i >= 0 {
		return &all[i]
	}
	return nil
}

// Keys returns the ids of the options in a section of the plan file, in order.
func Keys(of Section) (keys []string) {
	for _, o := range Table() {
		if o.Key == of {
			keys = append(keys, o.ID)
		}
	}
	return keys
}

// Takes describes the allowed values: "1 to 128", "tcp or udp".
func (v Value) Takes() string {
	switch {
	case v.Words != nil && v.Kind != Truth:
		return fault.Or(v.Words)
	case v.Kind == Truth:
		return "true or false"
	case v.Range == "":
		return "a value such as " + v.Like
	case v.Like == "":
		return v.Range
	}
	return v.Range + ", such as " + v.Like
}

// Hint returns the hint for an invalid value: what the option takes.
func (v Value) Hint(name, text string) string {
	hint := name + " takes " + v.Takes()
	if near := fault.Nearest(strings.ToLower(text), v.Words); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return hint
}

// Given is an option that the user gave: with the value that the flag stands for, or "" for any value.
type Given struct{ ID, Value string }

// Clash refuses options that exclude each other whatever their values: two flags of one option, or two
// options with the same Either.
func Clash(given []Given) error {
	for i, b := range given {
		for _, a := range given[:i] {
			x, y := Find(a.ID), Find(b.ID)
			if x == nil || y == nil || a == b || x.ID != y.ID && (x.Either == "" || x.Either != y.Either) {
				continue
			}
			var all []string
			for _, o := range Table() {
				switch {
				case o.ID == x.ID && x.ID == y.ID:
					for _, f := range o.Flags {
						all = append(all, Given{o.ID, f.Value}.String())
					}
				case x.ID != y.ID && o.Either == x.Either:
					all = append(all, Given{o.ID, ""}.String())
				}
			}
			return plan.Refuse("take one of "+fault.And(all), fmt.Sprintf("%s and %s contradict each other", a, b))
		}
	}
	return nil
}

// String returns the name as in plan.Refused.
func (g Given) String() string {
	if g.Value == "" {
		return "{" + g.ID + "}"
	}
	return "{" + g.ID + "=" + g.Value + "}"
}

// AsKey spells an option as in a plan file: "window", "io: lean".
func AsKey(id, value string) string {
	if o := Find(id); o == nil || o.Key == NoKey {
		id = strings.ReplaceAll(id, "_", " ")
	}
	if value == "" {
		return id
	}
	return id + ": " + value
}

// AsFlag spells an option as on thru's command line: "-w", "--lean", "-t 10".
func AsFlag(id, value string) string {
	if o := Find(id); o != nil {
		if name := inFlags(o.Flags, value); name != "" {
			return name
		}
	}
	return AsKey(id, value)
}

// AsIPerf spells an option as on iperf3's command line, or else as on thru's.
func AsIPerf(id, value string) string {
	if o := Find(id); o != nil {
		if name := inFlags(o.IPerf, value); name != "" {
			return name
		}
	}
	return AsFlag(id, value)
}

// inFlags returns the flag that stands for a value, or that takes it; for value "" the flag that switches the
// option on.
func inFlags(flags []Flag, value string) string {
	for _, f := range flags {
		switch {
		case f.Value == value, value == "" && f.Value == "true":
			return f.Name()
		case f.Value == "":
			return f.Name() + " " + value
		}
	}
	return ""
}

// Spelled returns an error with its options in the spelling of as.
func Spelled(err error, as func(id, value string) string) error {
	var r *plan.Refused
	if !errors.As(err, &r) {
		return err
	}
	text, hint := r.Spell(as)
	if c := r.Clash(as); c != nil {
		return &fault.Error{Code: fault.Usage, Hint: hint, Err: c} // a front end may drop some of the options
	}
	return fault.Usagef(hint, "%s", text)
}
