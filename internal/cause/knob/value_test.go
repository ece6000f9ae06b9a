package knob

import (
	"testing"

	"thru/internal/measure"
)

// TestMask: CPU masks as in /sys.
func TestMask(t *testing.T) {
	for want, cpus := range map[string][]int{"0": nil, "1": {0}, "f": {0, 1, 2, 3}, "a": {1, 3}, "1,00000000": {32}, "80000000,00000001": {0, 63}, "1,00000000,000000f0": {4, 5, 6, 7, 64}} {
		if got := Mask(cpus); got != want {
			t.Errorf("%v is %q, not %q", cpus, got, want)
		}
	}
}

func TestGreatest(t *testing.T) {
	for value, want := range map[string]int64{"4096 131072 6291456": 6291456, "212992": 212992, "": 0, "on": 0, "-1": 0, "rx 2 tx 3": 3} {
		if got := Greatest(value); got != want {
			t.Errorf("%q: %d, want %d", value, got, want)
		}
	}
	if !Same("a  b\t1", "a b 1") || Same("a b", "a") {
		t.Error("values are compared otherwise than by their words")
	}
}

// TestElements: values that cover several elements, from the facts.
func TestElements(t *testing.T) {
	f := &measure.Facts{Interfaces: []measure.Interface{{Name: "eth0", Queues: new(2), RPS: map[string]string{"rx-1": "0-1,32"}, Channels: &measure.Channels{Combined: 4, RX: 1},
		Coalesce: &measure.Coalesce{AdaptiveRX: true, RXNs: 50_000}, RSS: &measure.RSS{Fields: map[string][]string{"tcp4": {"src-ip", "dst-ip", "src-port", "dst-port"}, "udp4": nil}},
		IRQs: []measure.IRQ{{Number: 24, Allowed: []int{0, 1, -1}}, {Number: 25, Allowed: []int{2, 9999}}}}}}
	for id, want := range map[string]string{
		RPS: "rx-0 0 rx-1 1,00000003", Channels: "combined 4 rx 1", Coalescing: "adaptive-rx on rx-usecs 50", RSSHash: "tcp4 sdfn udp4 -", IRQAffinity: "24 0-1 25 2", XPS: "",
	} {
		if got := FromFacts(f, id, "eth0"); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
}
