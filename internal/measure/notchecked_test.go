package measure

import (
	"slices"
	"testing"
)

// TestNotCheckedKeys checks which facts an unchecked fact stands for.
func TestNotCheckedKeys(t *testing.T) {
	for fact, want := range map[string]bool{"nics.eth0.mac": true, "nics.eth0": true, "nics.eth0.*": true, "*": true, "nics.eth": false, "nics.eth0.mac.of": false, "": false} {
		if got := (NotChecked{Fact: fact}).Covers("nics.eth0.mac"); got != want {
			t.Errorf("%q covers nics.eth0.mac: %v", fact, got)
		}
	}
	if rest, is := (NotChecked{Fact: "nics.eth0.mac"}).Below("nics"); rest != "eth0.mac" || !is {
		t.Errorf("%q, %v", rest, is)
	}
	if rest, is := (NotChecked{Fact: "nics"}).Below("nics"); rest != "" || is {
		t.Errorf("%q, %v", rest, is)
	}
	if got := (NotChecked{Fact: CountersOf("a, b")}).CountersOf(); !slices.Equal(got, []string{"a", "b", "a, b"}) {
		t.Errorf("%q", got)
	}
	if got := (NotChecked{Fact: "series.a"}).CountersOf(); got != nil {
		t.Errorf("%q", got)
	}
	if !(NotChecked{Fact: AskedOf("vc", "what")}).IsAskedOf() || (NotChecked{Fact: "what"}).IsAskedOf() {
		t.Error("what a source was asked for is not told from other facts")
	}
}

// TestTargetsOfOlderResults checks that a target of a version that names its pair only in the reason gets the pair as values.
func TestTargetsOfOlderResults(t *testing.T) {
	d, err := Decode([]byte(`{"schema": "` + Schema + `", "cells": [{"from": "a", "to": "b", "group": 1}, {"from": "a", "to": "c", "group": 1}],
		"targets": [{"group": 1, "reason": "a -> c: 3 Mb/s"}, {"group": 1, "reason": "nothing was measured"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Targets[0]; got.From != "a" || got.To != "c" {
		t.Errorf("%+v", got)
	}
	if got := d.Targets[1]; got.From != "" {
		t.Errorf("%+v", got)
	}
}

// TestOffloadsOfOlderResults checks that a gate of a version that names offloads only in its text gets them as values.
func TestOffloadsOfOlderResults(t *testing.T) {
	d, err := Decode([]byte(`{"schema": "` + Schema + `", "gates": [{"id": "offloads", "status": "warn", "fact": "TSO, TX checksum of eth0: off"},
		{"id": "offloads", "status": "warn", "fact": "GRO of eth0: off, and its driver has none"}, {"id": "offloads", "status": "pass", "fact": "TSO of eth0: off, its kind has none"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if g := d.Gates[0]; !slices.Equal(g.Off, []string{"tso", "tx-checksum"}) || g.Fixed {
		t.Errorf("%+v", g)
	}
	if g := d.Gates[1]; !slices.Equal(g.Off, []string{"gro"}) || !g.Fixed {
		t.Errorf("%+v", g)
	}
	if g := d.Gates[2]; g.Off != nil {
		t.Errorf("%+v", g)
	}
}

// TestNoHypervisorOfOlderResults checks that a result of a version that gives the reason only as a text gets its code.
func TestNoHypervisorOfOlderResults(t *testing.T) {
	d, err := Decode([]byte(`{"schema": "` + Schema + `", "end_points": [{"name": "a", "no_placement": "no hypervisor could be asked"}, {"name": "b", "no_placement": "it could not be asked"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := d.EndPoints[0].NoPlaceCode, d.EndPoints[1].NoPlaceCode; a != NoHypervisorRead || b != "" {
		t.Errorf("%q, %q", a, b)
	}
}

// TestReasonsOfOlderResults checks that a result of a version that gives reasons only as texts gets their codes.
func TestReasonsOfOlderResults(t *testing.T) {
	d, err := Decode([]byte(`{"schema": "` + Schema + `", "cells": [{"runs": [{"error": {"message": "interrupted", "exit_code": 1}, "flows": [{"receiver": {"reported_by": "a capture",
		"not_checked": [{"fact": "host", "why": "a capture does not show it"}, {"fact": "rtt_idle", "why": "the capture has no handshake"}]}}]}, {"error": {"message": "refused", "exit_code": 1}}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	runs := d.Cells[0].Runs
	if !runs[0].Error.Interrupted || runs[1].Error.Interrupted {
		t.Errorf("%+v, %+v", runs[0].Error, runs[1].Error)
	}
	if n := runs[0].Flows[0].Receiver.Missing; n[0].Code != NotInCapture || n[1].Code != "" {
		t.Errorf("%+v", n)
	}
}
