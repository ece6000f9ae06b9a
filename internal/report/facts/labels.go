package facts

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"thru/internal/doc"
)

// fewLabels is how many labels of a host a short list shows.
const fewLabels = 4

// Labels returns "role=web site=east", sorted by name; short limits it to the first few.
func Labels(labels map[string]string, short bool) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		all = append(all, doc.Clean(key+"="+labels[key]))
	}
	if left := len(all) - fewLabels; short && left > 1 {
		return strings.Join(all[:fewLabels], " ") + fmt.Sprintf(" and %d more", left)
	}
	return strings.Join(all, " ")
}
