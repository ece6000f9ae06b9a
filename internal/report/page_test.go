package report

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"thru/internal/doc"
	blocks "thru/internal/doc/html"
	"thru/internal/measure"
	"thru/internal/report/facts"
	"thru/internal/report/inventory"
	"thru/internal/report/result"
	"thru/internal/report/tuning"
	"thru/internal/report/why"
)

// TestFirstMinute: the top of a report shows the verdict, the rate, what limits it and what to do.
func TestFirstMinute(t *testing.T) {
	unmet, forced, cut, noRate := verdictTest(), verdictTest(), verdictTest(), verdictTest()
	unmet.Verdict.Pass = false
	forced.Forced, forced.Gates = true, []measure.Gate{{ID: "mtu-path", Status: measure.GateFail, Fact: "1400 of 1500 bytes pass", Why: "w", Advice: "mend the path"}}
	cut.Error = &measure.Error{Message: "lost", Hint: "look there", ExitCode: 1}
	noRate.Verdict, noRate.Arguments = nil, []string{"test", "peer"}
	held := failedTest()
	held.Gates, held.Error = forced.Gates, &measure.Error{Message: "a gate fails", ExitCode: 3}
	unfit := &measure.Document{Command: "check", Gates: []measure.Gate{{ID: "x", Status: measure.GateFail, Fact: "f"}}, Error: &measure.Error{ExitCode: 3}}
	labelled := verdictTest()
	labelled.Labels = map[string]string{"site": "east", "rack": "7"}
	for _, tt := range []struct {
		name  string
		d     *measure.Document
		word  string
		tone  doc.Tone
		rows  []string // "name: text" that is in a row
		never string
	}{
		{"pass", verdictTest(), "accepted", doc.ToneGood, []string{"Carries: 956 Mb/s local -> peer (95% interval of this run 948-964), 100% of the 956 Mb/s that 1 Gb/s (L2) leaves for payload at MTU 1500",
			"Limited by: the link itself", "To do: nothing", "Between: peer is beta, 192.0.2.2:5200"}, "--link-rate 10G"},
		{"fail", unmet, "not accepted", doc.ToneBad, []string{"To do: run `thru explain` to find"}, ""},
		{"fail with a cause", explainTest(), "not accepted", doc.ToneBad, []string{"Limited by: local -> b: all interrupts of eth0 at b go to CPU 3", "Limited by: b -> local: the link itself: it is full", "To do: ethtool -L eth0 combined 8"}, ""},
		{"a gate was overruled", forced, "accepted", doc.ToneGood, []string{"To do: mend the path"}, ""},
		{"broke off", cut, "no verdict", doc.ToneNone, []string{"To do: look there"}, ""},
		{"no rate", noRate, "no verdict", doc.ToneNone, nil, ""},
		{"requests", rrTest(), "no verdict", doc.ToneNone, []string{"Carries: requests/s"}, "Limited by"},
		{"one host", localhostTest(), "no verdict", doc.ToneNone, []string{"Carries: 48.9 Gb/s localhost"}, "--link-rate"},
		{"nothing", failedTest(), "no verdict", doc.ToneNone, []string{"To do: start thru serve on that host"}, "Carries"},
		{"held back by a gate", held, "no verdict", doc.ToneNone, []string{"To do: mend the path"}, "Carries"},
		{"empty", &measure.Document{}, "no verdict", doc.ToneNone, nil, "Carries"},
		{"unfit", unfit, "not fit", doc.ToneBad, []string{"To do: path: f"}, "Carries"},
		{"checked", checked(), "not fit", doc.ToneBad, nil, "Limited by"},
		{"target of a tuning", tunedTest(), "accepted", doc.ToneGood, []string{"To do: make the kept changes persistent"}, ""},
		{"targets of a plan", manyToOneTest(), "not accepted", doc.ToneBad, []string{"Carries: 8 pairs at once carried 7.52 of 10 Gb/s", "Limited by: the CPU 3 of store is full"}, ""},
		{"rungs", rungsTest(), "not accepted", doc.ToneBad, []string{"Carries: interconnect: 9.41 of 10 Gb/s"}, ""},
		{"a disk", diskDocument(), "no verdict", doc.ToneNone, []string{"Gives: /srv at b (ext4 on nvme0n1): reads 3.22 GB/s", "Between: b is beta"}, "see the error"},
		{"a transfer", transferDocument(), "no verdict", doc.ToneNone, []string{"Carries: 1.02 Gb/s files -> local, protocol over disk", "Carries: 1.71 Gb/s files -> local, protocol over memory", "Limited by: the disk here takes 1.02 Gb/s"}, "nothing was measured"},
		{"labels", labelled, "accepted", doc.ToneGood, []string{"Labels: rack=7 site=east"}, ""},
	} {
		v := newPage(tt.d)
		if a := v.First.Accepted; a.Word != tt.word || a.Tone != tt.tone || a.Why == "" && a.Word != "accepted" {
			t.Errorf("%s: %+v, want %s", tt.name, a, tt.word)
		}
		var all []string
		all = append(all, v.First.Accepted.How...)
		for _, r := range v.First.Rows {
			for _, i := range r.Items {
				all = append(all, r.Name+": "+i.Text+"\n"+strings.Join(i.Commands, "\n"))
			}
		}
		said := strings.Join(all, "\n")
		for _, want := range tt.rows {
			name, text, _ := strings.Cut(want, ": ")
			if !slices.ContainsFunc(all, func(s string) bool { return strings.HasPrefix(s, name+": ") && strings.Contains(s, text) }) {
				t.Errorf("%s: no %q in\n%s", tt.name, want, said)
			}
		}
		if tt.never != "" && strings.Contains(said, tt.never) {
			t.Errorf("%s: %q in\n%s", tt.name, tt.never, said)
		}
	}
	if how := newPage(noRate).First.Accepted.How; len(how) != 1 || how[0] != "thru test peer --link-rate 10G" {
		t.Errorf("the command for a verdict is %q", how)
	}
}

