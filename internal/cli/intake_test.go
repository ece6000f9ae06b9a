package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"thru/internal/measure"
)

// What a host delivers is foreign: little of it is decoded, and what another
// version wrote is kept as it is.
func TestAbout(t *testing.T) {
	at := time.Date(2026, 11, 22, 9, 30, 0, 0, time.Local)
	doc := func(schema string, cells ...measure.Cell) []byte {
		b, err := json.Marshal(measure.Document{Schema: schema, Command: "serve", StartedAt: at, Cells: cells})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	one := measure.Cell{From: "a", To: "b", Goodput: &measure.Figure{Value: 940e6}, Protocol: measure.TCP, Streams: 1}
	bomb := []byte(`{"schema":"` + measure.Schema + `","command":"serve","cells":[` + strings.Repeat("{},", 1<<20) + `{}]}`)
	for name, c := range map[string]struct {
		text []byte
		want string // part of it; empty: an error
	}{
		"a figure":        {doc(measure.Schema, one), "2026-11-22 09:30:00, 940 Mb/s a -> b"},
		"no figure":       {doc(measure.Schema, measure.Cell{From: "a", To: "b"}), "a to b"},
		"no cells":        {doc(measure.Schema), "serve"},
		"a newer schema":  {doc("thru.result/9", one), "serve"},
		"a million cells": {bomb, "serve"},
		"no result":       {[]byte(`{"schema":"iperf3"}`), ""},
		"no JSON":         {[]byte("junk"), ""},
	} {
		got, err := about(c.text)
		if (err == nil) != (c.want != "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if n := testing.AllocsPerRun(1, func() { about(bomb) }); n > 1000 {
		t.Errorf("a million empty cells take %.0f allocations", n)
	}
	if !bytes.Contains(bomb, []byte("{},{}")) {
		t.Error("the bomb is none")
	}
}
