package compare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// judgeFact names a fact, and decides whether it hardly affects a rate, like those of an interface that the
// traffic does not use.
func judgeFact(c *measure.FactChange, used []string) {
	kind, thing := KindOfFact(c.Fact), nameIn(c.Fact)
	row := measure.NewVocabulary().Row(kind)
	c.Name = row.Title
	switch {
	case strings.HasPrefix(kind, "interfaces."):
		c.Name = interfaceName(c.Name, kind, c.Fact, thing)
		inner := innerName(c.Fact)
		part := kind == "interfaces.offloads" && strings.HasPrefix(inner, "tx-tcp") // of TSO, which is reported
		c.Minor = part || len(used) > 0 && !slices.Contains(used, thing)
	case kind == "sysctls" || kind == "settings_changed":
		c.Name = thing
	case thing != "":
		c.Name += " of " + thing
	}
	c.Minor = c.Minor || row.Is(measure.Minor)
}

// interfaceName words "MTU of eth0", "tcp-segmentation-offload of eth0", "RPS rx-0 of eth0".
func interfaceName(name, kind, key, thing string) string {
	inner := innerName(key)
	switch {
	case kind == "interfaces.name":
		return "interface " + thing
	case kind == "interfaces.offloads":
		return inner + " of " + thing
	case inner != "":
		return name + " " + inner + " of " + thing
	}
	return name + " of " + thing
}

// innerName returns the part of the thing that a key is about: "rx-0" of "interfaces[eth0].rps[rx-0]".
func innerName(key string) string {
	_, rest, _ := strings.Cut(key, "].")
	_, rest, _ = strings.Cut(rest, "[")
	name, _, _ := strings.Cut(rest, "]")
	return name
}

// unranked is the rank of facts without one: after all others.
const unranked = 40

// sortFacts sorts facts that affect a rate first, and paths by the order of the flows.
func sortFacts(all []measure.FactChange, pairs []matched) {
	facts := measure.NewVocabulary()
	first := ""
	if len(pairs) > 0 {
		first = measure.PairName(pairs[0].after.from, pairs[0].after.to)
	}
	rank := func(c measure.FactChange) int {
		kind := KindOfFact(c.Fact)
		r := 2 * cmp.Or(facts[kind].Rank, unranked)
		if c.Minor {
			r += 200
		}
		if measure.IsPart(kind, "paths") && c.Of != first {
			r++
		}
		return r
	}
	slices.SortStableFunc(all, func(a, b measure.FactChange) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Of, b.Of), cmp.Compare(a.Fact, b.Fact))
	})
}

// valueText formats a value in the unit that its key names.
func valueText(key string, value any) string {
	switch v := value.(type) {
	case bool:
		return map[bool]string{true: "on", false: "off"}[v]
	case json.Number:
		return numberText(KindOfFact(key), v)
	case string:
		return strings.Join(strings.Fields(v), " ")
	}
	return fmt.Sprint(value)
}

func numberText(kind string, number json.Number) string {
	n, err := strconv.ParseInt(number.String(), 10, 64)
	switch {
	case err != nil:
		return number.String()
	case strings.HasSuffix(kind, "mtu_bytes") || strings.HasSuffix(kind, "mtu_max_bytes") || strings.HasSuffix(kind, "overhead_bytes"):
		return number.String()
	case strings.HasSuffix(kind, "_bytes"):
		return unit.Size(n) // so that a few pages more or less are no change
	case strings.HasSuffix(kind, "_bps"):
		return unit.Rate(float64(n))
	case strings.HasSuffix(kind, "_ns"):
		return unit.Duration(n)
	case strings.HasSuffix(kind, "_hz"):
		return fmt.Sprintf("%.3g GHz", float64(n)/1e9)
	}
	return number.String()
}

// listText formats a list as one value; CPUs as ranges.
func listText(words []string) string {
	numbers := make([]int, 0, len(words))
	for _, w := range words {
		n, err := strconv.Atoi(w)
		if err != nil {
			return strings.Join(words, ", ")
		}
		numbers = append(numbers, n)
	}
	if slices.IsSorted(numbers) {
		return unit.List(numbers)
	}
	return strings.Join(words, ", ")
}
