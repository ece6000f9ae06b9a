package cause

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/transfer"
)

// causeIDs returns the ids of the catalogue of causes.
func causeIDs() []string {
	return strings.Fields(`sender-cpu receiver-cpu single-flow too-many-streams irq-one-cpu numa-remote cpu-governor cpu-steal cpu-quota memory-pressure
		disk broken-tso cpu-limit lro-forwarding offloads-off emulated-nic wrong-driver too-few-queues rss-not-spreading ring-overflow backlog-overflow pcie vswitch
		netqueue-off interrupt-moderation firewall-cost receive-window slow-reader send-buffer loss paced policer shaper link-rate link-negotiated-low mss-clamp
		tcp-proxy vpn-cpu asymmetric-route token-bucket window-scaling-off fixed-window sack-off timestamps-off reordering app-limited slow-convergence
		mtu-black-hole jumbo-mismatch lag-one-member duplex bad-link pause-frames noisy-neighbour measurement
		network client cipher-cpu round-trips`)
}

// TestEveryCause: each cause has one rule, of flows or of transfers.
func TestEveryCause(t *testing.T) {
	var listed []string
	for _, r := range Causes() {
		listed = append(listed, r.Cause)
	}
	for _, r := range transfer.Causes() {
		listed = append(listed, r.Cause)
	}
	want := causeIDs()
	slices.Sort(listed)
	slices.Sort(want)
	for _, id := range want {
		if n := len(slices.DeleteFunc(slices.Clone(listed), func(s string) bool { return s != id })); n != 1 {
			t.Errorf("%s is told %d times", id, n)
		}
	}
	for _, id := range listed {
		if !slices.Contains(want, id) {
			t.Errorf("%s is no cause of the catalogue", id)
		}
	}
}

// TestCatalogueOfCauses: every rule can be listed, and names only existing ids.
func TestCatalogueOfCauses(t *testing.T) {
	id := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	for _, r := range Causes() {
		if r.Judge == nil || !r.TCP && !r.UDP {
			t.Errorf("half a rule: %+v", r)
		}
	}
	for _, r := range slices.Concat(Causes(), transfer.Causes()) {
		if !id.MatchString(r.Cause) {
			t.Errorf("%q is no id", r.Cause)
		}
		for what, text := range map[string]string{"title": r.Title, "seen": r.Seen, "apart": r.Distinction, "mends": r.Fix, "effect": r.Effect, "source": r.Source} {
			if text == "" || strings.Contains(text, "\n") {
				t.Errorf("%s: %s is %q", r.Cause, what, text)
			}
		}
		for _, x := range r.Tests {
			if _, ok := diagnose.ExperimentOf(x); !ok {
				t.Errorf("%s: no experiment %q", r.Cause, x)
			}
		}
		for _, c := range r.Brings {
			if _, ok := diagnose.RuleOf(theCatalogue(), c); !ok || c == r.Cause {
				t.Errorf("%s brings %q, which is no other rule", r.Cause, c)
			}
		}
	}
}

// TestBringsNoCircle: of two causes only one can be the root of the other, also indirectly; otherwise each would
// be an effect of the other.
func TestBringsNoCircle(t *testing.T) {
	var follow func(path []string)
	follow = func(path []string) {
		r, _ := diagnose.RuleOf(theCatalogue(), path[len(path)-1])
		for _, next := range r.Brings {
			if slices.Contains(path, next) {
				t.Fatalf("in a circle: %v, %s", path, next)
			}
			follow(append(slices.Clone(path), next))
		}
	}
	for _, r := range Causes() {
		follow([]string{r.Cause})
	}
}

// TestExperiments: each has a unique id.
func TestExperiments(t *testing.T) {
	var ids []string
	for _, x := range diagnose.Experiments() {
		if slices.Contains(ids, x.ID) || x.Title == "" || x.Time <= 0 || x.Vary == nil {
			t.Errorf("bad or double experiment: %+v", x)
		}
		ids = append(ids, x.ID)
	}
}

// verbs begin what is to be done: a fix says what to do, and to what.
var verbs = regexp.MustCompile(`^(?:accept|assign|attach|balance|bind|bring|bypass|capture|change|check|clean|compare|connect|disable|do|enable|end|enlarge|find|` +
	`fix|forbid|free|give|hash|have|install|keep|leave|lengthen|let|lift|look|lower|make|measure|move|pin|put|raise|reduce|remove|` +
	`repeat|replace|report|reseat|reserve|run|seat|see|send|set|shape|speed|spread|start|state|stop|switch|take|test|trust|turn|` +
	`update|use) `)

// TestFixesBeginWithAVerb holds what causes and gates say is to be done.
func TestFixesBeginWithAVerb(t *testing.T) {
	check := func(id, fix string) {
		if fix != "" && !verbs.MatchString(fix) {
			t.Errorf("%s: %q begins with no verb", id, fix)
		}
	}
	for _, r := range Causes() {
		check(r.Cause, r.Fix)
	}
	for _, r := range transfer.Causes() {
		check(r.Cause, r.Fix)
	}
	for _, r := range Gates() {
		check(r.ID, r.Fix)
	}
}
