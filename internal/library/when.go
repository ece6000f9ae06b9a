package library

import (
	"strconv"
	"strings"
	"time"

	"thru/internal/fault"
	"thru/internal/unit"
)

// span is the time from Since until before Until; a zero value is no bound.
type span struct{ Since, Until time.Time }

// whenHint lists the forms of times.
const whenHint = "give a time such as 7d or 12h (ago), 2026-11, 2026-11-20, 2026-11-20T15:04, today, yesterday, this-week, last-week, this-month, last-month, or two of them with .. between"

// Ago is a time before now: 30m, 12h, 7d, 4w.
var Ago = unit.Pattern(`^([0-9]{1,6})(m|min|h|d|w)$`)

// ReadSpan parses a span of time: a day or week by its name, or SINCE..UNTIL, of
// which either may be left out. Days begin at local midnight; weeks on Monday (ISO 8601).
func ReadSpan(word string, now time.Time) (span, error) {
	if s, ok := namedSpan(strings.ReplaceAll(word, " ", "-"), now); ok {
		return s, nil
	}
	from, to, both := strings.Cut(word, "..")
	var s span
	var err error
	if from != "" {
		if s.Since, _, err = ReadWhen(from, now); err != nil {
			return s, err
		}
	}
	switch {
	case both && to != "":
		_, s.Until, err = ReadWhen(to, now)
	case !both:
		_, s.Until, err = ReadWhen(from, now)
		if Ago().MatchString(from) { // a span up to now
			s.Until = time.Time{}
		}
	}
	if err == nil && !s.Until.IsZero() && !s.Since.Before(s.Until) {
		err = fault.Usagef("give the earlier time first", "%s: the period ends before it begins", fault.Named(word))
	}
	return s, err
}

// namedSpan returns a span by its name.
func namedSpan(word string, now time.Time) (span, bool) {
	day := midnight(now)
	week := day.AddDate(0, 0, -(int(day.Weekday())+6)%7)
	month := day.AddDate(0, 0, 1-day.Day())
	switch word {
	case "today":
		return span{day, day.AddDate(0, 0, 1)}, true
	case "yesterday":
		return span{day.AddDate(0, 0, -1), day}, true
	case "this-week":
		return span{week, week.AddDate(0, 0, 7)}, true
	case "last-week":
		return span{week.AddDate(0, 0, -7), week}, true
	case "this-month":
		return span{month, month.AddDate(0, 1, 0)}, true
	case "last-month":
		return span{month.AddDate(0, -1, 0), month}, true
	}
	return span{}, false
}

func midnight(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, t.Location())
}

// ReadWhen parses one time, or a day, which has a begin and an end.
func ReadWhen(word string, now time.Time) (begin, end time.Time, err error) {
	if s, ok := namedSpan(word, now); ok {
		return s.Since, s.Until, nil
	}
	if m := Ago().FindStringSubmatch(word); m != nil {
		n, _ := strconv.Atoi(m[1])
		switch m[2] {
		case "d":
			begin = now.AddDate(0, 0, -n)
		case "w":
			begin = now.AddDate(0, 0, -7*n)
		case "h":
			begin = now.Add(-time.Duration(n) * time.Hour)
		default:
			begin = now.Add(-time.Duration(n) * time.Minute)
		}
		return begin, begin, nil
	}
	for _, f := range []struct {
		layout       string
		months, days int
		long         time.Duration
	}{{"2006-01", 1, 0, 0}, {"2006-01-02", 0, 1, 0}, {"2006-01-02T15:04", 0, 0, time.Minute}, {"2006-01-02 15:04", 0, 0, time.Minute}, {"2006-01-02T15:04:05", 0, 0, time.Second}, {time.RFC3339, 0, 0, time.Second}} {
		if t, err := time.ParseInLocation(f.layout, word, now.Location()); err == nil {
			return t, t.AddDate(0, f.months, f.days).Add(f.long), nil
		}
	}
	return begin, end, fault.Usagef(whenHint, "%q is not a time", fault.Short(word))
}

// isSpan reports whether a word means a span of time.
func isSpan(word string) bool {
	_, err := ReadSpan(word, time.Now())
	return err == nil || strings.Contains(word, "..")
}
