package report

import (
	"fmt"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/result"
	"thru/internal/unit"
)

// recommendedTexts returns the recommendation of a sweep: "use 1 stream, default window: 9.41 Gb/s, more than
// any smaller of 8 settings". A ladder has more detailed advice.
func recommendedTexts(d *measure.Document) (all []string) {
	if d.Command == "ladder" {
		return nil
	}
	for _, r := range d.Recommended {
		use, most := result.SetName(r.Use, ""), result.SetName(r.Best, "")
		s := "use " + use + ": " + unit.Rate(r.Bps)
		if use == most {
			s += fmt.Sprintf(", the highest rate of %d settings", r.Settings)
		} else {
			s += fmt.Sprintf("; the highest rate of %d settings, %s with %s, is hardly higher", r.Settings, unit.Rate(r.BestBps), most)
		}
		if others := r.Equal - 1; use == most && others > 0 {
			s += "; " + unit.Plural(others, "other") + " may carry as much"
		}
		if r.Runs == 1 {
			s += " (one run each; repeat for certainty: --repeat 5)"
		}
		if len(d.Recommended) > 1 {
			s = doc.Join(doc.Clean(r.Rung), doc.Clean(r.From+" -> "+r.To)) + ": " + s
		}
		all = append(all, s)
	}
	return all
}
