package iperf3

import (
	"fmt"
	"slices"
	"strings"

	"thru/internal/fault"
)

// flagRow is an option of a command line that getopt_long(3) would read, as iperf3's does: joined letters
// (-uR), values with and without a space (-P4), unambiguous abbreviations of long names.
type flagRow struct {
	short   byte // 0: none
	long    string
	aliases []string // further long names
	value   valueKind
	side    side
	takes   string // name of the value in the help
	help    string
	set     func(value string) error
}

// valueKind is whether an option takes a value.
type valueKind int

const (
	noValue       valueKind = iota
	needsValue              // the rest of the word, or the next word
	optionalValue           // --long=VALUE only
)

// side is the role that an option belongs to.
type side int

const (
	ofBoth side = iota
	ofClient
	ofServer
)

// String returns the option as a user types it.
func (o *flagRow) String() string {
	if o.short != 0 {
		return "-" + string(o.short)
	}
	return "--" + o.long
}

// getopt calls use for every option of args in order, and returns the operands.
func getopt(args []string, options []flagRow, use func(o *flagRow, value string) error) (operands []string, err error) {
	for len(args) > 0 && err == nil {
		word := args[0]
		args = args[1:]
		switch {
		case word == "--":
			return append(operands, args...), nil
		case strings.HasPrefix(word, "--"):
			args, err = longOption(word[2:], args, options, use)
		case len(word) > 1 && word[0] == '-':
			args, err = shortOptions(word[1:], args, options, use)
		default:
			operands = append(operands, word)
		}
	}
	return operands, err
}

// longOption reads NAME or NAME=VALUE, and the next word if a value is missing.
func longOption(word string, rest []string, options []flagRow, use func(*flagRow, string) error) ([]string, error) {
	name, value, has := strings.Cut(word, "=")
	o, err := findLong(name, options)
	switch {
	case err != nil:
		return rest, err
	case o.value == noValue && has:
		return rest, fmt.Errorf("--%s takes no value", o.long)
	case o.value == needsValue && !has:
		if len(rest) == 0 {
			return rest, fmt.Errorf("--%s needs a value", o.long)
		}
		value, rest = rest[0], rest[1:]
	}
	return rest, use(o, value)
}

// findLong returns the option of a long name, or the only one that begins with name.
func findLong(name string, options []flagRow) (*flagRow, error) {
	var found []*flagRow
	var names []string
	for i := range options {
		for _, long := range append([]string{options[i].long}, options[i].aliases...) {
			if long == name {
				return &options[i], nil
			}
			if name != "" && strings.HasPrefix(long, name) && !slices.Contains(found, &options[i]) {
				found, names = append(found, &options[i]), append(names, "--"+long)
			}
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("unknown option --%s", name)
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("--%s is not clear: %s", name, fault.Or(names))
}

// shortOptions reads joined letters; the first one with a value takes the rest.
func shortOptions(letters string, rest []string, options []flagRow, use func(*flagRow, string) error) ([]string, error) {
	for i := range len(letters) {
		at := slices.IndexFunc(options, func(o flagRow) bool { return o.short == letters[i] })
		if at < 0 {
			return rest, fmt.Errorf("unknown option -%c", letters[i])
		}
		o, value := &options[at], letters[i+1:]
		switch {
		case o.value != needsValue:
			if err := use(o, ""); err != nil {
				return rest, err
			}
			continue
		case value == "" && len(rest) == 0:
			return rest, fmt.Errorf("-%c needs a value", o.short)
		case value == "":
			value, rest = rest[0], rest[1:]
		}
		return rest, use(o, value)
	}
	return rest, nil
}
