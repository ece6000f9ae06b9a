package cause

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestCatalogue: every rule can be listed and looked up.
func TestCatalogue(t *testing.T) {
	id, line := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`), regexp.MustCompile(`^[ABCS]-\d\d$`)
	var ids []string
	for _, r := range Gates() {
		if !id.MatchString(r.ID) || slices.Contains(ids, r.ID) {
			t.Errorf("bad or double id %q", r.ID)
		}
		ids = append(ids, r.ID)
		for what, text := range map[string]string{"title": r.Title, "about": r.About, "why": r.Why, "source": r.Source, "remedy": r.Fix} {
			if text == "" || strings.Contains(text, "\n") || what == "why" && len([]rune(text)) > 110 {
				t.Errorf("%s: %s is %q (%d)", r.ID, what, text, len([]rune(text)))
			}
		}
		for _, c := range r.Checklist {
			if !line.MatchString(c) {
				t.Errorf("%s: no line of the checklist: %q", r.ID, c)
			}
		}
		if len(r.Checklist) == 0 || r.Cause != "" && !slices.Contains(causes(), r.Cause) {
			t.Errorf("%s: cause %q, checklist %q", r.ID, r.Cause, r.Checklist)
		}
		judges := 0
		for _, has := range []bool{r.Host != nil, r.Face != nil, r.Path != nil, r.Direction != nil} {
			if has {
				judges++
			}
		}
		if judges != 1 {
			t.Errorf("%s has %d judges", r.ID, judges)
		}
	}
}

// causes returns the ids of the catalogue of causes that the diagnosis uses.
func causes() []string {
	return strings.Fields(`sender-cpu receiver-cpu single-flow too-many-streams irq-one-cpu numa-remote cpu-governor cpu-steal cpu-quota memory-pressure
		disk broken-tso cpu-limit lro-forwarding offloads-off emulated-nic wrong-driver too-few-queues rss-not-spreading ring-overflow backlog-overflow pcie vswitch
		netqueue-off interrupt-moderation firewall-cost receive-window slow-reader send-buffer loss paced policer shaper link-rate link-negotiated-low mss-clamp
		tcp-proxy vpn-cpu asymmetric-route token-bucket window-scaling-off fixed-window sack-off timestamps-off reordering app-limited slow-convergence
		mtu-black-hole jumbo-mismatch lag-one-member duplex bad-link pause-frames noisy-neighbour measurement`)
}
