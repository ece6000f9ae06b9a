package fleet

import (
	"fmt"
	"io"
	"strings"
	"time"

	"thru/internal/doc"
	"thru/internal/doc/text"
	"thru/internal/report/facts"
	"thru/internal/unit"
)

// HostRow is one host of a fleet, as `thru hosts` lists it.
type HostRow struct {
	Name    string
	Labels  map[string]string
	Thru    string   // version
	Wire    string   // version of the control protocol: "1.4"
	Addrs   []string // where it receives data, or its own
	CPUs    int      // 0: not known
	Ago     time.Duration
	Online  bool   // it has announced itself recently; Ago is the time since
	Busy    string // the current task; empty: free
	Refused string // why the controller refuses it; empty: it does not
}

// state words what a host is doing.
func (h HostRow) state() string {
	switch {
	case h.Refused != "":
		return "refused"
	case !h.Online:
		return "not there"
	case h.Busy != "":
		return "busy: " + doc.Clean(h.Busy)
	}
	return "free"
}

// HostsTable prints the hosts of a fleet: a line that counts them, and a table in the order given.
func HostsTable(w io.Writer, hosts []HostRow, o text.Options) error {
	p := text.New(o)
	p.Wrap(text.Bold, 0, "", hostsAnswer(hosts))
	if len(hosts) == 0 {
		return p.Flush(w)
	}
	g := doc.Table{Tone: stateTone, Columns: []doc.Column{{Name: "name", Least: 8}, {Name: "state", Least: 12}, {Name: "labels", Least: 8},
		{Name: "CPUs", Right: true}, {Name: "seen", Right: true}, {Name: "thru", Least: 5}, {Name: "wire"}, {Name: "addresses", Least: 15}}}
	for _, h := range hosts {
		cpus := "-"
		if h.CPUs > 0 {
			cpus = fmt.Sprint(h.CPUs)
		}
		g.Rows = append(g.Rows, []string{doc.Clean(h.Name), h.state(), doc.OrDash(facts.Labels(h.Labels, len(hosts) > 1)), cpus, agoText(h.Ago),
			doc.OrDash(doc.Clean(h.Thru)), doc.OrDash(doc.Clean(h.Wire)), doc.OrDash(strings.Join(doc.CleanAll(h.Addrs), " "))})
	}
	p.WriteByte('\n')
	p.Grid(g)
	for _, h := range hosts {
		if h.Refused != "" {
			p.Broken(text.Yellow, 0, doc.Clean(h.Name)+" is refused: "+doc.Clean(h.Refused))
		}
	}
	return p.Flush(w)
}

// hostsAnswer returns "14 hosts: 11 free, 1 busy, 1 refused, 1 not there".
func hostsAnswer(hosts []HostRow) string {
	if len(hosts) == 0 {
		return "no hosts"
	}
	counts := map[string]int{}
	for _, h := range hosts {
		word, _, _ := strings.Cut(h.state(), ":") // without the task
		counts[word]++
	}
	var parts []string
	for _, word := range []string{"free", "busy", "refused", "not there"} {
		if n := counts[word]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, word))
		}
	}
	return unit.Plural(len(hosts), "host") + ": " + strings.Join(parts, ", ")
}

// stateTone returns the colour of a state.
func stateTone(cell string) doc.Tone {
	switch {
	case cell == "refused":
		return doc.ToneBad
	case cell == "not there", strings.HasPrefix(cell, "busy: "):
		return doc.ToneWarn
	case cell == "free":
		return doc.ToneGood
	}
	return doc.ToneNone
}

// agoText words how long ago a host was seen, in whole seconds.
func agoText(ago time.Duration) string {
	if ago < time.Second {
		return "now"
	}
	return unit.Duration(int64(ago.Truncate(time.Second))) + " ago"
}
