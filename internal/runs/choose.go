package runs

import (
	"cmp"
	"slices"
	"strings"

	"thru/internal/fault"
	"thru/internal/plan"
	"thru/internal/plan/option"
)

// Only keeps the steps that match one of the words.
func Only(p *plan.Plan, words []string) error {
	if len(words) == 0 {
		return nil
	}
	var labels []string
	steps := slices.DeleteFunc(slices.Clone(p.Steps), func(s plan.Step) bool {
		if !slices.Contains(labels, s.Label) {
			labels = append(labels, s.Label)
		}
		return !slices.ContainsFunc(words, func(w string) bool { return holds(s, w) })
	})
	if len(steps) == 0 {
		return fault.Usagef("the steps are: "+strings.Join(labels[:min(len(labels), fault.MostNamed)], "; "), "--only %s leaves no step", strings.Join(words, " --only "))
	}
	p.Steps = steps
	p.EndPoints = usedEnds(*p)
	p.Targets = slices.DeleteFunc(slices.Clone(p.Targets), func(t plan.Target) bool {
		return !slices.ContainsFunc(steps, func(s plan.Step) bool { return aims(t, s) })
	})
	return nil
}

// aims reports whether a target applies to a step.
func aims(t plan.Target, s plan.Step) bool {
	for _, a := range t.Where {
		if !slices.Contains(s.Axes, a) {
			return false
		}
	}
	return t.Rung == "" || t.Rung == s.Rung
}

// holds reports whether a step's label or rung contains a word, or it has the value NAME=VALUE.
func holds(s plan.Step, word string) bool {
	word = strings.ToLower(word)
	for _, a := range s.Axes {
		if strings.ToLower(a.Name+"="+a.Value) == word {
			return true
		}
	}
	return strings.Contains(strings.ToLower(s.Label), word) || strings.Contains(strings.ToLower(s.Rung), word)
}

// usedEnds returns the end points that some step uses.
func usedEnds(p plan.Plan) []plan.EndPoint {
	used := map[string]bool{}
	for _, s := range p.Steps {
		for _, x := range s.Specs {
			used[x.From], used[x.To] = true, true
		}
	}
	return slices.DeleteFunc(slices.Clone(p.EndPoints), func(e plan.EndPoint) bool { return !used[e.Name] })
}

// flagOf returns the flag of a rung, which --link-rate accepts as its name too.
func flagOf(rung string) string {
	return map[string]string{plan.RungSwitch: "same-host", plan.RungLAN: "same-lan", plan.RungInterconnect: "across"}[rung]
}

// SetLinks sets the stated link rates: RATE for the whole plan, or the topmost rung
// of a ladder, and RUNG=RATE for one rung, each once.
func SetLinks(p *plan.Plan, stated []string) error {
	rungs := rungsOf(*p)
	said := map[string]string{}
	for _, text := range stated {
		name, rate, named := strings.Cut(text, "=")
		if !named {
			name, rate = "", text
		}
		link, err := option.LinkRate(strings.TrimSpace(rate))
		if err != nil {
			return err
		}
		if !named && len(rungs) > 0 {
			name = rungs[len(rungs)-1]
		}
		rung := name // as in the plan; "" without rungs
		if at := slices.IndexFunc(rungs, func(r string) bool { return isRung(r, name) }); at >= 0 {
			rung = rungs[at]
		} else if name != "" {
			return fault.Usagef("the rungs are: "+cmp.Or(strings.Join(rungs, ", "), "none, so state one rate: --link-rate 10G"), "--link-rate %s: there is no rung %s", text, name)
		}
		if before, twice := said[rung]; twice {
			return fault.Usagef("state one rate for each rung", "--link-rate %s and %s are of the same path", before, text)
		}
		if said[rung] = text; rung == "" {
			p.Link = link
		}
		for i := range p.Steps {
			if isRung(p.Steps[i].Rung, name) {
				p.Steps[i].Link = link
			}
		}
	}
	return nil
}

// isRung reports whether a name is that of a rung, or of its flag.
func isRung(rung, name string) bool {
	name = strings.TrimSpace(name)
	return rung != "" && (strings.EqualFold(rung, name) || flagOf(rung) == strings.ToLower(name))
}

// rungsOf returns the rungs of a plan, the lowest first.
func rungsOf(p plan.Plan) []string {
	var rungs []string
	for _, s := range p.Steps {
		if s.Rung != "" && !slices.Contains(rungs, s.Rung) {
			rungs = append(rungs, s.Rung)
		}
	}
	return rungs
}
