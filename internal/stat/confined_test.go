package stat

import (
	"strings"
	"testing"

	"thru/internal/measure"
)

func TestConfined(t *testing.T) {
	host := func(soft ...float64) *measure.HostSpan {
		h := &measure.HostSpan{}
		for i, s := range soft {
			h.CPUs = append(h.CPUs, measure.CPU{Core: i, SoftIRQ: s, User: 10})
		}
		return h
	}
	for name, tt := range map[string]struct {
		asked, was string
		host       *measure.HostSpan
		want       string // part of a warning; "" of none
		missing    bool
	}{
		"all inside":            {"0-1", "0-1", host(30, 20, 0, 0), "", false},
		"a little outside":      {"0-1", "0-1", host(30, 20, 1, 1), "", false},
		"a third outside":       {"0-1", "0-1", host(40, 20, 10, 20), "33.3% of the work for packets at esx2 was on CPUs 2-3, not on 0-1", false},
		"all outside":           {"0", "0", host(0, 40), "100% of the work for packets at esx2 was on CPUs 1", false},
		"next to no packets":    {"0", "0", host(0, 0.4), "", false},
		"an older program":      {"0-1", "", host(40, 20, 10, 20), "was not confined to CPUs 0-1", false},
		"counters not read":     {"0-1", "0-1", nil, "", true},
		"nothing was asked for": {"", "", host(0, 40), "", false},
	} {
		c := recorded(5)
		c.Spec.ReceiverCPUs = tt.asked
		c.Runs[0].Flows[0].Receiver.CPUs, c.Runs[0].Flows[0].Receiver.Host = tt.was, tt.host
		Summarise(c, nil, Link{})
		said := strings.Join(c.Warnings, "\n")
		if tt.want == "" && strings.Contains(said, "confined") || !strings.Contains(said, tt.want) {
			t.Errorf("%s: warnings %q, want %q", name, c.Warnings, tt.want)
		}
		if why := whyMissing(c.Missing, "receiver_cpu.outside"); (why != "nothing was measured") != tt.missing {
			t.Errorf("%s: missing %v", name, c.Missing)
		}
	}
}
