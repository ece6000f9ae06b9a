package planfile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"thru/internal/measure"
	"thru/internal/plan"
)

// parse parses a plan without its first line.
func parse(t *testing.T, text string) *File {
	t.Helper()
	f, err := Parse("plan.yaml", []byte("thru: 1\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func expand(t *testing.T, text string) plan.Plan {
	t.Helper()
	p, err := parse(t, text).Expand(fleet(), func(string) Found { return Found{CPUs: 8} })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// fleet returns the hosts of a controller.
func fleet() map[string][]Host {
	return map[string][]Host{"fleet": {
		{Name: "w2", Labels: map[string]string{"role": "web", "site": "west"}, CPUs: 4},
		{Name: "w1", Labels: map[string]string{"role": "web", "site": "east"}, CPUs: 4},
		{Name: "d1", Labels: map[string]string{"role": "db", "site": "east"}, CPUs: 16},
	}}
}

// shown returns a plan in short: each step's label with its flows; > marks an end that dials, = both if
// either may.
func shown(p plan.Plan) []string {
	var out []string
	for _, s := range p.Steps {
		text := s.Label + ":"
		for _, o := range s.Specs {
			mark := map[bool]string{true: ">", false: "<"}[o.DialFrom]
			if o.Either {
				mark = "="
			}
			text += " " + o.From + mark + o.To
		}
		out = append(out, text)
	}
	return out
}

const four = "end_points: [{name: a, labels: {site: east}}, {name: b, labels: {site: east}}, {name: c, labels: {site: west}}, {name: d, labels: {site: west}}]\ntraffic: {streams: 1}\n"

func TestPairs(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"one to one":     {four + "order: simultaneous\npairs: [{from: [a, b], to: [c, d]}]", "2 pairs, 1 stream: a>c b>d"},
		"by labels":      {four + "order: simultaneous\npairs: [{from: {site: east}, to: {site: west}}]", "2 pairs, 1 stream: a>c b>d"},
		"one to many":    {four + "order: simultaneous\npairs: [{type: one-to-many, from: a, to: [b, c]}]", "2 pairs, 1 stream: a>b a>c"},
		"many to one":    {four + "order: simultaneous\npairs: [{type: many-to-one, from: [b, c], to: a}]", "2 pairs, 1 stream: b>a c>a"},
		"mesh":           {four + "order: simultaneous\npairs: [{type: mesh, among: [a, b, c]}]", "6 pairs, 1 stream: a>b a>c b>a b>c c>a c>b"},
		"ring":           {four + "order: simultaneous\npairs: [{type: ring}]", "4 pairs, 1 stream: a>b b>c c>d d>a"},
		"ring of two":    {four + "order: simultaneous\npairs: [{type: ring, among: [a, b]}]", "2 pairs, 1 stream: a>b b>a"},
		"matrix":         {four + "order: simultaneous\npairs: [{type: matrix, from: [a, b], to: [b, c]}]", "3 pairs, 1 stream: a>b a>c b>c"},
		"matrix by":      {four + "order: simultaneous\npairs: [{type: matrix, among: all, by: site}]", "8 pairs, 1 stream: a>c a>d b>c b>d c>a c>b d>a d>b"},
		"receiver dials": {four + "pairs: [{from: a, to: b, listen: from}]", "1 stream: a<b"},
		"either":         {four + "pairs: [{from: a, to: b, listen: either}]", "1 stream: a=b"},
		"to local":       {four + "pairs: [{from: a, to: local}]", "1 stream: a<local"},
		"local":          {four + "pairs: [{from: local, to: a, listen: either}]", "1 stream: local>a"},
		"itself":         {four + "pairs: [{from: a, to: a, listen: from}]", "1 stream: a>a"},
		"twice":          {four + "order: simultaneous\npairs: [{from: a, to: b}, {type: one-to-many, from: a, to: [b, c]}]", "2 pairs, 1 stream: a>b a>c"},
		"at once":        {four + "at_once: 8\npairs: [{type: mesh, among: all}]", "2 pairs, round 1 of 6, 1 stream: a>b c>d; 2 pairs, round 2 of 6, 1 stream: a>c b>d; 2 pairs, round 3 of 6, 1 stream: a>d b>c; 2 pairs, round 4 of 6, 1 stream: b>a d>c; 2 pairs, round 5 of 6, 1 stream: c>a d>b; 2 pairs, round 6 of 6, 1 stream: c>b d>a"},
		"iperf3":         {"end_points: [{name: x, at: 'iperf3://h'}]\ntraffic: {streams: 1}\npairs: [{from: x, to: local}]", "1 stream: x<local"},
		"a match":        {"controller: fleet\nend_points: [{match: {role: [web, db]}}]\norder: simultaneous\ntraffic: {streams: 1}\npairs: [{type: matrix, from: {role: web}, to: {role: db}}]", "2 pairs, 1 stream: w1>d1 w2>d1"},
	} {
		if got := strings.Join(shown(expand(t, c.text)), "; "); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

func TestDirections(t *testing.T) {
	const pair = "end_points: [a, b]\npairs: [{from: a, to: b}]\n"
	const dialled = "end_points: [a, b]\npairs: [{from: a, to: b, listen: from}]\n"
	const ring = "end_points: [a, b, c]\norder: simultaneous\npairs: [{type: mesh}]\n"
	for name, c := range map[string]struct{ text, want string }{
		"forward":       {pair + "traffic: {streams: 2}", "2 streams: a>b"},
		"reverse":       {pair + "traffic: {streams: 2, direction: reverse}", "2 streams, reverse: b<a"},
		"both":          {pair + "traffic: {streams: 2, direction: both}", "2 streams, forward: a>b; 2 streams, reverse: b<a"},
		"both, dialled": {dialled + "traffic: {streams: 2, direction: both}", "2 streams, forward: a<b; 2 streams, reverse: b>a"},
		"dialled, rev":  {dialled + "traffic: {streams: 2, direction: reverse}", "2 streams, reverse: b>a"},
		"bidir":         {pair + "traffic: {streams: 2, direction: bidir}", "2 streams, both directions at once: a>b b<a"},
		"mesh both":     {ring + "traffic: {streams: 1, direction: both}", "3 pairs, 1 stream, forward: a>b a>c b>c; 3 pairs, 1 stream, reverse: b<a c<a c<b"},
		"mesh bidir":    {ring + "traffic: {streams: 1, direction: bidir}", "3 pairs, 1 stream, both directions at once: a>b b<a a>c c<a b>c c<b"},
		"matrix both":   {"end_points: [a, b]\norder: simultaneous\npairs: [{type: matrix, from: all, to: all}]\ntraffic: {streams: 1, direction: bidir}", "1 stream, both directions at once: a>b b<a"},
		"some both":     {"end_points: [a, b, c]\norder: simultaneous\npairs: [{type: mesh}]\ntraffic: {streams: 1}\naxes: {direction: [forward, bidir]}", "6 pairs: a>b a>c b>a b>c c>a c>b; 3 pairs, both directions at once: a>b b<a a>c c<a b>c c<b"},
		"one by one":    {"end_points: [a, b]\npairs: [{type: mesh}]\ntraffic: {streams: 1}\naxes: {direction: [forward, bidir]}", "a -> b, forward: a>b; a -> b, both directions at once: a>b b<a; b -> a, forward: b>a"},
		"requests":      {dialled + "traffic: {kind: rr}", "1 asker: a<b"},
		"latency":       {pair + "traffic: {streams: 1, latency: true}", "latency, idle: a>b; 1 stream: a>b a>b"},
		"latency, many": {ring + "traffic: {streams: 1, latency: true, direction: bidir}", "3 pairs, latency, idle: a>b a>c b>c; 3 pairs, 1 stream, both directions at once: a>b b<a a>b a>c c<a a>c b>c c<b b>c"},
	} {
		if got := strings.Join(shown(expand(t, c.text)), "; "); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

// TestStepOfOnePair: the two flows of a pair start together, as those of many pairs do, and have a sum; in a
// plan of several pairs the label of a step names its pair, those of its cells do not.
func TestStepOfOnePair(t *testing.T) {
	s := expand(t, "end_points: [a, b]\npairs: [{from: a, to: b}]\ntraffic: {streams: 2, direction: bidir}").Steps[0]
	if want := []string{"2 streams, both directions at once", "2 streams, both directions at once, back"}; !s.Independent || !slices.Equal(s.Labels, want) {
		t.Errorf("%v %q", s.Independent, s.Labels)
	}
	s = expand(t, "end_points: [a, b, c]\npairs: [{type: mesh}]\ntraffic: {streams: 2}").Steps[3]
	if s.Independent || s.Label != "b -> c, 2 streams" || !slices.Equal(s.Labels, []string{"2 streams"}) {
		t.Errorf("%v %q %q", s.Independent, s.Label, s.Labels)
	}
}

func TestAxes(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"product": {"pairs: [{from: local, to: local}]\naxes: {streams: [1, 2], window: [default, 800K]}", []string{
			"1 stream, default window", "1 stream, 800 KiB window", "2 streams, default window", "2 streams, 800 KiB window"}},
		"cpus":       {"pairs: [{from: local, to: local}]\naxes: {cpus: [1, 2, 8]}", []string{"1 CPU", "2 CPUs", "4 streams, 8 CPUs"}},
		"variants":   {"pairs: [{from: local, to: local}]\norder: interleaved\nvariants: [{name: x, congestion: cubic}, {name: y, congestion: reno}]\naxes: {streams: [1, 2]}", []string{"1 stream, x", "1 stream, y", "2 streams, x", "2 streams, y"}},
		"end points": {"pairs: [{from: local, to: local}]\ntraffic: {streams: 1}\naxes: {end_points: [1, 2]}", []string{"1 end point a host", "2 end points a host"}},
		"direction":  {"pairs: [{from: local, to: local}]\ntraffic: {streams: 2}\naxes: {direction: [forward, bidir]}", []string{"2 streams", "2 streams, both directions at once"}},
		"others":     {"pairs: [{from: local, to: local}]\naxes: {dscp: [ef], ip: [4], mss: [1400], protocol: [tcp], congestion: [default], length: [64K/128K], kind: [rr]}", []string{"DSCP ef, IPv4, MSS 1400, TCP, default congestion, 64K/128K length, requests"}},
	} {
		var got []string
		for _, s := range expand(t, c.text).Steps {
			got = append(got, s.Label)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", name, got, c.want)
		}
	}
}

// TestEndPointsAHost: the copies of a pair are separate flows.
func TestEndPointsAHost(t *testing.T) {
	p := expand(t, four+"order: simultaneous\npairs: [{type: many-to-one, from: [b, c], to: a}]\naxes: {end_points: [2], streams: [3]}")
	s := p.Steps[0]
	if !s.Independent || len(p.Steps) != 1 || s.Label != "2 pairs, 2 end points a host, 3 streams" {
		t.Errorf("%+v", s)
	}
	if got := shown(p)[0]; got != s.Label+": b>a b>a c>a c>a" {
		t.Error(got)
	}
	if want := []string{"2 end points a host, 3 streams, end point 1 of 2", "2 end points a host, 3 streams, end point 2 of 2"}; !slices.Equal(s.Labels[:2], want) {
		t.Errorf("labels %q", s.Labels)
	}
	if want := []measure.Axis{{Name: "end_points", Value: "2"}, {Name: "streams", Value: "3"}}; !slices.Equal(s.Axes, want) {
		t.Errorf("axes %v", s.Axes)
	}
}

// TestTraffic: the keys of the traffic reach the flows as the flags of `thru test` do.
func TestTraffic(t *testing.T) {
	const all = `pairs: [{from: local, to: local}]
traffic: {time: 3s, ramp: 0, streams: 2, window: 1M/256K, length: 64K, bitrate: 500M, congestion: reno, mss: 1400, no_delay: true,
  dscp: af41, ip: 6, affinity: "1,2", io: sendfile, client_port: 40000, together: true, cpus: 2, verify: false}`
	s := expand(t, all).Steps[0].Specs[0]
	want := measure.Spec{
		From: "local", To: "local", DialFrom: true, Engine: "native", Protocol: "tcp", IO: "sendfile", Streams: 2, Window: measure.Pair{Send: 1 << 20, Recv: 256 << 10},
		Length: measure.Pair{Send: 64 << 10, Recv: 64 << 10}, Duration: int64(3 * time.Second), NoRamp: true, Interval: int64(time.Second), Family: 6, Rate: 1_000_000_000,
		Congestion: "reno", MSS: 1400, NoDelay: true, DSCP: 34, SenderCPU: new(1), ReceiverCPU: new(2), SenderCPUs: "0-1", ReceiverCPUs: "0-1", BindPort: 40000, Together: true,
	}
	a, _ := json.Marshal(s)
	b, _ := json.Marshal(want)
	if string(a) != string(b) {
		t.Errorf("\n got %s\nwant %s", a, b)
	}
	for text, holds := range map[string]func(measure.Spec) bool{
		"protocol: udp": func(s measure.Spec) bool {
			return s.Protocol == "udp" && s.Rate == plan.DefaultDatagramRate && s.Streams == 1
		},
		"{protocol: udp, total_bitrate: 2G, streams: 4}": func(s measure.Spec) bool { return s.Rate == 2_000_000_000 && s.Streams == 4 },
		"{protocol: udp, search: true}":                  func(s measure.Spec) bool { return s.Search && s.Rate == 0 },
		"{kind: rr, rate: 100, length: 64/512}":          func(s measure.Spec) bool { return s.Traffic == "rr" && s.PerSecond == 100 && s.Length.Recv == 512 },
		"{bytes: 1G}":                                    func(s measure.Spec) bool { return s.Amount == 1<<30 && s.NoRamp },
		"{blocks: 10}":                                   func(s measure.Spec) bool { return s.Amount == 10*measure.DefaultLength },
		"{affinity: off}":                                func(s measure.Spec) bool { return s.Unplaced && s.SenderCPU == nil },
		"{affinity: 3}":                                  func(s measure.Spec) bool { return *s.SenderCPU == 3 && *s.ReceiverCPU == 3 },
		"{io: portable}":                                 func(s measure.Spec) bool { return s.IOForced },
		"{time: 2}":                                      func(s measure.Spec) bool { return s.Duration == int64(2*time.Second) && s.Streams == 4 },
	} {
		if !strings.HasPrefix(text, "{") {
			text = "{" + text + "}"
		}
		if s := expand(t, "pairs: [{from: local, to: local}]\ntraffic: "+text).Steps[0].Specs[0]; !holds(s) {
			t.Errorf("%s: %+v", text, s)
		}
	}
}

func TestHead(t *testing.T) {
	p := expand(t, `name: x
pairs: [{from: local, to: local}]
gates: off
link_rate: 1G/l2
precision: 2.5%
repeat: 4
axes: {streams: [1, 8]}
targets: [{aggregate: ">= 9G"}, {pair: ">= 95%", where: {streams: 8}}, {host: ">=1G"}, {loss: "<= 0.1%"}, {rtt_loaded: "<= 5ms"}, {fairness: ">= 0.9"}]`)
	if p.Command != "run" || p.Name != "x" || p.Gates != plan.GatesOff || p.Link != (plan.Link{RateBps: 1e9, Layer: "l2"}) || p.Order != plan.OrderSequential {
		t.Errorf("%+v", p)
	}
	if p.Repeat != (plan.Repeat{Min: 5, Max: 15, PrecisionPct: 2.5}) {
		t.Errorf("repeat %+v", p.Repeat)
	}
	want := []plan.Target{
		{Of: "total", Figure: "goodput_bps", Wanted: 9e9}, {Of: "pair", Figure: "share_pct", Wanted: 95, Where: []measure.Axis{{Name: "streams", Value: "8"}}},
		{Of: "host", Figure: "goodput_bps", Wanted: 1e9}, {Of: "pair", Figure: "loss_pct", Wanted: 0.1, AtMost: true},
		{Of: "pair", Figure: "rtt_loaded_ns", Wanted: 5e6, AtMost: true}, {Of: "total", Figure: "jain_fairness", Wanted: 0.9},
	}
	if fmt.Sprint(p.Targets) != fmt.Sprint(want) {
		t.Errorf("targets %+v", p.Targets)
	}
}

func TestLadderFile(t *testing.T) {
	p := expand(t, "end_points: [a, b]\nrungs: [{name: localhost, pair: [a, a]}, {name: LAN, pair: [a, b], link_rate: 25G}, {name: here, pair: [a, local]}]\ntargets: [{pair: \">= 95%\", rung: LAN, where: {window: 800K}}]")
	if len(p.Steps) != 24 || p.Steps[8].Rung != "LAN" || p.Steps[8].Link.RateBps != 25e9 || p.Steps[8].Label != "1 stream, default window" || p.Steps[0].Specs[0].Duration != int64(time.Minute) {
		t.Errorf("%d steps, %+v", len(p.Steps), p.Steps[8])
	}
	if s := p.Steps[16].Specs[0]; s.From != "a" || s.DialFrom {
		t.Errorf("to local: %+v", s)
	}
	if want := []measure.Axis{{Name: "streams", Value: "1"}, {Name: "window", Value: "800K"}}; !slices.Equal(p.Steps[4].Axes, want) {
		t.Errorf("axes %v", p.Steps[4].Axes)
	}
}

// TestAddresses: all forms of an address are accepted, and a title with spaces.
func TestAddresses(t *testing.T) {
	for _, at := range []string{"10.0.0.1", "10.0.0.1:5201", "host", "host:1", "::1", "fe80::1%eth0", "[::1]", "[fd00::1]:5201", "fleet/w1",
		"ssh://h", "ssh://root@h", "ssh://root@[fd00::1]:22", "ssh://fd00::1", "iperf3://h:5201", "iperf2://[::1]", "iperf3://::1"} {
		f := parse(t, "name: 'two sites, 10 G'\nend_points: [{name: a, at: '"+at+"'}]\npairs: [{from: local, to: a}]")
		if _, err := f.Expand(fleet(), nil); err != nil || f.Name != "two sites, 10 G" {
			t.Errorf("%s: %v, %q", at, err, f.Name)
		}
	}
}

func TestEndPoints(t *testing.T) {
	p := expand(t, `controller: fleet
end_points: [{name: x, at: w1, labels: {site: lab}}, {match: all}, "ssh://root@10.0.0.1", {name: z, at: 10.0.0.9, data: 10.1.0.9}]
pairs: [{type: ring}, {from: local, to: x}]`)
	var got []string
	for _, e := range p.EndPoints {
		got = append(got, fmt.Sprintf("%s@%s%v%s", e.Name, e.At, e.Labels, e.DataAddr))
	}
	want := []string{"local@localmap[]", "x@fleet/w1map[role:web site:lab]", "ssh://root@10.0.0.1@ssh://root@10.0.0.1map[]", "z@10.0.0.9map[]10.1.0.9", "d1@fleet/d1map[role:db site:east]", "w2@fleet/w2map[role:web site:west]"}
	if !slices.Equal(got, want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
	if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "no host 10.0.0.9") {
		t.Errorf("warnings %q", p.Warnings)
	}
}

func TestWarnings(t *testing.T) {
	for want, text := range map[string]string{
		"in no pair: c":                                   "end_points: [a, b, c]\npairs: [{from: a, to: b}]\ntraffic: {streams: 1}",
		"a against itself is a path":                      "end_points: [a]\npairs: [{from: a, to: a}]\ntraffic: {streams: 1}",
		"named more than once, and measured once: 1 pair": "end_points: [a, b]\npairs: [{from: a, to: b}, {from: a, to: b}]\ntraffic: {streams: 1}",
		"fewer than 6 repeats":                            "pairs: [{from: local, to: local}]\norder: interleaved\nrepeat: 2\naxes: {streams: [1, 2]}",
	} {
		if p := expand(t, text); len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], want) {
			t.Errorf("%s: warnings %q", want, p.Warnings)
		}
	}
	p, err := parse(t, "pairs: [{from: local, to: local}]").Expand(nil, nil)
	if err != nil || len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "not known yet") {
		t.Errorf("without CPUs: %q, %v", p.Warnings, err)
	}
}

// TestHasten: Hasten limits every run, so that a plan can be tried out.
func TestHasten(t *testing.T) {
	f := parse(t, "pairs: [{from: local, to: local}]\nrepeat: 5\nprecision: 2%\naxes: {time: [60, 0.2], streams: [1, 2]}\ntraffic: {latency: true}")
	slow, _ := f.Expand(nil, nil)
	f.Hasten(300 * time.Millisecond)
	p, err := f.Expand(nil, nil)
	if err != nil || p.Repeat != (plan.Repeat{Min: 1, Max: 1}) || len(p.Steps) != len(slow.Steps) {
		t.Fatalf("%v, %+v", err, p.Repeat)
	}
	for _, s := range p.Steps {
		for _, o := range s.Specs {
			if o.Duration > int64(300*time.Millisecond) || !o.NoRamp {
				t.Errorf("%s takes %v", s.Label, time.Duration(o.Duration))
			}
		}
	}
	if p.Time() > 4*time.Second || p.Time() >= slow.Time() {
		t.Errorf("takes %v, otherwise %v", p.Time(), slow.Time())
	}
}

// TestDeterministic: the same file gives the same bytes.
func TestDeterministic(t *testing.T) {
	const text = four + "at_once: 3\npairs: [{type: mesh, among: all}, {type: matrix, by: site}]\naxes: {streams: [1, 2], window: [default, 64K]}\nvariants: [{name: x, no_delay: true}, {name: y, dscp: ef}]"
	first, _ := json.Marshal(expand(t, text))
	for range 20 {
		if again, _ := json.Marshal(expand(t, text)); string(again) != string(first) || len(first) < 1000 {
			t.Fatal("two plans of one file differ")
		}
	}
}

// TestPack: no host is in two pairs of a round, no pair is lost, and rounds are full if possible.
func TestPack(t *testing.T) {
	for hosts := 2; hosts < 40; hosts += 5 {
		for _, n := range []int{1, 2, 3, 16} {
			var list []plan.Pair
			for a := range hosts {
				for b := range hosts {
					if a != b {
						list = append(list, plan.Pair{From: fmt.Sprint(a), To: fmt.Sprint(b)})
					}
				}
			}
			count := 0
			rounds := pack(list, n, func(s string) string { return s })
			for _, r := range rounds {
				busy := map[string]bool{}
				for _, p := range r {
					if busy[p.From] || busy[p.To] {
						t.Errorf("%d hosts, %d at once: %v share a host", hosts, n, r)
					}
					busy[p.From], busy[p.To] = true, true
				}
				if count += len(r); len(r) > n {
					t.Errorf("%d pairs in a round of %d", len(r), n)
				}
			}
			if least := len(list) / min(n, hosts/2); count != len(list) || len(rounds) > 3*least+3 {
				t.Errorf("%d hosts, %d at once: %d of %d pairs in %d rounds", hosts, n, count, len(list), len(rounds))
			}
		}
	}
	var star []plan.Pair
	for i := range mostPairs {
		star = append(star, plan.Pair{From: "hub", To: fmt.Sprint(i)})
	}
	if rounds := pack(star, 16, func(s string) string { return s }); len(rounds) != mostPairs {
		t.Errorf("a star has %d rounds", len(rounds))
	}
}
