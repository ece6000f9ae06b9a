package planfile

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"thru/internal/fault"
	"thru/internal/unit"
	"thru/internal/watch/record"
)

// Watch is the key `watch`: how `thru watch` measures the pairs of the plan, and whom it tells.
type Watch struct {
	Probes      time.Duration // between two packets of a pair; 0: none
	TCP         int           // turns a day; Auto: what the budget allows
	Time        time.Duration // that a TCP turn measures
	Load        float64       // other traffic, relative to the link, above which a TCP turn is deferred; 0: no bar
	Budget      int64         // bytes a day of each host and segment; 0: the default
	Hours       []DayHours
	Segments    []Segment
	Objectives  []record.Goal // without pair
	Maintenance []record.MaintenanceWindow
	Alarms      []Sink
}

// Auto leaves the turns a day to the budget.
const Auto = -1

// DefaultLoad is the Load of a watch without one of its own.
const DefaultLoad = 0.3

// DayHours is a part of the day, in local time, since midnight. It may end on the next day.
type DayHours struct{ From, To time.Duration }

// Segment is a declared part of the network that several pairs share, such as an uplink: those between two groups of hosts.
type Segment struct {
	Name         string
	between, and selector
}

// Crossed reports whether traffic between hosts with these labels crosses the segment.
func (s Segment) Crossed(a, b map[string]string) bool {
	return s.between.fits(a) && s.and.fits(b) || s.between.fits(b) && s.and.fits(a)
}

// Sink is whom alarms are sent to. Kind is one of the keys of an entry of `alarms`, To its value.
type Sink struct {
	Kind, To string
	Args     []string // of exec
	Secret   string   // file with the key that signs a webhook
}

// Kinds of a Sink.
const (
	SinkAlertmanager = "alertmanager"
	SinkWebhook      = "webhook"
	SinkExec         = "exec"
	SinkMail         = "mail"
	SinkJournal      = "journal"
)

// Limits of a watch.
const (
	mostSegments   = 1000
	mostObjectives = 100
	mostWindows    = 1000
	mostSinks      = 20
	mostTurns      = 1440 // a day
)

// Watch returns the key `watch` of the plan, or its defaults.
func (f *File) Watch() Watch { return f.watch }

func (f *File) readWatch() error {
	w := &f.watch
	*w = Watch{Probes: time.Second, TCP: Auto, Time: 3 * time.Second, Load: DefaultLoad}
	n, ok := f.at("watch")
	if !ok {
		return nil
	}
	return f.fields(n, "watch", "", 0, []field{
		{"probes", scalar(f, &w.Probes, "probes", "probes takes a time from 100ms to 1h, such as 1s, or none", map[string]time.Duration{"none": 0}, period)},
		{"tcp", scalar(f, &w.TCP, "tcp", fmt.Sprintf("tcp takes the number of turns a day, at most %d, or auto, or none", mostTurns), map[string]int{"auto": Auto, "none": 0}, whole(0, mostTurns))},
		{"time", scalar(f, &w.Time, "time", "time takes a time from 100ms to 1h, such as 3s, or none", map[string]time.Duration{"none": 0}, period)},
		{"load", scalar(f, &w.Load, "load", "load takes a share of the link such as 30%, or none", map[string]float64{"none": 0}, func(text string) (float64, error) {
			pct, err := unit.ParsePercent(text)
			return pct / 100, bounded(err, pct > 0 && pct <= 100)
		})},
		{"budget", scalar(f, &w.Budget, "budget", "budget takes the bytes of a day, such as 100G", nil, func(text string) (int64, error) {
			b, err := unit.ParseSize(text)
			return b, bounded(err, b > 0)
		})},
		{"hours", list(f, &w.Hours, "hours", `["22:00-06:00"]`, 24, f.hours)},
		{"segments", list(f, &w.Segments, "segments", "[{name: wan, between: {site: east}, and: {site: west}}]", mostSegments, f.readSegment)},
		{"objectives", list(f, &w.Objectives, "objectives", `["goodput >= 9G, 99% of days"]`, mostObjectives, f.objective)},
		{"maintenance", list(f, &w.Maintenance, "maintenance", `[{begin: "2027-01-09 22:00", end: "2027-01-10 02:00"}]`, mostWindows, f.maintenance)},
		{"alarms", list(f, &w.Alarms, "alarms", "[{alertmanager: http://10.0.0.9:9093}]", mostSinks, f.sink)},
	})
}

// list returns a function that reads a list into place.
func list[T any](f *File, place *[]T, what, example string, most int, read func(*node) (T, error)) func(*node) error {
	return into(place, func(n *node) ([]T, error) { return each(f.source, n, what, example, most, read) })
}

