package published

import (
	"strings"
	"testing"
)

func load(t *testing.T) Table {
	t.Helper()
	table, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestLoad(t *testing.T) {
	rows := load(t).All()
	if len(rows) < 50 {
		t.Fatalf("%d rows, want the whole file", len(rows))
	}
	seen := map[string]bool{}
	for _, r := range rows {
		if seen[r.ID] {
			t.Errorf("id %s stands twice", r.ID)
		}
		seen[r.ID] = true
		if strings.HasPrefix(SourceTitle(r.Source), "source ") {
			t.Errorf("row %s: source %q has no title", r.ID, r.Source)
		}
	}
}

func TestFind(t *testing.T) {
	table := load(t)
	tests := []struct {
		scenario string
		streams  int
		window   int64
		id       string // "": none
	}{
		{Localhost, 1, DefaultWindow, "T1a"},
		{Localhost, 8, DefaultWindow, "T1d"},
		{Localhost, 2, 800 << 10, "T1f"},
		{Localhost, 4, 800 << 10, ""}, // T1g is suspect
		{Localhost, 4, 800_000, ""},   // the K of iperf2 is 1024
		{Localhost, 3, DefaultWindow, ""},
		{"same-vlan-25g", 4, DefaultWindow, ""}, // T3c is suspect
		{"dci-10g", 4, DefaultWindow, "T4"},
		{"nowhere", 1, DefaultWindow, ""},
	}
	for _, tt := range tests {
		row, ok := table.Find(tt.scenario, tt.streams, tt.window)
		if row.ID != tt.id || ok != (tt.id != "") {
			t.Errorf("Find(%s, %d, %d) = %q, %v; want %q", tt.scenario, tt.streams, tt.window, row.ID, ok, tt.id)
		}
	}
}

func TestValues(t *testing.T) {
	row, _ := load(t).Find(Localhost, 1, DefaultWindow)
	if *row.LowBps != 75.4e9 || *row.HighBps != 83e9 || *row.ServerCPU != (Range{23, 23}) || row.Tool != "iperf2" {
		t.Errorf("T1a = %+v", row)
	}
	for _, r := range load(t).All() {
		switch r.ID {
		case "A2":
			if *r.Streams != (Range{4, 8}) || *r.ServerCPU != (Range{25, 35}) || r.Window != nil {
				t.Errorf("A2 = %+v", r)
			}
		case "V1":
			if r.LowBps != nil || *r.HighBps != 5.83e9 {
				t.Errorf("V1 = %+v", r)
			}
		case "S7":
			if *r.Window != 1<<20 {
				t.Errorf("S7 = %+v", r)
			}
		}
	}
}

func TestSuspectIsNoReference(t *testing.T) {
	table, suspects := load(t), 0
	for _, r := range table.All() {
		if !r.Suspect {
			continue
		}
		suspects++
		for _, ref := range table.Scenario(r.Scenario) {
			if ref.ID == r.ID {
				t.Errorf("suspect row %s is offered as a reference", r.ID)
			}
		}
	}
	if suspects != 3 {
		t.Errorf("%d suspect rows, want 3 (T1g, T3c, T3d)", suspects)
	}
	if n := len(table.Scenario(Localhost)); n != 7 {
		t.Errorf("%d localhost references, want 7 of 8", n)
	}
}

func TestParseRefuses(t *testing.T) {
	header := strings.Join(columns(), ",") + "\n"
	tests := []struct{ name, text string }{
		{"empty", ""},
		{"other columns", "a,b\n"},
		{"short row", header + "x,B\n"},
		{"no id", header + ",B,s,t,1,d,tx,1,2,,,\n"},
		{"rate", header + "x,B,s,t,1,d,tx,fast,2,,,\n"},
		{"not finite", header + "x,B,s,t,1,d,tx,Inf,Inf,,,\n"},
		{"negative", header + "x,B,s,t,1,d,tx,1,2,-3,,\n"},
		{"reversed", header + "x,B,s,t,1,d,tx,3,2,,,\n"},
		{"streams", header + "x,B,s,t,8-4,d,tx,1,2,,,\n"},
		{"window", header + "x,B,s,t,1,800,tx,1,2,,,\n"},
	}
	for _, tt := range tests {
		if _, err := Parse(strings.NewReader(tt.text)); err == nil {
			t.Errorf("%s: accepted", tt.name)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(results)
	f.Add(strings.Join(columns(), ",") + "\nx,B,s,t,1-2,5k,tx,1,2,3,4-5,suspect\n")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := Parse(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, r := range table.All() {
			if r.LowBps != nil && r.HighBps != nil && !(*r.LowBps <= *r.HighBps) {
				t.Errorf("low above high: %+v", r)
			}
		}
	})
}
