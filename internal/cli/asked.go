package cli

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"thru/internal/fault"
	"thru/internal/plan"
	"thru/internal/plan/option"
)

// asked are the options of a test that a command takes, and what was given for
// them. They are flags by the table of options alone.
type asked struct {
	flags  []*askedFlag
	silent bool // no live figures
}

// askedFlag is a flag of the table, and what stands on the command line.
type askedFlag struct {
	option.Flag
	of   *option.Option
	text string // where it takes a value
	on   bool   // where it takes none
}

func (f *askedFlag) given() bool { return f.on || f.text != "" }

// asks is a command that takes options of the table.
type asks interface {
	options() *asked
	// takes are the long names of the flags, of which none are all, and what their
	// help says where they mean something of their own.
	takes() (names string, help map[string]string)
}

func (a *asked) options() *asked { return a }

// Flags that several commands take.
const (
	flowOptions = "time length omit window congestion set-mss no-delay dscp version4 version6 zerocopy lean io affinity together "
	endOptions  = "reverse one-way bind bind-dev cport data-addr "
)

// withOptions adds the flags of the table to the commands that take them, behind
// those of the command that are of other groups.
func withOptions(k *kong.Kong) error {
	mappers := kong.NewRegistry().RegisterDefaults()
	for _, command := range k.Model.Children {
		c, ok := command.Target.Addr().Interface().(asks)
		if !ok {
			continue
		}
		names, help := c.takes()
		var flags, last []*kong.Flag
		for _, o := range option.Table() {
			for _, f := range o.Flags {
				_, long := f.Spellings()
				if f.Help == "" || names != "" && !slices.Contains(strings.Fields(names), long[0]) {
					continue
				}
				a := &askedFlag{Flag: f, of: &o}
				c.options().flags = append(c.options().flags, a)
				if f.Last {
					last = append(last, a.kong(mappers, help[long[0]]))
				} else {
					flags = append(flags, a.kong(mappers, help[long[0]]))
				}
			}
		}
		at := slices.IndexFunc(command.Flags, func(own *kong.Flag) bool {
			return slices.ContainsFunc(append(flags, last...), func(f *kong.Flag) bool { return own.Group != nil && f.Group.Key == own.Group.Key })
		})
		command.Flags = append(slices.Insert(command.Flags, max(at, 0), flags...), last...)
	}
	return nil
}

// kong is the flag in kong's model, with help of the command's own where it has any.
func (f *askedFlag) kong(mappers *kong.Registry, help string) *kong.Flag {
	short, long := f.Spellings()
	target := reflect.ValueOf(&f.text).Elem()
	if f.Value != "" {
		target = reflect.ValueOf(&f.on).Elem()
	}
	help = cmp.Or(help, f.Help)
	v := &kong.Value{Name: long[0], Help: help, OrigHelp: help, Mapper: mappers.ForValue(target), Tag: &kong.Tag{}, Target: target, DefaultValue: reflect.New(target.Type()).Elem()}
	v.Flag = &kong.Flag{Value: v, Short: short, Aliases: long[1:], PlaceHolder: f.Place, Group: &kong.Group{Key: f.Group, Title: f.Group}}
	return v.Flag
}

// has tells whether an option was given.
func (a *asked) has(id string) bool {
	return slices.ContainsFunc(a.flags, func(f *askedFlag) bool { return f.of.ID == id && f.given() })
}

// text is what was given for it; "" where nothing was.
func (a *asked) text(id string) string {
	for _, f := range a.flags {
		if f.of.ID == id {
			return f.text
		}
	}
	return ""
}

// request is what was asked for, of traffic that lasts so long unless -t says otherwise.
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
		if err := f.Apply(f.of, &r, f.text); err != nil {
			return r, fault.Usagef(f.of.Hint(f.Name(), f.text), "%s %s: %w", f.Name(), f.text, because(err))
		}
	}
	a.silent, r.Interval = r.Interval == 0, cmp.Or(r.Interval, time.Second)
	return r, nil
}
