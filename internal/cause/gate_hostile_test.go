package cause

import (
	"encoding/json"
	"fmt"
	"math"
	rand "math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"thru/internal/cause/gate"
	"thru/internal/cause/scene"
	"thru/internal/measure"
)

// evil marks text that must never get into a command.
const evil = "EVIL"

// filler makes values of any type of the vocabulary: nil pointers, absurd numbers, text that a shell would
// interpret.
type filler struct{ *rand.Rand }

func (r filler) text() string {
	pool := []string{"", "eth0", "eth0", "lo", "br0", "bond0", "linux", "linux", "freebsd", "windows", "solaris", "illumos", "darwin", "esxi", "kvm", "none",
		"physical", "physical", "paravirtual", "emulated", "veth", "bond", "bridge", "loopback", "e1000", "bbr", "cubic", "netem", "tbf", "half", "full", "layer2",
		"802.3ad", "powersave", "intel_pstate", "hpet", "docker", "kubernetes", "/a/b", "local", "peer", "rx-0", "rx-1", "0", "1", "-1", "99999999999999999999",
		"4.9.0-1", "6", "4096 16384 4194304", "4096 x 9223372036854775807", "Disabled", "0x8086", "0x100f", "192.0.2.1:1", "fe80::1",
		"eth0; rm -rf / EVIL", "$(EVIL)", "`EVIL`", "-EVIL", "a b EVIL", "'EVIL'", "\"EVIL", "EVIL\nEVIL", "EVIL>x", "EVIL|x", "\x1b[2JEVIL", "\xffEVIL", "EVIL/../..",
		strings.Repeat("EVIL", 500)}
	return pool[r.IntN(len(pool))]
}

func (r filler) int() int64 {
	pool := []int64{0, 1, 2, 3, 4, 8, 64, 1400, 1500, 9000, 65535, 100, 1e5, 1e6, 20e6, 1e9, 10e9, 25e9, -1, -1500, math.MinInt64, math.MaxInt64, math.MaxInt32}
	return pool[r.IntN(len(pool))]
}

func (r filler) float() float64 {
	pool := []float64{0, 0.5, 1, 2.5, 50, 97, 100, 1e9, -1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, 5e-324}
	return pool[r.IntN(len(pool))]
}

func (r filler) fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if r.IntN(4) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			r.fill(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				r.fill(v.Field(i))
			}
		}
	case reflect.Slice:
		for range r.IntN(4) {
			e := reflect.New(v.Type().Elem()).Elem()
			r.fill(e)
			v.Set(reflect.Append(v, e))
		}
	case reflect.Map:
		if r.IntN(4) == 0 {
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		keys := []string{"net.ipv4.tcp_rmem", "net.ipv4.tcp_window_scaling", "kern.ipc.maxsockbuf", "net.inet.tcp.recvbuf_max", "tcp.recv_buf",
			"Internet.AutoTuningLevelLocal", "tcp-segmentation-offload", "large-receive-offload", "rx_crc_errors", "rx_missed_errors", "udp4", "3", "EVIL; key"}
		for _, k := range keys {
			if r.IntN(2) == 0 && v.Type().Key().Kind() == reflect.String {
				e := reflect.New(v.Type().Elem()).Elem()
				r.fill(e)
				v.SetMapIndex(reflect.ValueOf(k), e)
			}
		}
	case reflect.String:
		v.SetString(r.text())
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(r.int())
	case reflect.Uint64:
		v.SetUint(uint64(r.int()))
	case reflect.Float64:
		v.SetFloat(r.float())
	}
}