// TestInventory: each line of the checklists C-07 and C-08 has a row for every kind of host, and an unknown
// value has its reason.
func TestInventory(t *testing.T) {
	want := []string{"make and model", "firmware", "CPU type", "CPU number", "CPU speed", "RAM", "disks", "disk array, RAID", "file systems", "network cards",
		"hypervisor, version and build", "BIOS settings that are not default", "system settings that are not default", "system",
		"vCPUs", "RAM of the guest", "virtual disks and their adapters", "virtual network cards", "reservations, limits and shares", "CPU affinity of the guest"}
	physical := linuxFacts("p", 4)
	physical.Hypervisor, physical.Machine = new("none"), &measure.Machine{Vendor: "Acme", Product: "R1", BIOSVendor: "Phoenix", BIOSVersion: "2.1"}
	esx := &measure.Facts{OS: new("esxi"), Distro: new("VMware ESXi 8.0.3"), Kernel: new("24022510"), Hypervisor: new("none"), Changed: map[string]string{"netPktHeapMaxSize": "64"},
		Disks: []measure.Disk{{Name: "naa.1", Mounts: []measure.Mount{{Path: "datastore1", Type: "VMFS-6"}}}}}
	guest := linuxFacts("g", 2)
	guest.NotChecked = []measure.NotChecked{{Fact: "machine", Why: "no SMBIOS here"}}
	d := &measure.Document{EndPoints: []measure.EndPoint{{Name: "none"}, {Name: "p", Facts: physical}, {Name: "esx", Facts: esx}, {Name: "g", Facts: guest}}}
	values := map[string][]string{}
	for _, part := range inventory.Record(d).Parts {
		for _, r := range part.Rows {
			values[r.Name] = r.Values
			for i, v := range r.Values {
				if v == "" || v == doc.NotChecked {
					t.Errorf("%s of %s is %q, without a reason", r.Name, d.EndPoints[i].Name, v)
				}
			}
		}
	}
	for _, name := range want {
		if len(values[name]) != len(d.EndPoints) {
			t.Errorf("%q has %d values", name, len(values[name]))
		}
	}
	for _, tt := range []struct {
		row  string
		of   int
		want string
	}{
		{"make and model", 0, "reported no facts"}, {"make and model", 1, "Acme R1"}, {"make and model", 3, "not checked: no SMBIOS here"}, {"firmware", 1, "Phoenix 2.1"},
		{"vCPUs", 1, "not a guest"}, {"vCPUs", 3, "2 logical cores"}, {"reservations, limits and shares", 3, "a guest cannot see"},
		{"hypervisor, version and build", 2, "VMware ESXi 8.0.3, 24022510"}, {"hypervisor, version and build", 3, "only its host can"},
		{"file systems", 2, "datastore1 VMFS-6"}, {"system settings that are not default", 2, "netPktHeapMaxSize=64"}, {"virtual network cards", 3, "eth0 (virtio_net"},
	} {
		if got := values[tt.row][tt.of]; !strings.Contains(got, tt.want) {
			t.Errorf("%s of %s is %q, want %q", tt.row, d.EndPoints[tt.of].Name, got, tt.want)
		}
	}
}

