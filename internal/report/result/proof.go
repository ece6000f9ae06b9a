package result

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/unit"
)

// BaseName returns a file's name without its folders.
func BaseName(file string) string { return file[1+strings.LastIndexAny(file, `/\`):] }

// TimesText returns "once", "5 times".
func TimesText(n int64) string {
	if n == 1 {
		return "once"
	}
	return unit.Count(n) + " times"
}

// NumbersText names packets: ", packets 45, 99, 120, ... of a.pcapng".
func NumbersText(numbers []int64, capture string) string {
	if len(numbers) == 0 {
		return ""
	}
	s := ", packets "
	if len(numbers) == 1 {
		s = ", packet "
	}
	s += NumberList(numbers, MaxNumbers)
	if capture != "" {
		s += " of " + doc.CleanUpTo(BaseName(capture), LongestPlace)
	}
	return s
}

// NumberList formats packet numbers for use in a filter: without separators of thousands.
func NumberList(numbers []int64, most int) string {
	var all []string
	for i, n := range numbers {
		if i == most {
			all = append(all, "...")
			break
		}
		all = append(all, fmt.Sprint(n))
	}
	return strings.Join(all, ", ")
}

// YesOrNo is the unit of a Proof whose value is whether an option is on.
const YesOrNo = "yes or no"

// ValueText prints a value of a Proof with its unit.
func ValueText(v float64, in string) string {
	if !(math.Abs(v) < 1e15) {
		return doc.Digits(v)
	}
	switch in {
	case "pct":
		if v > 0 && v < 0.01 { // loss matters far below the usual precision of a percentage
			return fmt.Sprintf("%.2g%%", v)
		}
		return unit.Percent(v)
	case "bps":
		return unit.Rate(v)
	case "bytes":
		return unit.Size(int64(math.Round(v)))
	case "ns":
		return unit.Duration(int64(math.Round(v)))
	case YesOrNo:
		if v == 0 {
			return "no"
		}
		return "yes"
	case "per_s":
		return plainNumber(v) + "/s"
	case "":
		return plainNumber(v)
	}
	if v == 1 {
		in = strings.TrimSuffix(in, "s")
	}
	return plainNumber(v) + " " + doc.Clean(in)
}

// plainNumber prints counts in full, with separators of thousands, and others with three digits.
func plainNumber(v float64) string {
	if v == math.Trunc(v) || math.Abs(v) >= 1000 {
		return unit.Count(int64(math.Round(v)))
	}
	return doc.Digits(v)
}

// SourceText names the sources of a finding or an expectation that a reader can look up; it omits lines of
// the checklist and unpublished notes, which are for developers of thru.
func SourceText(source string) string {
	var parts []string
	for _, s := range strings.Split(doc.Clean(source), "; ") {
		if strings.HasPrefix(s, "methods.md") {
			_, s, _ = strings.Cut(s, ": ")
		}
		what, where, _ := strings.Cut(s, " (")
		switch {
		case s == "":
			continue
		case strings.HasPrefix(s, "checklist ") || strings.HasPrefix(s, "checklist,") || strings.HasPrefix(s, "reference"):
			continue
		case what == "measured" && where != "":
			s = measuredSource
		}
		if !slices.Contains(parts, s) {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, "; ")
}

// measuredSource is a source that is no publication.
const measuredSource = "measured with thru in a lab"

// TargetValue prints the value of a target with its unit.
func TargetValue(v float64, in string) string {
	if in == "fairness" {
		return doc.Plain(v)
	}
	return ValueText(v, in)
}

// GuardText returns a guardrail of a comparison: "RTT under load 4.20 ms, was 1.10 ms: worse".
func GuardText(g *measure.Guardrail) string {
	name := doc.Clean(g.Name)
	if g.Base == nil || g.Variant == nil {
		return name + " not checked" + doc.Spaced(doc.Bracket(doc.Clean(g.NotJudged)))
	}
	print := func(v float64) string {
		if g.Unit == "pct_per_gbps" {
			return unit.Percent(v) + " of a core"
		}
		return TargetValue(v, g.Unit)
	}
	s := name + " " + print(*g.Variant) + ", was " + print(*g.Base)
	if g.Worse {
		s += ": worse"
	}
	return s
}
