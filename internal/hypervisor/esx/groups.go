package esx

import (
	"maps"
	"slices"
	"strings"
)

// groups finds the guest of a world group, which esxtop shows by a number and
// the guest's name. Names need not be unique on a host: then a world of the
// group decides, which `esxcli vm process list` lists too.
type groups struct {
	watched map[string][]*guest        // by name
	worlds  map[string]*guest          // watched guests by their known worlds
	running map[string]int             // running guests by name
	owners  map[string]*guest          // by group number, as found from their worlds
	numbers map[string]map[string]bool // group numbers by name
}

func newGroups() groups {
	g := groups{watched: map[string][]*guest{}, worlds: map[string]*guest{}, running: map[string]int{}}
	g.forget()
	return g
}

// forget clears what was learned from esxtop's headings.
func (s *groups) forget() {
	s.owners, s.numbers = map[string]*guest{}, map[string]map[string]bool{}
}

// watch adds a running guest.
func (s *groups) watch(g *guest) {
	s.watched[g.Name] = append(s.watched[g.Name], g)
	for _, world := range []string{g.world, g.cartel} {
		if world != "" {
			s.worlds[world] = g
		}
	}
}

// note learns from a heading: "Group Cpu", "44561:web1" or "Vcpu",
// "44561:web1:1051272:vmx".
func (s *groups) note(object, of string) {
	number, name, _ := strings.Cut(of, ":")
	switch object {
	case "Group Cpu":
		if s.numbers[name] == nil {
			s.numbers[name] = map[string]bool{}
		}
		s.numbers[name][number] = true
	case "Vcpu":
		if _, world, ok := s.world(name); ok {
			world, _, _ = strings.Cut(world, ":")
			if g := s.worlds[world]; g != nil {
				s.owners[number] = g
			}
		}
	}
}

// world splits the text after the group number of a Vcpu into the name of a
// watched guest and "1051275:vmx-vcpu-0:web1". Either may hold colons.
func (s *groups) world(text string) (name, world string, ok bool) {
	for n := range s.watched {
		rest, mine := strings.CutPrefix(text, n+":")
		number, _, whole := strings.Cut(rest, ":")
		if mine && whole && number != "" && strings.Trim(number, "0123456789") == "" {
			return n, rest, true
		}
	}
	return "", "", false
}

// mayBe reports whether a column may belong to a watched guest: later
// headings may decide.
func (s *groups) mayBe(object, of string) bool {
	_, name, _ := strings.Cut(of, ":")
	if object == "Vcpu" {
		name, _, _ = s.world(name)
	}
	return strings.HasPrefix(object, "Group ") && s.watched[name] != nil || object == "Vcpu" && name != ""
}

// owner returns the guest of a group; nil where it is not watched or not
// known.
func (s *groups) owner(number, name string) *guest {
	if g := s.owners[number]; g != nil {
		return g
	}
	if s.unclear(name) || len(s.watched[name]) == 0 {
		return nil
	}
	return s.watched[name][0]
}

// unclear reports whether several guests have a name.
func (s *groups) unclear(name string) bool { return s.running[name] > 1 || len(s.numbers[name]) > 1 }

// doubtful returns the names of watched guests whose group cannot be
// determined.
func (s *groups) doubtful() (names []string) {
	known := map[*guest]bool{}
	for _, g := range s.owners {
		known[g] = true
	}
	for _, name := range slices.Sorted(maps.Keys(s.watched)) {
		if s.unclear(name) && slices.ContainsFunc(s.watched[name], func(g *guest) bool { return !known[g] }) {
			names = append(names, name)
		}
	}
	return names
}
