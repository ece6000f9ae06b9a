package planfile

import (
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
		{"probes", into(&w.Probes, func(n *node) (time.Duration, error) { return f.period(n, "probes", "1s") })},
		{"tcp", into(&w.TCP, f.turns)},
		{"time", into(&w.Time, func(n *node) (time.Duration, error) { return f.period(n, "time", "3s") })},
		{"load", into(&w.Load, f.load)},
		{"budget", into(&w.Budget, f.budget)},
		{"hours", func(n *node) (err error) {
			w.Hours, err = each(f.source, n, "hours", `["22:00-06:00"]`, 24, f.hours)
			return err
		}},
		{"segments", func(n *node) (err error) {
			w.Segments, err = each(f.source, n, "segments", "[{name: wan, between: {site: east}, and: {site: west}}]", mostSegments, f.readSegment)
			return err
		}},
		{"objectives", func(n *node) (err error) {
			w.Objectives, err = each(f.source, n, "objectives", `["goodput >= 9G, 99% of days"]`, mostObjectives, f.objective)
			return err
		}},
		{"maintenance", func(n *node) (err error) {
			w.Maintenance, err = each(f.source, n, "maintenance", `[{begin: "2027-01-09 22:00", end: "2027-01-10 02:00"}]`, mostWindows, f.maintenance)
			return err
		}},
		{"alarms", func(n *node) (err error) {
			w.Alarms, err = each(f.source, n, "alarms", "[{alertmanager: http://10.0.0.9:9093}]", mostSinks, f.sink)
			return err
		}},
	})
}

// period reads a time above zero, or none.
func (f *File) period(n *node, what, example string) (time.Duration, error) {
	if n.kind == textNode && n.text == "none" {
		return 0, nil
	}
	text, err := f.words(n, what, example)
	if err != nil {
		return 0, err
	}
	d, err := unit.ParseDuration(text)
	if err == nil && (d < 100*time.Millisecond || d > time.Hour) {
		err = fmt.Errorf("it is not between 0.1 s and 1 h")
	}
	if err != nil {
		return 0, f.errorf(n, what+" takes a time such as "+example+", or none", "%s %q: %w", what, clip(text), err)
	}
	return d, nil
}

// turns reads a number of turns a day, auto, or none.
func (f *File) turns(n *node) (int, error) {
	switch {
	case n.kind == textNode && n.text == "auto":
		return Auto, nil
	case n.kind == textNode && n.text == "none":
		return 0, nil
	}
	x, err := strconv.Atoi(n.text)
	if n.kind != numberNode || err != nil || x < 0 || x > mostTurns {
		return 0, f.errorf(n, fmt.Sprintf("tcp takes the number of turns a day, at most %d, or auto, or none", mostTurns), "tcp is %s", n.value())
	}
	return x, nil
}

// load reads a share of the link, or none.
func (f *File) load(n *node) (float64, error) {
	if n.kind == textNode && n.text == "none" {
		return 0, nil
	}
	pct, err := unit.ParsePercent(n.text)
	if err != nil || pct <= 0 || pct > 100 {
		return 0, f.errorf(n, "load takes a share of the link such as 30%, or none", "load is %s", n.value())
	}
	return pct / 100, nil
}

// budget reads the bytes a day.
func (f *File) budget(n *node) (int64, error) {
	text, err := f.words(n, "budget", "100G")
	if err != nil {
		return 0, err
	}
	b, err := unit.ParseSize(text)
	if err == nil && b <= 0 {
		err = fmt.Errorf("it must be above 0")
	}
	if err != nil {
		return 0, f.errorf(n, "budget takes the bytes of a day, such as 100G", "budget %q: %w", clip(text), err)
	}
	return b, nil
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
	names := func(what string) func(*node) ([]string, error) {
		return func(n *node) ([]string, error) {
			return each(f.source, n, what, "[a]", mostHosts, func(n *node) (string, error) { return f.nameOf(n, "name") })
		}
	}
	err = f.fields(x, "maintenance", example, 2, []field{
		{"begin", into(&w.Begin, f.instant)}, {"end", into(&w.End, f.instant)},
		{"every_days", into(&w.EveryDays, func(n *node) (int, error) {
			d, err := strconv.Atoi(n.text)
			if n.kind != numberNode || err != nil || d < 1 || d > 366 {
				return 0, f.errorf(n, "every_days takes a number of days, such as 7", "every_days is %s", n.value())
			}
			return d, nil
		})},
		{"hosts", into(&w.Hosts, names("hosts"))}, {"segments", into(&w.Segments, names("segments"))},
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
	kinds := []string{SinkAlertmanager, SinkWebhook, SinkExec, SinkMail, SinkJournal}
	if err := f.keysOf(x, "an entry of alarms", append(kinds, "secret")...); err != nil {
		return s, err
	}
	for _, kind := range kinds {
		n := x.get(kind)
		switch {
		case n == nil:
			continue
		case s.Kind != "":
			return s, f.errorf(n, "make it two entries", "an entry of alarms has one of %s", fault.Or(kinds))
		}
		s.Kind = kind
		if kind == SinkExec {
			s.Args, err = each(f.source, n, kind, "[/usr/local/bin/page-me]", 64, func(n *node) (string, error) { return f.words(n, kind, "/usr/local/bin/page-me") })
		} else {
			s.To, err = f.words(n, kind, map[string]string{SinkAlertmanager: "http://10.0.0.9:9093", SinkWebhook: "https://hooks.example/thru", SinkMail: "noc@example.net", SinkJournal: "journal"}[kind])
		}
		if err == nil && (kind == SinkAlertmanager || kind == SinkWebhook) {
			err = f.webAddress(n, s.To)
		}
		if err != nil {
			return s, err
		}
	}
	if s.Kind == "" {
		return s, f.errorf(x, "such as {alertmanager: http://10.0.0.9:9093}; there is "+fault.Or(kinds), "an entry of alarms names nobody")
	}
	if n := x.get("secret"); n != nil {
		if s.Kind != SinkWebhook {
			return s, f.errorf(n, "only a webhook is signed", "secret does not go with %s", s.Kind)
		}
		s.Secret, err = f.words(n, "secret", "/etc/thru/webhook.key")
	}
	return s, err
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
