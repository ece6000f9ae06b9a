// Package option is the one table of the options of a test. A row says by which
// flags the command line and iperf3's have the option, by which key a plan file
// has it, which values it takes, and what they change of a plan.Request.
//
// An error about options names them by id (plan.Refused: "{window}", "{io=lean}"). The command line says -w, `thru iperf3` iperf3's
// flag, a plan file the key and its position (Spelled), so that no face reads the words of another.
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
	ID     string // as plan.Refused names it; the key of a plan file, where it has one
	Key    Section
	Either string // of the options with the same word only one is taken
	Value
	Flags []Flag
	IPerf []Flag // of iperf3's command line
}

// Section is where a plan file has the key of an option.
type Section int

// Sections of a plan file.
const (
	NoKey Section = iota
	OfTraffic
	OfPlan // at the top of the file
)

// Value is what an option takes.
type Value struct {
	Kind  Kind
	Words []string // all that there are
	Range string   // bounds, for hints: "1 to 128"
	Like  string   // examples, for hints
	Set   func(r *plan.Request, text string) error
}

// Kind tells values apart that are written differently in a plan file.
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
	Names string // with spaces between, the usual one first: "-P --streams --parallel"
	Value string // that the flag stands for; "" where a value follows it
	Place string // what that value is called in the help
	Group string // of the help
	Help  string
	Set   func(r *plan.Request, text string) error // where a face reads the value otherwise
	None  bool                                     // 0 is as if it were not given
	Serve bool                                     // of iperf3: the server takes it too
	Last  bool                                     // in its group of the help, behind a command's own flags
	First bool                                     // in its group of the help, before a command's own flags
	Many  bool                                     // given more than once it is a list with commas
}

// Name is the usual spelling: "-P".
func (f Flag) Name() string { return strings.Fields(f.Names)[0] }

// Spellings are the letter, 0 where there is none, and the long names without dashes.
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

// Apply changes a request by the flag and the value that follows it.
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

// Read is Apply for a person, who is told of a mistake what the flag takes.
func (f Flag) Read(o *Option, r *plan.Request, text string) error {
	err := f.Apply(o, r, text)
	if err == nil {
		return nil
	}
	return Misread(f.Name(), text, cmp.Or(fault.Hint(err), o.Hint(f.Name(), text)), err)
}

// Misread is the error of a flag's value that is none, without the text that is said anyway.
func Misread(flag, text, hint string, err error) error {
	if cause := errors.Unwrap(err); cause != nil {
		err = cause
	}
	return fault.Usagef(hint, "%s %s: %w", flag, text, err)
}

// LinkRate reads the nominal rate of one path, as --link-rate has it.
func LinkRate(text string) (plan.Link, error) {
	var r plan.Request
	o := Find("link_rate")
	err := o.Flags[0].Read(o, &r, text)
	return r.Link, err
}

// Find is the option of that id; nil: there is none.
func Find(id string) *Option {
	all := Table()
	if i := slices.IndexFunc(all, func(o Option) bool { return o.ID == id }); i >= 0 {
		return &all[i]
	}
	return nil
}

// Keys are the ids of the options that a plan file has in a section, in their order.
func Keys(of Section) (keys []string) {
	for _, o := range Table() {
		if o.Key == of {
			keys = append(keys, o.ID)
		}
	}
	return keys
}

// Takes says which values there are: "1 to 128", "tcp or udp".
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

// Hint says what an option takes, by its name, to who has given it another value.
func (v Value) Hint(name, text string) string {
	hint := name + " takes " + v.Takes()
	if near := fault.Nearest(strings.ToLower(text), v.Words); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return hint
}

// Given is an option of which a person has said something: the value that a flag
// stands for, or "" where any may follow.
type Given struct{ ID, Value string }

// Clash refuses what does not go together whatever the values are: two flags of
// one option, and two options of which one is taken.
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

// String is how plan.Refused names it.
func (g Given) String() string {
	if g.Value == "" {
		return "{" + g.ID + "}"
	}
	return "{" + g.ID + "=" + g.Value + "}"
}

// AsKey spells an option as a plan file has it: "window", "io: lean".
func AsKey(id, value string) string {
	if o := Find(id); o == nil || o.Key == NoKey {
		id = strings.ReplaceAll(id, "_", " ")
	}
	if value == "" {
		return id
	}
	return id + ": " + value
}

// AsFlag spells an option as thru's command line has it: "-w", "--lean", "-t 10".
func AsFlag(id, value string) string {
	if o := Find(id); o != nil {
		if name := inFlags(o.Flags, value); name != "" {
			return name
		}
	}
	return AsKey(id, value)
}

// AsIPerf spells an option as iperf3's command line has it, else as thru's.
func AsIPerf(id, value string) string {
	if o := Find(id); o != nil {
		if name := inFlags(o.IPerf, value); name != "" {
			return name
		}
	}
	return AsFlag(id, value)
}

// inFlags is the flag that stands for a value, or that takes it; of an option as
// such the one that switches it on.
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

// Spelled is an error with the options that it is about as a face spells them.
func Spelled(err error, as func(id, value string) string) error {
	var r *plan.Refused
	if !errors.As(err, &r) {
		return err
	}
	text, hint := r.Spell(as)
	if c := r.Clash(as); c != nil {
		return &fault.Error{Code: fault.Usage, Hint: hint, Err: c} // of which a face may leave some
	}
	return fault.Usagef(hint, "%s", text)
}
