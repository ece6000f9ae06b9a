// Package docs embeds the pages of this folder, for `thru help`.
package docs

import (
	"cmp"
	"embed"
	"slices"
	"strings"
)

//go:embed *.md
var files embed.FS

// Index is the topic of the page that lists the others.
const Index = "README"

// Page returns the Markdown of a topic; "" if there is no such page.
func Page(topic string) string {
	text, err := files.ReadFile(topic + ".md")
	if err != nil {
		return ""
	}
	return string(text)
}

// Topics returns the names of all pages except the index.
func Topics() (all []string) {
	for _, line := range strings.Split(Page(Index), "\n") {
		if _, target, ok := strings.Cut(line, "]("); ok {
			all = append(all, strings.TrimSuffix(target, ".md)"))
		}
	}
	return all
}

// Section returns the sections about a cause, gate or knob: those whose heading begins with its id.
func Section(id string) (all []string) {
	for _, topic := range Topics() {
		_, rest, found := strings.Cut(Page(topic), "\n### `"+id+"`: ")
		if !found {
			continue
		}
		body, _, _ := strings.Cut(rest, "\n### ")
		body, _, _ = strings.Cut(body, "\n## ")
		all = append(all, "# "+topic+": "+body)
	}
	return all
}

// IDs returns the causes, gates and knobs that have a section.
func IDs() (all []string) {
	for _, topic := range Topics() {
		for line := range strings.Lines(Page(topic)) {
			if rest, found := strings.CutPrefix(line, "### `"); found {
				id, _, _ := strings.Cut(rest, "`")
				all = append(all, id)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Mentions returns at most most topics whose pages contain a word, those with the most occurrences first.
func Mentions(word string, most int) []string {
	count := map[string]int{}
	var all []string
	for _, topic := range Topics() {
		if n := strings.Count(strings.ToLower(Page(topic)), strings.ToLower(word)); n > 0 {
			count[topic] = n
			all = append(all, topic)
		}
	}
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(count[b], count[a]) })
	return all[:min(len(all), most)]
}