// TestRepeating: the report contains the command for each host.
func TestRepeating(t *testing.T) {
	d := verdictTest()
	var all []string
	for _, s := range newRepeating(d).Steps {
		all = append(all, s.At+": "+s.Command)
	}
	if got := strings.Join(all, "; "); got != "peer: thru serve; the host that ran the command: thru test peer --link-rate 1G/l2" {
		t.Error(got)
	}
	d.EndPoints[1].Speaks = "iperf3 3.18"
	if s := newRepeating(d).Steps[0]; s.Command != "iperf3 -s" || s.Conclusion != "iperf3 3.18" {
		t.Errorf("%+v", s)
	}
	d.EndPoints[1].Speaks, d.EndPoints[1].Name, d.Arguments = "", "ssh://b", []string{"test", "ssh://b"}
	if s := newRepeating(d).Steps; len(s) != 1 {
		t.Errorf("%+v: ssh needs nothing there", s)
	}
	for name, d := range goldenDocuments() {
		for _, s := range newPage(d).Method {
			if !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, ")") {
				t.Errorf("%s: %q is no sentence", name, s)
			}
		}
	}
}

// TestContrast computes the contrast of each pair of colours that the page combines (WCAG 2.2: 4.5 for text,
// 3 for drawings), light, dark and printed.
func TestContrast(t *testing.T) {
	schemes := regexp.MustCompile(`(?s):root \{(.*?)\n?\s*\}`).FindAllStringSubmatch(blocks.Style(), -1)
	if len(schemes) != 3 {
		t.Fatalf("%d schemes of colours, want light, dark and print", len(schemes))
	}
	for i, name := range []string{"light", "dark", "print"} {
		c := map[string][3]float64{}
		for _, m := range regexp.MustCompile(`--([\w-]+): #([0-9a-f]+)`).FindAllStringSubmatch(schemes[i][1], -1) {
			c[m[1]] = colourOf(t, m[2])
		}
		check := func(least float64, front, back string, a, b [3]float64) {
			if got := contrast(a, b); got < least {
				t.Errorf("%s: %s on %s has a contrast of %.2f, less than %v", name, front, back, got, least)
			}
		}
		for _, front := range []string{"text", "muted", "good", "bad", "warn"} {
			for _, back := range []string{"back", "soft"} {
				check(4.5, front, back, c[front], c[back])
			}
		}
		for _, back := range []string{"good", "bad", "muted"} { // badges
			check(4.5, "on", back, c["on"], c[back])
		}
		for _, line := range []string{"c0", "c1", "c2", "c3"} {
			check(3, line, "back", c[line], c["back"])
		}
		for _, m := range regexp.MustCompile(`(?m)(?:^|\} )\.h(\d) \{ --heat: (\d+)%`).FindAllStringSubmatch(blocks.Style(), -1) { // text in a cell of a matrix
			share, _ := strconv.ParseFloat(m[2], 64)
			check(4.5, "text", "heat "+m[1], c["text"], mixed(c["c0"], c["back"], share/100))
		}
	}
}

func colourOf(t *testing.T, hex string) (rgb [3]float64) {
	t.Helper()
	if len(hex) == 3 {
		hex = hex[:1] + hex[:1] + hex[1:2] + hex[1:2] + hex[2:] + hex[2:]
	}
	for i := range rgb {
		n, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		rgb[i] = float64(n) / 255
	}
	return rgb
}

