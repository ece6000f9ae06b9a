package cli

import (
	"testing"

	"thru/internal/cause/diagnose"
	"thru/internal/control"
)

var packetsHere = control.Packets{From: control.Local, EndPoint: control.Local}

// TestKeeperNames checks that the captures of one command have different names.
func TestKeeperNames(t *testing.T) {
	base := control.Packets{From: control.Local, EndPoint: "iperf3://db:1", Experiment: diagnose.Base}
	back := control.Packets{From: "db", EndPoint: "db", Experiment: "one-stream"}
	for _, tt := range []struct {
		k    keeper
		p    control.Packets
		want string
	}{
		{keeper{path: "x.pcapng"}, packetsHere, "x.local.pcapng"},
		{keeper{path: "x", alone: true}, packetsHere, "x.pcapng"},
		{keeper{path: "a.b/x.cap", directions: true}, packetsHere, "a.b/x.forward.local.cap"},
		{keeper{path: "x.pcapng"}, base, "x.base.iperf3---db-1.pcapng"},
		{keeper{path: "x.pcapng", alone: true}, base, "x.base.pcapng"},
		{keeper{path: "x.pcapng", directions: true}, back, "x.reverse.one-stream.db.pcapng"},
	} {
		if got := tt.k.name(tt.p); got != tt.want {
			t.Errorf("%+v of %+v: %s, want %s", tt.p, tt.k, got, tt.want)
		}
	}
}
