package measure

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Decode reads results of earlier versions, in today's units and keys, and without the kernel's sentinels.
func TestDecodeUpgrades(t *testing.T) {
	files, _ := filepath.Glob("../cause/testdata/versions/*.json")
	trips := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(text), schema1) {
			t.Fatalf("%s: %v, or it is not of %s", name, err, schema1)
		}
		d, err := Decode(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		now, err := json.Marshal(Complete(d))
		if err != nil {
			t.Fatal(err)
		}
		for _, gone := range []string{schema1, `rtt_us"`, `"rto_us"`, `"rttvar_us"`, "18446744073709551615", `_segments":2147483647`, `"label":`, `"window_bytes":{"send_bytes":0`} {
			if strings.Contains(string(now), gone) {
				t.Errorf("%s: %s is still there", name, gone)
			}
		}
		again, err := Decode(now)
		if err != nil || again.Cells[0].Label != d.Cells[0].Label {
			t.Errorf("%s: %v, %q became %q", name, err, d.Cells[0].Label, again.Cells[0].Label)
		}
		trips += strings.Count(string(now), `"rtt_ns":`)
	}
	if len(files) < 5 || trips < 50 {
		t.Errorf("%d files with %d round trips", len(files), trips)
	}
}

// TestDecodeParts: earlier versions tell in texts alone what later ones have keys for.
func TestDecodeParts(t *testing.T) {
	d, err := Decode([]byte(`{"schema":"thru.result/2","cells":[
		{"reconciled":{"difference_pct":3,"note":"of the measured time, since the far end's bytes are of a span of its own"},
			"loss_places":[{"place":"sender qdisc","counter":"drops, of which each stands for about 21 datagrams that travelled as one"},{"place":"path","counter":"the rest"}]},
		{"reconciled":{"note":"equal"}}],
		"verdict":{"inconclusive":true,"reason":"a to b carries 90.00% of the ceiling of 956 Mb/s, 95% is required; c was busy: it could not have shown the rate"}}`))
	if err != nil {
		t.Fatal(err)
	}
	first, second := &d.Cells[0], &d.Cells[1]
	if !first.Reconciled.OfRates || second.Reconciled.OfRates || !first.LossPlaces[0].Estimate || first.LossPlaces[1].Estimate {
		t.Errorf("%+v, %+v, %+v", first.Reconciled, second.Reconciled, first.LossPlaces)
	}
	if want := "c was busy: it could not have shown the rate"; d.Verdict.Undecided != want {
		t.Errorf("undecided by %q, want %q", d.Verdict.Undecided, want)
	}
}

// Upgrade takes over each key of the previous schema, from its own place only.
func TestUpgrade(t *testing.T) {
	d, err := Decode([]byte(`{"schema":"thru.result/1","labels":{"rtt_us":"7","label":"x"},
		"cells":[{"label":"latency, idle","window_bytes":{"send_bytes":0,"recv_bytes":65536},"runs":[{"flows":[{"sender":{
			"streams":[{"tcp":{"rtt_us":947,"rttvar_us":22,"rcv_rtt_us":3,"rto_us":204000,"min_rtt_us":4294967295,"snd_ssthresh_segments":2147483647,
				"pacing_rate_bytes_per_s":7,"max_pacing_rate_bytes_per_s":18446744073709551615},"course":{"rtt_us":{"mean":1.5,"min":1,"max":2}}}],
			"bins":[{"tcp":[{"min_rtt_us":11}]}]}}]}]}],
		"groups":[{"label":"both"}],"transfer":{"runs":[{"sockets":[{"tcp_at_close":{"rtt_us":5}}]}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	e := d.Cells[0].Runs[0].Flows[0].Sender
	now := e.Streams[0].TCP
	if *now.RTT != 947_000 || *now.RTTVar != 22_000 || *now.RecvRTT != 3000 || *now.RTO != 204_000_000 || now.MinRTT != nil || now.SSThresh != nil ||
		*now.PacingRate != 7 || now.MaxPacingRate != nil || *e.Streams[0].Timeline.RTT != (Spread{1500, 1000, 2000}) || *e.Bins[0].TCP[0].MinRTT != 11_000 {
		t.Errorf("%+v %+v", now, e.Streams[0].Timeline)
	}
	if d.Cells[0].Label != "latency, idle" || !d.Cells[0].Spec.LatencyProbe || d.Groups[0].Label != "both" || *d.Transfer.Runs[0].Sockets[0].TCPEnd.RTT != 5000 || d.Labels["label"] != "x" {
		t.Errorf("%+v", d)
	}
	if d.Cells[0].Window != (Pair{Recv: 65536}) || d.Schema != Schema {
		t.Errorf("%+v %s", d.Cells[0].Window, d.Schema)
	}
}
