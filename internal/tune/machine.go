package tune

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"thru/internal/cause/knob"
	"thru/internal/measure"
)

// machine is a Machine with one row for each knob.
type machine struct {
	rows []row
	link func(iface string) error // nil: the interface exists; errNone (wrapped): it does not
}

// row reads and sets one knob, in the network namespace of the calling
// thread.
type row struct {
	knob   string
	scope  knob.Scope
	form   func(value string) (string, error) // returns the canonical form of a value, or an error for an impossible one
	read   func(iface string) (string, error) // returns the value in that form
	set    func(iface, before, value string) error
	states func(iface, value string) (possible, refused string)
	names  func(interfaces []string) []string // where the knob exists, if not at each interface
	link   bool                               // the driver may take the link down for a moment
}

// anyLink accepts any interface name.
func anyLink(string) error { return nil }

// Knobs implements Machine.
func (m *machine) Knobs(interfaces []string) []measure.KnobState {
	var list []measure.KnobState
	interfaces = m.there(interfaces)
	for _, name := range append([]string{""}, interfaces...) { // "" is the host
		for _, r := range m.rows {
			if r.names == nil && (r.scope == knob.OfHost) == (name == "") {
				list = append(list, r.state(name)...)
			}
		}
	}
	for _, r := range m.rows {
		if r.names == nil {
			continue
		}
		for _, name := range r.names(interfaces) {
			list = append(list, r.state(name)...)
		}
	}
	return list
}

// state returns the state of a knob, or nothing where it does not exist.
func (r row) state(iface string) []measure.KnobState {
	value, err := r.read(iface)
	if err != nil {
		return nil
	}
	s := measure.KnobState{Knob: r.knob, Interface: iface, Value: value}
	s.Possible, s.Refused = r.states(iface, value)
	return []measure.KnobState{s}
}

// find returns the row of a knob.
func (m *machine) find(id, iface string) (row, error) {
	i := slices.IndexFunc(m.rows, func(r row) bool { return r.knob == id })
	if i < 0 {
		return row{}, fmt.Errorf("tune: knob %q: %w", id, ErrUnknown)
	}
	if r := m.rows[i]; (r.scope == knob.OfHost) != (iface == "") {
		return row{}, fmt.Errorf("tune: knob %q is of %s: %w", id, map[bool]string{true: "the host, not of an interface", false: "an interface, but none is given"}[iface != ""], ErrUnknown)
	}
	if m.rows[i].names == nil && iface != "" {
		if err := m.called(iface); err != nil && !errors.Is(err, errNone) { // callers report an interface that is gone
			return row{}, fmt.Errorf("tune: knob %q: %w: %w", id, ErrUnknown, err)
		}
	}
	return m.rows[i], nil
}

// called refuses any text but the primary name of an interface: two names of
// one interface would be two knobs that undo each other. The kernel accepts a
// name followed by NUL or, for a driver, a colon (an alias), and alternative
// names.
func (m *machine) called(iface string) error {
	if strings.ContainsFunc(iface, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) || strings.ContainsRune(":/", c) }) {
		return fmt.Errorf("%.80q is not the name of an interface", iface)
	}
	return m.link(iface)
}

// there returns the interfaces of a list that exist, each once.
func (m *machine) there(list []string) (all []string) {
	for _, iface := range list {
		if !slices.Contains(all, iface) && m.called(iface) == nil {
			all = append(all, iface)
		}
	}
	return all
}

// Gone reports whether the interface or route of a knob no longer exists.
func (m *machine) Gone(id, iface string) bool {
	r, err := m.find(id, iface)
	switch {
	case err != nil || r.scope == knob.OfHost:
		return false
	case r.names != nil: // the knob of a route
		_, err = r.read(iface)
	default:
		err = m.link(iface)
	}
	return errors.Is(err, errNone)
}

// Form returns a value in the form that Read returns, as far as that is
// possible without asking the host; an error for a text that cannot be a
// value of the knob.
func (m *machine) Form(id, iface, value string) (string, error) {
	r, err := m.find(id, iface)
	if err != nil {
		return "", err
	}
	if value, err = r.form(value); err != nil {
		return "", fmt.Errorf("tune: setting %s: %w", labelled(id, iface), err)
	}
	return value, nil
}

// CheckValue returns why a text cannot be a value of a knob on any host of
// this system; nil where it can, or where only the host knows.
func CheckValue(id, value string) error {
	m, ok := New().(*machine)
	if !ok {
		return nil
	}
	i := slices.IndexFunc(m.rows, func(r row) bool { return r.knob == id })
	if i < 0 {
		return nil
	}
	_, err := m.rows[i].form(value)
	return err
}

// Read implements Machine.
func (m *machine) Read(id, iface string) (string, error) {
	r, err := m.find(id, iface)
	if err != nil {
		return "", err
	}
	value, err := r.read(iface)
	if absent(err) {
		err = fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	if err != nil {
		return "", fmt.Errorf("tune: reading %s: %w", labelled(id, iface), err)
	}
	return value, nil
}

// Set implements Machine. A value of many elements may name some of them: the
// others stay. Set does not touch what has its value already, and after an
// error it restores what it has set.
func (m *machine) Set(id, iface, value string) error {
	r, err := m.find(id, iface)
	if err != nil {
		return err
	}
	if value, err = m.Form(id, iface, value); err != nil {
		return err
	}
	before, err := m.Read(id, iface)
	if err != nil {
		return err
	}
	if inForce(id, value, before) {
		return nil
	}
	if err = r.change(iface, before, value); err == nil {
		return nil
	}
	err = fmt.Errorf("tune: setting %s to %.200q: %w", labelled(id, iface), value, err)
	if now, lost := r.read(iface); lost == nil && now != before && !errors.Is(err, errInactive) {
		if back := r.change(iface, now, before); back != nil {
			err = fmt.Errorf("%w; and setting it back to %.200q: %w", err, before, back)
		}
	}
	return err
}

// change sets a value and verifies it.
func (r row) change(iface, before, value string) error {
	if err := r.set(iface, before, value); err != nil {
		return err
	}
	after, err := r.read(iface)
	if err == nil && !inForce(r.knob, value, after) {
		err = fmt.Errorf("the host accepted it but reports %.200q", after)
	}
	return err
}

// errInactive means that a setting was accepted and stays, but that the
// kernel keeps it inactive, since a prerequisite is off.
var errInactive = errors.New("the kernel accepted it but keeps it off, because a feature that it needs is off")

// labelled names a knob in an error.
func labelled(id, iface string) string {
	if iface == "" {
		return id
	}
	return id + " of " + iface
}