func mixed(a, b [3]float64, share float64) (m [3]float64) {
	for i := range m {
		m[i] = share*a[i] + (1-share)*b[i]
	}
	return m
}

// contrast returns the contrast ratio of WCAG 2.2 of two sRGB colours.
func contrast(a, b [3]float64) float64 {
	light := func(c [3]float64) float64 {
		var l [3]float64
		for i, v := range c {
			if l[i] = v / 12.92; v > 0.04045 {
				l[i] = math.Pow((v+0.055)/1.055, 2.4)
			}
		}
		return 0.2126*l[0] + 0.7152*l[1] + 0.0722*l[2]
	}
	high, low := max(light(a), light(b)), min(light(a), light(b))
	return (high + 0.05) / (low + 0.05)
}

// TestStructure: landmarks, consecutive heading levels, tables with column heads, regions that a keyboard
// reaches; and every element is closed.
func TestStructure(t *testing.T) {
	documents := goldenDocuments()
	for i, d := range append(hostileKinds(), hostile()) {
		documents[fmt.Sprintf("hostile %d", i)] = d
	}
	for name, d := range documents {
		page := pageOf(t, d)
		for _, one := range []string{"<html lang=", "<header>", "<main>", "<footer>", "<h1>", "<title>"} {
			if n := strings.Count(strings.ReplaceAll(page, "<title id", ""), one); n != 1 {
				t.Errorf("%s: %d of %s", name, n, one)
			}
		}
		level := 0
		for _, m := range regexp.MustCompile(`<h([1-6])`).FindAllStringSubmatch(page, -1) {
			n, _ := strconv.Atoi(m[1])
			if n > level+1 {
				t.Errorf("%s: a heading of level %d follows one of %d", name, n, level)
			}
			level = n
		}
		for _, th := range regexp.MustCompile(`<th[ >][^>]*>?`).FindAllString(page, -1) {
			if !strings.Contains(th, `scope="`) {
				t.Errorf("%s: %s has no scope", name, th)
			}
		}
		for _, div := range regexp.MustCompile(`<div class="scroll"[^>]*>`).FindAllString(page, -1) {
			if !strings.Contains(div, `tabindex="0"`) || !strings.Contains(div, `role="region"`) || !regexp.MustCompile(`aria-label="[^"]+"`).MatchString(div) {
				t.Errorf("%s: %s cannot be reached or has no name", name, div)
			}
		}
		if strings.Count(page, "<details") != strings.Count(page, "<summary") || strings.Contains(page, `href="`) || regexp.MustCompile(`tabindex="[^0]`).MatchString(page) {
			t.Errorf("%s: a part to open has no summary, or something points outside", name)
		}
		if err := closed(page); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// closed checks that each element is closed in the right place.
func closed(page string) error {
	_, body, _ := strings.Cut(page, "</style>")
	var open []string
	for _, m := range regexp.MustCompile(`<(/?)([a-zA-Z][\w-]*)([^<>]*)>`).FindAllStringSubmatch(body, -1) {
		switch {
		case m[2] == "br" || m[2] == "meta" || strings.HasSuffix(m[3], "/"):
		case m[1] == "":
			open = append(open, m[2])
		case len(open) == 0 || open[len(open)-1] != m[2]:
			if m[2] != "head" && m[2] != "html" { // opened before the style
				return fmt.Errorf("</%s> closes %q", m[2], open)
			}
		default:
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%q stay open", open)
	}
	return nil
}

// worst returns documents as large as a plan or another host can make them.
func worst() map[string]*measure.Document {
	long := newDocument("test", "peer") // 100,000 samples of a test over a day
	c := newCellFor("local", "peer", 1, 9e9)
	c.Runs[0].Flows[0].Sender, c.Runs[0].Flows[0].Receiver = end("local", true, 9e9, 1, 50_000), end("peer", false, 9e9, 1, 50_000)
	long.Cells = []measure.Cell{c}
	pairs := newDocument("run", "plan.yaml")
	pairs.Groups = []measure.Group{{Group: 0, Label: "all", Cells: 1000, Aggregate: &measure.Figure{Value: 1e12, Low: 1e12, High: 1e12, Runs: 1}}}
	name := strings.Repeat("h<b>&\"'", 1500) // 10 kB
	pairs.EndPoints = nil
	for i := range 33 {
		pairs.EndPoints = append(pairs.EndPoints, measure.EndPoint{Name: fmt.Sprint(i, name), Facts: linuxFacts(name, 256), Labels: map[string]string{name: name}})
	}
	for i := range 1000 {
		c := newCellFor(pairs.EndPoints[i%33].Name, pairs.EndPoints[(i/33)%33].Name, 1, 1e9)
		c.Warnings, c.AtOnce = []string{fmt.Sprint(name, i)}, 1000
		c.Missing = []measure.NotChecked{{Fact: name, Why: fmt.Sprint(i, name)}}
		for s := range c.Runs[0].Flows[0].Sender.PerSec[:min(10, 10*max(0, 8-i))] { // of a few, since CSV has all of them
			h := &c.Runs[0].Flows[0].Sender.PerSec[s]
			h.CPUs = nil
			for core := range 256 {
				h.CPUs = append(h.CPUs, measure.CPU{Core: core, User: float64((core*7 + s*13) % 100)})
			}
		}
		pairs.Cells = append(pairs.Cells, c)
	}
	huge := verdictTest()
	for i := range huge.Cells {
		f := huge.Cells[i].Goodput
		f.Value, f.Low, f.High, f.CI95Low, f.CI95High = 1e308, -1e308, math.Inf(1), new(math.NaN()), new(1e308)
		huge.Cells[i].Ceiling.Bps, huge.Cells[i].Ceiling.SharePct, huge.Cells[i].Ceiling.LinkBps = math.NaN(), math.Inf(-1), math.MinInt64
		for _, e := range result.Evidences(&huge.Cells[i]) {
			e.MeasuredNs, e.Bins[0].Bytes, e.Bins[1].Span, e.Bins[2].At = math.MaxInt64, math.MaxInt64, math.MinInt64, math.MinInt64
			e.PerSec[0].CPUs[0].User, e.PerSec[1].CPUs[0].User, e.PerSec[2].CPUs[0].Core, e.PerSec[3].Span = math.NaN(), 1e308, -5, math.MaxInt64
		}
	}
	return map[string]*measure.Document{"long": long, "pairs": pairs, "huge": huge, "hostile": hostile()}
}

// TestTheWorstIsSmallAndHarmless: a page stays under 1 MB without the raw result, and no output format lets
// foreign markup through.
func TestTheWorstIsSmallAndHarmless(t *testing.T) {
	for name, d := range worst() {
		page := pageOf(t, d)
		if len(page) > 1_000_000 {
			t.Errorf("%s: a page of %d bytes", name, len(page))
		}
		if err := closed(page); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var text, samples bytes.Buffer
		if err := Markdown(&text, d, MarkdownOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := CSV(&samples, d); err != nil {
			t.Fatal(err)
		}
		fenced := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(text.String(), "") // text in a fence is literal
		for form, tt := range map[string]struct {
			text string
			bad  []string
		}{
			"page":     {page, []string{"<script", "<b>&", "NaN", "Inf", "\x00", "\x1b", "\u202e"}},
			"Markdown": {fenced, []string{"<script", "<b>", "NaN", "Inf", "\x00", "\x1b", "\u202e"}},
			"CSV":      {samples.String(), []string{"NaN", "Inf", "\x00", "\x1b", "\u202e"}},
		} {
			for _, bad := range tt.bad {
				if i := strings.Index(tt.text, bad); i >= 0 {
					t.Errorf("%s: the %s has %q in %q", name, form, bad, tt.text[max(0, i-80):min(len(tt.text), i+40)])
				}
			}
		}
	}
}

// TestMarkdown: each table has as many cells in each row as in its head, code is fenced, and names of other
// hosts become no element, link or row.
func TestMarkdown(t *testing.T) {
	documents := goldenDocuments()
	for i, d := range append(hostileKinds(), hostile()) {
		documents[fmt.Sprintf("hostile %d", i)] = d
	}
	d := verdictTest()
	d.EndPoints[1].Name = "a|b`c](http://evil)<i>_x_*y*"
	documents["names"] = d
	for name, d := range documents {
		var b bytes.Buffer
		if err := Markdown(&b, d, MarkdownOptions{Signed: &Signature{Host: "alpha", Key: "key", Verify: "thru report --verify x.md"}}); err != nil {
			t.Fatal(err)
		}
		cells, fenced, level := 0, false, 0
		for i, line := range strings.Split(b.String(), "\n") {
			switch {
			case strings.HasPrefix(line, "```"):
				fenced = !fenced
			case fenced:
			case strings.HasPrefix(line, "| "):
				n := len(regexp.MustCompile(`(?:^|[^\\])\|`).FindAllString(line, -1))
				if cells > 0 && n != cells {
					t.Errorf("%s: line %d has %d cells, its table %d: %s", name, i, n, cells, line)
				}
				cells = n
			default:
				cells = 0
				if strings.HasPrefix(line, "#") {
					n := strings.IndexByte(line, ' ')
					if n > level+1 {
						t.Errorf("%s: a heading of level %d follows one of %d", name, n, level)
					}
					level = n
				}
				if regexp.MustCompile(`<[a-zA-Z/!]|[^\\]\]\(|^\s*>`).MatchString(line) || strings.Contains(line, "http://") {
					t.Errorf("%s: line %d: %s", name, i, line)
				}
			}
		}
		if fenced || strings.Contains(b.String(), "**Verdict:**") == inventory.Is(d) || !strings.HasSuffix(b.String(), "thru report --verify x.md\n```\n\n") {
			t.Errorf("%s: it does not end as it should", name)
		}
	}
}

// TestHostsAreMerged: the same task at two hosts is one line.
func TestHostsAreMerged(t *testing.T) {
	r, cubic := summaryRow{}, []string{"sysctl -w net.ipv4.tcp_congestion_control=cubic"}
	for _, f := range []why.Finding{
		{Host: "a", At: "at a:", Commands: cubic}, {Host: "b", At: "at b:", Commands: cubic}, {Host: "a", At: "at a:", Commands: cubic},
		{Advice: "raise it", Host: "a", At: "at a:", Commands: cubic}, {Host: "c", At: "at c:", Commands: []string{"ethtool -K eth0 tso on"}},
	} {
		r.against(&f)
	}
	var got []string
	for _, i := range r.Items {
		got = append(got, i.Text)
	}
	if want := []string{"at a and b:", "raise it; at a:", "at c:"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestShortGates: a gate's findings at several places are one row, their reason appears once, and a passing
// gate needs none; a different fix makes another row.
func TestShortGates(t *testing.T) {
	warn := func(where, fact, command string) gateView {
		return gateView{Status: measure.GateWarn, Word: "WARN", ID: "congestion-control", Where: where, Fact: fact, Why: "bbr paces", Fix: []string{command}}
	}
	rows := (gateList{warn("a", "bbr at 118 µs RTT", "one"), warn("b", "bbr at 421 µs RTT", "one"), warn("c", "bbr at 5 µs RTT", "two"),
		{Status: measure.GatePass, ID: "mtu", Where: "a, eth0", Fact: "MTU 1500 at a", Why: "frames"}, {Status: measure.GatePass, ID: "mtu", Where: "b, eth0", Fact: "MTU 9000 at b", Why: "frames"}}).Short()
	var got []string
	for _, g := range rows {
		got = append(got, strings.Join([]string{g.Where, g.Fact, g.Why}, "|"))
	}
	want := []string{"a, b|a: bbr at 118 µs RTT; b: bbr at 421 µs RTT|bbr paces", "c|bbr at 5 µs RTT|", "a, eth0, b, eth0|a, eth0: MTU 1500 at a; b, eth0: MTU 9000 at b|"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestBetween: each end is named with its host, and no address appears twice.
func TestBetween(t *testing.T) {
	host := func(name string) *measure.Facts { return &measure.Facts{Hostname: new(name), Distro: new("Debian 12")} }
	d := &measure.Document{EndPoints: []measure.EndPoint{{Name: "local", Facts: host("alpha")}, {Name: "10.0.0.2", Addr: "10.0.0.2:5200", Facts: host("beta")},
		{Name: "gamma", Addr: "10.0.0.3:5200", Facts: host("gamma")}, {Name: "old"}}}
	if got, want := strings.Join(betweenLines(d), "|"), "local is alpha, Debian 12|10.0.0.2 is beta, Debian 12|gamma: 10.0.0.3:5200, Debian 12|old"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for range 5 {
		d.EndPoints = append(d.EndPoints, d.EndPoints[3])
	}
	if got, want := strings.Join(betweenLines(d), "|"), "9 hosts: local (alpha), 10.0.0.2 (beta), gamma, old, old, old, old, old and 1 more"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestSeeToOnce: advice among the things to do with its commands is not repeated without them.
func TestSeeToOnce(t *testing.T) {
	r := summaryRow{}
	r.against(&why.Finding{Advice: "raise the rate", Host: "a", At: "at a:", Commands: []string{"tc qdisc show"}})
	r.tuned(&tuning.View{Advice: []tuning.Proposal{{Title: "raise the rate (at a)", Advice: "raise the rate"}, {Title: "end the other work", Advice: "end the other work"}, {Title: "raise the rate", Change: true}}}, false)
	var got []string
	for _, i := range r.Items {
		got = append(got, i.Text)
	}
	if want := "raise the rate; at a:|check: end the other work|try raise the rate"; strings.Join(got, "|") != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestSaidOnce: advice among the things to do has no section, advice that did not fit there has one; equal
// interfaces of several hosts share a table.
func TestSaidOnce(t *testing.T) {
	d := goldenDocuments()["ladder"]
	d.Advice = []string{"advice one", "advice two", "advice three", "advice four", "advice five", "advice six"}
	page := pageOf(t, d)
	for _, s := range d.Advice {
		if n := strings.Count(page, s); n != 1 {
			t.Errorf("%s occurs %d times", s, n)
		}
	}
	lo := &measure.Facts{Interfaces: []measure.Interface{{Name: "lo", MTU: new(65536)}}}
	d = &measure.Document{EndPoints: []measure.EndPoint{{Name: "a", Facts: lo}, {Name: "b", Facts: lo}}}
	if all := facts.Interfaces(d); len(all) != 1 || all[0].Name != "lo at a; lo at b" {
		t.Errorf("%+v", all)
	}
}

// TestPagesAreDressed: no page shows a backtick or an arrow of two letters as text.
func TestPagesAreDressed(t *testing.T) {
	for name, d := range goldenDocuments() {
		page := pageOf(t, d)
		for _, s := range []string{"style", "pre", "code", "script"} {
			for {
				from := strings.Index(page, "<"+s)
				to := strings.Index(page, "</"+s+">")
				if from < 0 || to < from {
					break
				}
				page = page[:from] + page[to+len(s)+3:]
			}
		}
		if i := strings.IndexAny(page, "`"); i >= 0 {
			t.Errorf("%s: a backtick in %q", name, page[max(0, i-80):min(len(page), i+80)])
		}
		if i := strings.Index(page, "-&gt;"); i >= 0 {
			t.Errorf("%s: an arrow in %q", name, page[max(0, i-80):min(len(page), i+80)])
		}
	}
}

// TestTonesOfChecks: a gate that was not checked is no pass, and does not make a healthy host look bad.
func TestTonesOfChecks(t *testing.T) {
	for statuses, want := range map[[3]string]doc.Tone{
		{measure.GatePass, measure.GatePass, measure.GateNotChecked}:       doc.ToneGood,
		{measure.GateNotChecked, measure.GateNotChecked, ""}:               doc.ToneWarn,
		{measure.GatePass, measure.GateWarn, measure.GateNotChecked}:       doc.ToneWarn,
		{measure.GateNotChecked, measure.GateFail, measure.GatePass}:       doc.ToneBad,
		{measure.GateNotChecked, measure.GateNotChecked, measure.GatePass}: doc.ToneGood,
	} {
		d := &measure.Document{Command: "check"}
		for _, s := range statuses {
			if s != "" {
				d.Gates = append(d.Gates, measure.Gate{Status: s})
			}
		}
		if g, _ := NewGist(d); g.Tone != want {
			t.Errorf("%q: tone %v, want %v", statuses, g.Tone, want)
		}
	}
}