// spoil replaces one part in twenty of a sensible value.
func (r filler) spoil(v reflect.Value) {
	if r.IntN(20) == 0 {
		r.fill(v)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			r.spoil(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				r.spoil(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			r.spoil(v.Index(i))
		}
	}
}

// hostileSubject is a subject with some or no sensible values.
func hostileSubject(seed uint64) scene.Subject {
	r := filler{rand.New(rand.NewPCG(seed, 5))}
	if seed%2 == 1 {
		s := serverPair()
		if seed%4 == 1 {
			wan(&s)
		}
		r.spoil(reflect.ValueOf(&s).Elem())
		return s
	}
	s := scene.Subject{LinkBps: r.int(), LinkL2: r.IntN(2) == 0, Streams: int(r.int())}
	for range r.IntN(4) {
		e := scene.End{Name: r.text(), Shared: r.IntN(4) == 0}
		for _, v := range []any{&e.Facts, &e.Route, &e.Costs, &e.Placements} {
			r.fill(reflect.ValueOf(v).Elem())
		}
		s.Ends = append(s.Ends, e)
	}
	r.fill(reflect.ValueOf(&s.Path).Elem())
	return s
}

// checkGates returns the gates after it has checked what must be true of all, whatever the facts.
func checkGates(t *testing.T, s scene.Subject) []measure.Gate {
	t.Helper()
	gates := Judge(s)
	if again := Judge(s); !reflect.DeepEqual(gates, again) {
		t.Error("the same facts give other gates")
	}
	if !slices.IsSortedFunc(gates, func(a, b measure.Gate) int { return gate.Rank(a.Status) - gate.Rank(b.Status) }) {
		t.Error("not sorted")
	}
	for _, g := range gates {
		if gate.Rank(g.Status) < 0 || g.ID == "" || g.Fact == "" || g.Why == "" {
			t.Errorf("incomplete: %+v", g)
		}
		if !utf8.ValidString(g.Fact) || strings.ContainsAny(g.Fact+g.Why, "\n\x1b") || utf8.RuneCountInString(g.Fact) > gate.LongestLine+3 {
			t.Errorf("not one line of text: %q", g.Fact)
		}
		for _, line := range append(slices.Clone(g.Fix), g.Risk, g.Advice) {
			if strings.Contains(line, evil) {
				t.Errorf("text of a host in a command: %s", gateText(g))
			}
		}
		if strings.Contains(g.Fact, "NaN") || strings.Contains(g.Fact, "%!") || strings.Contains(strings.Join(g.Fix, ""), "%!") {
			t.Errorf("no words: %s", gateText(g))
		}
	}
	if _, err := json.Marshal(gates); err != nil {
		t.Error(err)
	}
	return gates
}

func TestHostileFacts(t *testing.T) {
	seen := map[string]bool{}
	seeds := uint64(2000)
	if testing.Short() {
		seeds = 400
	}
	for seed := range seeds {
		s := hostileSubject(seed)
		for _, g := range checkGates(t, s) {
			seen[g.ID] = true
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	for _, r := range Gates() { // otherwise the facts were so absurd that no rule looked at them
		if !seen[r.ID] {
			t.Errorf("%s was never reached", r.ID)
		}
	}
}

// TestThousands: a bridge with very many ports is judged in one walk; a search of all interfaces for each port
// would take minutes.
func TestThousands(t *testing.T) {
	const ports = 200_000
	s := serverPair()
	bridge := measure.Interface{Name: "br0", Kind: new("bridge"), Up: new(true), Bridge: &measure.Bridge{}}
	f := s.Ends[0].Facts
	for n := range ports {
		bridge.Bridge.Ports = append(bridge.Bridge.Ports, fmt.Sprintf("tap%d", n))
		f.Interfaces = append(f.Interfaces, measure.Interface{Name: fmt.Sprintf("tap%d", n), Kind: new("tun"), Up: new(true)})
	}
	f.Interfaces = append(f.Interfaces, bridge)
	s.Ends[0].Route = &measure.Route{Interface: "br0"}
	done := make(chan []measure.Gate)
	go func() { done <- Judge(s) }()
	select {
	case gates := <-done:
		if g, there := of(gates, "link-up"); !there || g.Interface != "br0" {
			t.Errorf("%s", gateText(g))
		}
	case <-time.After(time.Minute):
		t.Fatal("each port is searched for among all interfaces")
	}
}

// FuzzJudge reads facts and a path as they come from another host.
func FuzzJudge(f *testing.F) {
	for _, s := range []scene.Subject{serverPair(), pair(kvmGuest, "eth0", 1e6, 1500), pair(freeBSD, "vmx0", 1e6, 1500), hostileSubject(7)} {
		if len(s.Ends) == 0 {
			continue
		}
		facts, _ := json.Marshal(s.Ends[0].Facts)
		path, _ := json.Marshal(s.Path)
		f.Add(facts, path, int64(10e9), false)
	}
	f.Fuzz(func(t *testing.T, facts, path []byte, link int64, shared bool) {
		if strings.Contains(string(facts)+string(path), "%!") || strings.Contains(string(facts)+string(path), "NaN") {
			t.Skip("text that the check takes for a mistake of ours")
		}
		var fs measure.Facts
		var p measure.Path
		if json.Unmarshal(facts, &fs) != nil || json.Unmarshal(path, &p) != nil {
			return
		}
		s := scene.Subject{LinkBps: link, Path: &p, Ends: []scene.End{{Name: p.From, Facts: &fs, Route: p.Forward.Route, Shared: shared}, {Name: p.To, Facts: &fs, Shared: shared}}}
		checkGates(t, s)
	})
}
