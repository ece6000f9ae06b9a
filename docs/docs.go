// Package docs has the pages of this folder in the program, for `thru help`.
package docs

import (
	"cmp"
	"embed"
	"slices"
	"strings"
)

//go:embed *.md
var files embed.FS

// Index is the topic of the page that lists the others by question.
const Index = "README"

// Page is the Markdown of a topic; "" where there is no such page.
func Page(topic string) string {
	text, err := files.ReadFile(topic + ".md")
	if err != nil {
		return ""
	}
	return string(text)
}

// Topics are the names of all pages but the index.
func Topics() (all []string) {
	for _, line := range strings.Split(Page(Index), "\n") {
		if _, target, ok := strings.Cut(line, "]("); ok {
			all = append(all, strings.TrimSuffix(target, ".md)"))
		}
	}
	return all
}

// Section is what the pages say of a cause, gate or knob: each section whose heading begins with its id.
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

// IDs are the causes, gates and knobs that have a section.
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

// Mentions are the topics whose pages have a word, most often first; at most so many.
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