// scalar returns a function that reads a value, or a word that stands for one, into place.
func scalar[T any](f *File, place *T, what, hint string, words map[string]T, parse func(string) (T, error)) func(*node) error {
	return into(place, func(n *node) (v T, err error) {
		if v, is := words[n.text]; is && n.kind == textNode {
			return v, nil
		}
		if v, err = parse(n.text); err != nil {
			err = f.errorf(n, hint, "%s is %s", what, n.value())
		}
		return v, err
	})
}

var errRange = errors.New("it is out of range")

// bounded returns an error for a value that is out of range.
func bounded(err error, within bool) error {
	if err == nil && !within {
		return errRange
	}
	return err
}

// period reads a time.
func period(text string) (time.Duration, error) {
	d, err := unit.ParseDuration(text)
	return d, bounded(err, d >= 100*time.Millisecond && d <= time.Hour)
}

// whole returns a function that reads a number.
func whole(least, most int) func(string) (int, error) {
	return func(text string) (int, error) {
		x, err := strconv.Atoi(text)
		return x, bounded(err, x >= least && x <= most)
	}
}

// hours reads "22:00-06:00".
func (f *File) hours(n *node) (h DayHours, err error) {
	from, to, ok := strings.Cut(n.text, "-")
	if ok && n.kind == textNode {
		if h.From, err = clockTime(from); err == nil {
			h.To, err = clockTime(to)
		}
	}
	if n.kind != textNode || !ok || err != nil || h.From == h.To || h.From == 24*time.Hour {
		return h, f.errorf(n, `hours takes parts of the day in quotes, such as "22:00-06:00"`, "hours has %s", n.value())
	}
	return h, nil
}

// clockTime reads a time of the day.
func clockTime(text string) (time.Duration, error) {
	if text = strings.TrimSpace(text); text == "24:00" {
		return 24 * time.Hour, nil
	}
	t, err := time.Parse("15:04", text)
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, err
}

func (f *File) readSegment(x *node) (s Segment, err error) {
	const example = "such as {name: wan, between: {site: east}, and: {site: west}}"
	return s, f.fields(x, "a segment", example, 3, []field{
		{"name", into(&s.Name, func(n *node) (string, error) { return f.titleOf(n, "segment", example) })},
		{"between", into(&s.between, func(n *node) (selector, error) { return f.selectorOf(n, "between") })},
		{"and", into(&s.and, func(n *node) (selector, error) { return f.selectorOf(n, "and") })},
	})
}

// measurable is a metric of an objective, and how its limit is read.
type measurable struct {
	name    string
	metric  record.Metric
	atLeast bool
	read    func(string) (float64, error)
}

func measurables() []measurable {
	rate := func(t string) (float64, error) { n, err := unit.ParseRate(t); return float64(n), err }
	delay := func(t string) (float64, error) { d, err := unit.ParseDuration(t); return float64(d), err }
	share := func(t string) (float64, error) { p, err := unit.ParsePercent(t); return p / 100, err }
	return []measurable{
		{"goodput", record.Goodput, true, rate},
		{"rtt", record.RTTMedian, false, delay}, {"rtt_p99", record.RTT99, false, delay}, {"rtt_loaded", record.RTTLoaded, false, delay},
		{"delay", record.Delay, false, delay}, {"loss", record.LossRatio, false, share},
		{"mtu", record.MTU, true, func(t string) (float64, error) { n, err := strconv.Atoi(t); return float64(n), err }},
		{"availability", record.Availability, true, share},
	}
}

// objective reads "goodput >= 9G, 99% of days", or "availability >= 99.9%".
func (f *File) objective(n *node) (g record.Goal, err error) {
	const hint = `such as "goodput >= 9G, 99% of days" or "availability >= 99.9%"`
	bad := func(format string, args ...any) (record.Goal, error) {
		return g, f.errorf(n, hint, "the objective %s: %w", n.value(), fmt.Errorf(format, args...))
	}
	bound, share, shared := strings.Cut(n.text, ",")
	words := strings.Fields(bound)
	all := measurables()
	names := unit.Mapped(all, func(m measurable) string { return m.name })
	if n.kind != textNode || len(words) != 3 {
		return bad("it is no bound")
	}
	i := slices.Index(names, strings.ToLower(words[0]))
	if i < 0 {
		return g, f.errorf(n, meant(words[0], names), "the objective %s: there is no %q", n.value(), clip(words[0]))
	}
	m := all[i]
	g = record.Goal{Objective: strings.Join(strings.Fields(n.text), " "), Metric: m.metric, AtLeast: m.atLeast, SharePct: 100, Per: record.PerTurn}
	if want := map[bool]string{true: ">=", false: "<="}[m.atLeast]; words[1] != want {
		return bad("a bound of %s begins with %s", m.name, want)
	}
	if g.Limit, err = m.read(words[2]); err != nil {
		return bad("%w", err)
	}
	if m.metric == record.Availability {
		if shared {
			return bad("availability is a share of the time already")
		}
		g.SharePct, g.Per = 100*g.Limit, record.PerTime
		return g, nil
	}
	if !shared {
		return bad("it has no share, such as: 99%% of days")
	}
	pct, per, ok := strings.Cut(strings.TrimSpace(share), " of ")
	if g.SharePct, err = unit.ParsePercent(strings.TrimSpace(pct)); err != nil || !ok || g.SharePct <= 0 || g.SharePct > 100 {
		return bad("the share %q is not such as: 99%% of days", clip(share))
	}
	g.Per = record.Per(strings.TrimSpace(per))
	if kinds := []record.Per{record.PerTurn, record.PerHour, record.PerDay}; !slices.Contains(kinds, g.Per) {
		return bad("a share is one of turns, hours or days")
	}
	return g, nil
}

