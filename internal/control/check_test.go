package control

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
)

// memory is a PathCache without age.
type memory map[string]measure.Path

func (m memory) Load(key string) (measure.Path, bool) { p, ok := m[key]; return p, ok }
func (m memory) Drop(key string)                      { delete(m, key) }
func (m memory) Keep(key string, p measure.Path)      { m[key] = p }

// probed returns a local agent whose probe finds a path that drops jumbo frames, or not.
func probed(claimed, found int) *fakeAgent {
	a := newAgent("local")
	a.path.Path = measure.Path{
		Forward: measure.DirectionFacts{Route: &measure.Route{Interface: "eth0", MTU: claimed}, MTU: &measure.PathMTU{Bytes: found, Claimed: claimed, Silent: found < claimed}},
		Back:    measure.DirectionFacts{Route: &measure.Route{Interface: "eth0", MTU: claimed}, MTU: &measure.PathMTU{Bytes: claimed, Claimed: claimed}},
	}
	return a
}

func gateOf(doc *measure.Document, status string) []string {
	var ids []string
	for _, g := range doc.Gates {
		if g.Status == status {
			ids = append(ids, g.ID)
		}
	}
	return ids
}

// A check takes both turns, has the peer answer and the local agent dial, judges, and
// gives the turns back.
func TestCheck(t *testing.T) {
	local, peer := probed(1500, 1500), newAgent("peer")
	r := Runner{Ends: pairOf(local, peer), Watch: &quiet{}}
	doc, err := r.Check(t.Context(), Probing{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"reserve", "answer", "release"}; !slices.Equal(peer.asked(), want) {
		t.Errorf("the peer was asked %q", peer.asked())
	}
	if want := []string{"reserve", "probe 10.0.0.2:5210 [fd00::2]:5210 probe token", "release"}; !slices.Equal(local.asked(), want) {
		t.Errorf("the local agent was asked %q", local.asked())
	}
	if len(doc.Paths) != 1 || doc.Paths[0].From != Local || doc.Paths[0].To != "peer" || len(doc.EndPoints) != 2 || len(gateOf(doc, measure.GatePass)) == 0 || doc.Error != nil {
		t.Errorf("%+v", doc)
	}
}

func TestCheckFails(t *testing.T) {
	local, peer := probed(9000, 1500), newAgent("peer")
	r := Runner{Ends: pairOf(local, peer), Watch: &quiet{}}
	doc, err := r.Check(t.Context(), Probing{}, 0)
	if fault.Code(err) != fault.Verdict || doc.Error == nil || doc.Error.ExitCode != fault.Verdict || len(gateOf(doc, measure.GateFail)) == 0 {
		t.Fatalf("%v, %+v", err, doc.Gates)
	}
	r.Gating = &Gating{Skip: gateOf(doc, measure.GateFail)}
	if doc, err := r.Check(t.Context(), Probing{}, 0); err != nil {
		t.Errorf("without the gates that fail: %v, %+v", err, doc.Gates)
	}
}

// Where the path cannot be probed, the hosts are still judged, and each gate of the
// path says why it is not.
func TestCheckWithoutPath(t *testing.T) {
	local := newAgent("local")
	local.probe = errors.New("no answer from 10.0.0.2:5210")
	r := Runner{Ends: pairOf(local, newAgent("peer")), Watch: &quiet{}}
	doc, err := r.Check(t.Context(), Probing{}, 0)
	if fault.Code(err) != fault.Failed || len(doc.Paths) != 0 {
		t.Errorf("%v, %d paths", err, len(doc.Paths))
	}
	if !slices.ContainsFunc(doc.Gates, func(g measure.Gate) bool {
		return g.ID == "mtu-path" && g.Status == measure.GateNotChecked && strings.Contains(g.Fact, doc.Missing[0].Why) && g.To == "peer"
	}) {
		t.Errorf("gates %+v", doc.Gates)
	}
	if !slices.ContainsFunc(doc.Missing, func(n measure.NotChecked) bool { return n.Fact == "paths" && n.Why != "" }) {
		t.Errorf("nothing says why there is no path: %+v", doc.Missing)
	}
}

func gated(t *testing.T, local, peer *fakeAgent, g *Gating) (*measure.Document, error) {
	t.Helper()
	p, err := plan.Test(request())
	if err != nil {
		t.Fatal(err)
	}
	r := Runner{Ends: pairOf(local, peer), Watch: &quiet{}, Gating: g}
	return r.Run(t.Context(), p)
}

// A failed gate stops a test before any traffic; with --force it runs, and the result
// says so.
func TestGatesBeforeTraffic(t *testing.T) {
	local, peer := probed(9000, 1500), newAgent("peer")
	doc, err := gated(t, local, peer, &Gating{})
	if fault.Code(err) != fault.Verdict || !strings.Contains(fault.Hint(err), "--force") || len(gateOf(doc, measure.GateFail)) == 0 {
		t.Errorf("%v; hint %q", err, fault.Hint(err))
	}
	if slices.ContainsFunc(local.asked(), func(s string) bool { return strings.HasPrefix(s, "dial") || strings.HasPrefix(s, "start") }) {
		t.Errorf("there was traffic: %q", local.asked())
	}
	local = probed(9000, 1500)
	doc, err = gated(t, local, peer, &Gating{Force: true})
	if err != nil || !doc.Forced || doc.Cells[0].Goodput == nil || len(doc.Warnings) == 0 {
		t.Errorf("forced: %v, %+v", err, doc)
	}
	if doc, err = gated(t, probed(1500, 1500), newAgent("peer"), &Gating{}); err != nil || doc.Forced || len(doc.Paths) != 1 {
		t.Errorf("a good path: %v, %+v", err, doc)
	}
}

// The probe of a path is reused until something changes at its ends.
func TestPathIsKept(t *testing.T) {
	cache := memory{}
	for n, c := range []struct {
		mtu    int
		probes int
	}{{1500, 1}, {1500, 0}, {9000, 1}} {
		local := probed(1500, 1500)
		local.facts.Interfaces = []measure.Interface{{Name: "eth0", MTU: &c.mtu}}
		doc, err := gated(t, local, newAgent("peer"), &Gating{Paths: cache})
		if err != nil {
			t.Fatal(err)
		}
		probes := 0
		for _, s := range local.asked() {
			if strings.HasPrefix(s, "probe") {
				probes++
			}
		}
		if probes != c.probes || len(doc.Paths) != 1 || doc.Paths[0].Cached != (c.probes == 0) {
			t.Errorf("run %d: %d probes, %+v", n, probes, doc.Paths)
		}
	}
}

// A kept probe rejects no path that has been fixed since, or after a change of route; a
// check renews it for later tests.
func TestKeptPathIsNoLastWord(t *testing.T) {
	cache := memory{}
	probes := func(a *fakeAgent) (n int) {
		for _, s := range a.asked() {
			if strings.HasPrefix(s, "probe") {
				n++
			}
		}
		return n
	}
	if _, err := gated(t, probed(9000, 1500), newAgent("peer"), &Gating{Paths: cache}); fault.Code(err) != fault.Verdict {
		t.Fatal(err)
	}
	local := probed(9000, 9000)
	if _, err := gated(t, local, newAgent("peer"), &Gating{Paths: cache}); err != nil || probes(local) != 1 {
		t.Errorf("mended: %v, %d probes", err, probes(local))
	}
	silent := probed(9000, 9000)
	silent.path.Path.Forward.UDP = &measure.UDPReach{Sent: 8}
	warned := memory{}
	if doc, err := gated(t, silent, newAgent("peer"), &Gating{Paths: warned}); err != nil || !slices.Contains(gateOf(doc, measure.GateWarn), "udp-reach") {
		t.Fatal(err, doc.Gates)
	}
	local = probed(9000, 9000)
	if doc, err := gated(t, local, newAgent("peer"), &Gating{Paths: warned}); err != nil || probes(local) != 1 || slices.Contains(gateOf(doc, measure.GateWarn), "udp-reach") {
		t.Errorf("UDP passes again: %v, %d probes, %+v", err, probes(local), doc.Gates)
	}
	local = probed(9000, 9000)
	local.route = &measure.Route{Interface: "eth9"}
	if _, err := gated(t, local, newAgent("peer"), &Gating{Paths: cache}); err != nil || probes(local) != 1 {
		t.Errorf("another route: %v, %d probes", err, probes(local))
	}
	local = probed(9000, 9000)
	local.prepare = errors.New("no data came")
	kept := memory{}
	if _, err := gated(t, local, newAgent("peer"), &Gating{Paths: kept}); err == nil || len(kept) != 0 {
		t.Errorf("a path on which a test has failed is kept: %v, %d", err, len(kept))
	}
	r := Runner{Ends: pairOf(probed(1500, 1500), newAgent("peer")), Watch: &quiet{}, Gating: &Gating{Paths: memory{}}}
	if _, err := r.Check(t.Context(), Probing{}, 0); err != nil {
		t.Fatal(err)
	}
	local = probed(1500, 1500)
	if _, err := gated(t, local, newAgent("peer"), &Gating{Paths: r.Gating.Paths}); err != nil || probes(local) != 0 {
		t.Errorf("after a check: %v, %d probes", err, probes(local))
	}
}

// The turn is taken once for the probe and the first run, shared if all clients agree,
// and is given back where a gate fails.
func TestGatesKeepTheTurn(t *testing.T) {
	local, peer := probed(1500, 1500), newAgent("peer")
	if _, err := gated(t, local, peer, &Gating{}); err != nil {
		t.Fatal(err)
	}
	first := slices.Index(peer.asked(), "release")
	if want := []string{"reserve", "answer", "reserve"}; first < 0 || !slices.Equal(peer.asked()[:3], want) || !strings.HasPrefix(peer.asked()[3], "listen") {
		t.Errorf("asked %q", peer.asked())
	}
	peer = newAgent("peer")
	gated(t, probed(9000, 1500), peer, &Gating{})
	if want := []string{"reserve", "answer", "release"}; !slices.Equal(peer.asked(), want) {
		t.Errorf("where a gate fails: asked %q", peer.asked())
	}
}

// A requested gate that does not apply is reported as not checked.
func TestOnlyWhatDoesNotApply(t *testing.T) {
	r := Runner{Ends: pairOf(probed(1500, 1500), newAgent("peer")), Watch: &quiet{}, Gating: &Gating{Only: []string{"duplex"}}}
	doc, err := r.Check(t.Context(), Probing{}, 0)
	if err != nil || len(doc.Gates) != 1 || doc.Gates[0].ID != "duplex" || doc.Gates[0].Status != measure.GateNotChecked || doc.Gates[0].Fact == "" {
		t.Errorf("%v, %+v", err, doc.Gates)
	}
}

// A program that serves one client at a time is not probed before a test.
func TestForeignEndIsNotProbed(t *testing.T) {
	local := newAgent("local")
	local.evidence = reports
	p, err := plan.Test(request())
	if err != nil {
		t.Fatal(err)
	}
	r := Runner{Ends: withForeign(local), Watch: &quiet{}, Gating: &Gating{}}
	doc, err := r.Run(t.Context(), p)
	if err != nil || len(doc.Paths) != 0 {
		t.Error(err, doc.Paths)
	}
	if slices.ContainsFunc(local.asked(), func(s string) bool { return strings.HasPrefix(s, "probe") }) {
		t.Errorf("asked %q", local.asked())
	}
}
