package cli

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"thru/internal/plan"
	"thru/internal/plan/option"
)

// asked holds the test options that a command takes and their values. All of them become flags from option's
// table.
type asked struct {
	flags  []*askedFlag
	silent bool // no live figures
}

// askedFlag is a flag of the table with its value on the command line.
type askedFlag struct {
	option.Flag
	of   *option.Option
	text string // of a flag with a value
	on   bool   // of a flag without a value
}

func (f *askedFlag) given() bool { return f.on || f.text != "" }

// asks is a command that takes options of the table.
type asks interface {
	options() *asked
	// takes returns the long names of the flags, "" for all of them, and the flags whose group or help this
	// command overrides.
	takes() (names string, own map[string]option.Flag)
}

func (a *asked) options() *asked { return a }

// Flags that several commands take.
const (
	flowOptions = "link-rate time length omit window congestion set-mss no-delay dscp version4 version6 zerocopy lean io affinity together "
	farOptions  = "username rsa-public-key-path use-pkcs1-padding get-server-output "
	endOptions  = "reverse one-way bind bind-dev cport data-addr "
)

// withOptions adds the flags of the table to the commands that take them, after the command's own flags of
// other groups.
func withOptions(k *kong.Kong) error {
	mappers := kong.NewRegistry().RegisterDefaults()
	for _, command := range k.Model.Children {
		c, ok := command.Target.Addr().Interface().(asks)
		if !ok {
			continue
		}
		names, own := c.takes()
		var flags, last []*kong.Flag
		for _, o := range option.Table() {
			for _, f := range o.Flags {
				_, long := f.Spellings()
				if names != "" && !slices.Contains(strings.Fields(names), long[0]) {
					continue
				}
				a := &askedFlag{Flag: f, of: &o}
				c.options().flags = append(c.options().flags, a)
				if x, ok := own[long[0]]; ok {
					f.Help, f.Group = x.Help, cmp.Or(x.Group, f.Group)
				}
				switch flag := a.kong(mappers, f.Help, f.Group); {
				case f.Last:
					last = append(last, flag)
				case f.First:
					command.Flags = slices.Insert(command.Flags, firstOf(command.Flags, flag), flag)
				default:
					flags = append(flags, flag)
				}
			}
		}
		command.Flags = append(slices.Insert(command.Flags, firstOf(command.Flags, append(flags, last...)...), flags...), last...)
	}
	return nil
}

// firstOf returns the index of the first flag that is in the group of one of the others; 0 if there is none.
func firstOf(all []*kong.Flag, others ...*kong.Flag) int {
	return max(0, slices.IndexFunc(all, func(f *kong.Flag) bool {
		return slices.ContainsFunc(others, func(o *kong.Flag) bool { return f.Group != nil && f.Group.Key == o.Group.Key })
	}))
}

// kong returns the flag in kong's model.
func (f *askedFlag) kong(mappers *kong.Registry, help, group string) *kong.Flag {
	short, long := f.Spellings()
	target := reflect.ValueOf(&f.text).Elem()
	if f.Value != "" {
		target = reflect.ValueOf(&f.on).Elem()
	}
	mapper := mappers.ForValue(target)
	if f.Many {
		mapper = kong.MapperFunc(joinedFlag)
	}
	v := &kong.Value{Name: long[0], Help: help, OrigHelp: help, Mapper: mapper, Tag: &kong.Tag{}, Target: target, DefaultValue: reflect.New(target.Type()).Elem()}
	v.Flag = &kong.Flag{Value: v, Short: short, Aliases: long[1:], PlaceHolder: f.Place, Group: &kong.Group{Key: group, Title: group}}
	return v.Flag
}

// has tells whether an option was given.
func (a *asked) has(id string) bool {
	return slices.ContainsFunc(a.flags, func(f *askedFlag) bool { return f.of.ID == id && f.given() })
}

// take returns the value of an option and clears it, because the command reads it itself; "" if it was not
// given.
func (a *asked) take(id string) (text string) {
	for _, f := range a.flags {
		if f.of.ID == id {
			text, f.text = f.text, ""
		}
	}
	return text
}

// request returns the request that the flags describe; traffic lasts for usual unless -t sets a time.
func (a *asked) request(usual time.Duration) (plan.Request, error) {
	r := plan.Request{Duration: usual, Interval: time.Second}
	var given []option.Given
	for _, f := range a.flags {
		if f.given() {
			given = append(given, option.Given{ID: f.of.ID, Value: f.Value})
		}
	}
	if err := option.Clash(given); err != nil {
		return r, err
	}
	for _, f := range a.flags {
		if !f.given() {
			continue
		}
		if err := f.Read(f.of, &r, f.text); err != nil {
			return r, err
		}
	}
	a.silent, r.Interval = r.Interval == 0, cmp.Or(r.Interval, time.Second)
	return r, nil
}