// maintenance reads announced work.
func (f *File) maintenance(x *node) (w record.MaintenanceWindow, err error) {
	const example = `such as {begin: "2027-01-09 22:00", end: "2027-01-10 02:00", hosts: [a]}`
	name := func(n *node) (string, error) { return f.nameOf(n, "name") }
	err = f.fields(x, "maintenance", example, 2, []field{
		{"begin", into(&w.Begin, f.instant)}, {"end", into(&w.End, f.instant)},
		{"every_days", scalar(f, &w.EveryDays, "every_days", "every_days takes a number of days, such as 7", nil, whole(1, 366))},
		{"hosts", list(f, &w.Hosts, "hosts", "[a]", mostHosts, name)}, {"segments", list(f, &w.Segments, "segments", "[a]", mostHosts, name)},
		{"why", into(&w.Why, func(n *node) (string, error) { return f.words(n, "why", "new switch") })},
	})
	if err == nil && !w.Begin.Before(w.End) {
		err = f.errorf(x, example, "the maintenance ends before it begins")
	}
	if err == nil && w.EveryDays > 0 && w.End.Sub(w.Begin) > time.Duration(w.EveryDays)*24*time.Hour {
		err = f.errorf(x, "a shorter time, or a larger every_days", "the maintenance is longer than the time between two")
	}
	return w, err
}

// instant reads a local time, or one with its zone (RFC 3339).
func (f *File) instant(n *node) (time.Time, error) {
	if t, err := time.ParseInLocation("2006-01-02 15:04", n.text, time.Local); err == nil {
		return t, nil
	}
	t, err := time.Parse(time.RFC3339, n.text)
	if n.kind != textNode || err != nil {
		return t, f.errorf(n, `a time is such as "2027-01-09 22:00" (local) or 2027-01-09T22:00:00Z`, "the time is %s", n.value())
	}
	return t, nil
}

// sink reads whom alarms are sent to.
func (f *File) sink(x *node) (s Sink, err error) {
	const example = "such as {alertmanager: http://10.0.0.9:9093}; there is "
	kinds := []string{SinkAlertmanager, SinkWebhook, SinkExec, SinkMail, SinkJournal}
	one := func(kind string, read func(*node) error) field {
		return field{kind, func(n *node) error {
			if s.Kind != "" {
				return f.errorf(n, "make it two entries", "an entry of alarms has one of %s", fault.Or(kinds))
			}
			s.Kind = kind
			return read(n)
		}}
	}
	text := func(what, example string) func(*node) (string, error) {
		return func(n *node) (string, error) { return f.words(n, what, example) }
	}
	web := func(kind, example string) field {
		return one(kind, func(n *node) (err error) {
			if s.To, err = f.words(n, kind, example); err != nil {
				return err
			}
			return f.webAddress(n, s.To)
		})
	}
	err = f.fields(x, "an entry of alarms", "", 0, []field{
		web(SinkAlertmanager, "http://10.0.0.9:9093"), web(SinkWebhook, "https://hooks.example/thru"),
		one(SinkExec, list(f, &s.Args, SinkExec, "[/usr/local/bin/page-me]", 64, text(SinkExec, "/usr/local/bin/page-me"))),
		one(SinkMail, into(&s.To, text(SinkMail, "noc@example.net"))), one(SinkJournal, into(&s.To, text(SinkJournal, "journal"))),
		{"secret", into(&s.Secret, text("secret", "/etc/thru/webhook.key"))},
	})
	switch {
	case err != nil:
		return s, err
	case s.Kind == "":
		return s, f.errorf(x, example+fault.Or(kinds), "an entry of alarms names nobody")
	case s.Secret != "" && s.Kind != SinkWebhook:
		return s, f.errorf(x.get("secret"), "only a webhook is signed", "secret does not go with %s", s.Kind)
	}
	return s, nil
}

// webAddress refuses what is no address of a web server, and passwords.
func (f *File) webAddress(n *node, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return f.errorf(n, "such as https://hooks.example/thru", "%s is no address of a web server", n.value())
	}
	if _, secret := u.User.Password(); secret {
		return f.errorf(n, "sign it with secret: FILE instead", "a password does not belong in a plan")
	}
	return nil
}
