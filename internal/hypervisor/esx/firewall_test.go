package esx

import (
	"net/netip"
	"strings"
	"testing"
)

// walls are the tables of a host, by the ESXCLI reference.
func walls(gdb, custom string) Walls {
	return Walls{
		State: "   Default Action: DROP\n   Enabled: true\n   Loaded: true\n",
		Sets:  "Name       Enabled\n---------  -------\nsshServer     true\ngdbserver  " + gdb + "\nvMotion       true\ncustom     " + custom + "\n",
		Rules: `Ruleset    Direction  Protocol  Port Type  Port Begin  Port End
---------  ---------  --------  ---------  ----------  --------
sshServer  Inbound    TCP       Dst                22        22
vMotion    Inbound    TCP       Dst              8000      8000
vMotion    Outbound   TCP       Dst              8000      8000
gdbserver  Inbound    TCP       Dst              1000      9999
gdbserver  Inbound    TCP       Dst             50000     50999
custom     Inbound    TCP       Dst              5300      5400
custom     Inbound    UDP       Dst              5201      5201
`,
		Allowed: "Ruleset    Allowed IP Addresses\n---------  -----------------------\nsshServer  All\ngdbserver  All\nvMotion    All\ncustom     10.0.0.0/24, 192.168.7.7\n",
		Sockets: "Proto  Recv Q  Send Q  Local Address  Foreign Address  State   World ID  CC Algo  World Name\n-----  ------  ------  -------------  ---------------  ------  --------  -------  ----------\ntcp         0       0  0.0.0.0:5201   0.0.0.0:0        LISTEN   2098765  newreno  thing\n",
	}
}

func TestDoors(t *testing.T) {
	me := netip.MustParseAddr("10.0.0.5")
	for name, tt := range map[string]struct {
		change func(*Walls)
		gdb    string
		custom string
		client netip.Addr
		want   Door
	}{
		"disabled: it has to be enabled, and 5201 is taken": {gdb: "false", custom: "false", want: Door{5202, "gdbserver", 1000, 9999, true}},
		"enabled":                             {gdb: "true", custom: "false", want: Door{5202, "gdbserver", 1000, 9999, false}},
		"an open one is better than a nearer": {gdb: "false", custom: "true", want: Door{5300, "custom", 5300, 5400, false}},
		"for others alone":                    {gdb: "false", custom: "true", client: netip.MustParseAddr("10.9.9.9"), want: Door{5202, "gdbserver", 1000, 9999, true}},
		"one of the list":                     {gdb: "false", custom: "true", client: netip.MustParseAddr("192.168.7.7"), want: Door{5300, "custom", 5300, 5400, false}},
		"off":                                 {gdb: "false", custom: "false", change: func(w *Walls) { w.State = strings.Replace(w.State, "Enabled: true", "Enabled: false", 1) }, want: Door{Port: 5202}},
		"lets all pass":                       {gdb: "false", custom: "false", change: func(w *Walls) { w.State = strings.Replace(w.State, "DROP", "PASS", 1) }, want: Door{Port: 5202}},
		"no rule":                             {gdb: "false", custom: "false", change: func(w *Walls) { w.Rules = strings.ReplaceAll(w.Rules, "gdbserver  Inbound ", "gdbserver  Outbound") }, want: Door{5300, "custom", 5300, 5400, true}},
		"a rule for this port alone": {gdb: "false", custom: "true", change: func(w *Walls) {
			w.Rules, w.Sockets = strings.Replace(w.Rules, "custom     Inbound    UDP ", "custom     Inbound    TCP ", 1), ""
		}, want: Door{5201, "custom", 5201, 5201, false}},
		"fixed by the system": {gdb: "false", custom: "false", change: func(w *Walls) {
			w.Sets = "Name       Enabled  Enable/Disable configurable\n---------  -------  ---------------------------\ngdbserver    false                        false\ncustom       false                         true\n"
		}, want: Door{5300, "custom", 5300, 5400, true}},
	} {
		t.Run(name, func(t *testing.T) {
			w := walls(tt.gdb, tt.custom)
			if tt.change != nil {
				tt.change(&w)
			}
			if !tt.client.IsValid() {
				tt.client = me
			}
			doors, err := Doors(w, tt.client, 5201)
			if err != nil || len(doors) == 0 || doors[0] != tt.want {
				t.Errorf("%+v, %v; want %+v", doors, err, tt.want)
			}
		})
	}
	w := walls("false", "false")
	w.Sets = ""
	if doors, err := Doors(w, me, 5201); err != nil || len(doors) > 0 {
		t.Errorf("no rule set: %+v, %v", doors, err)
	}
	for _, state := range []string{"", "nothing of that\n", "   Loaded: true\n"} {
		w.State = state
		if doors, err := Doors(w, me, 5201); err == nil {
			t.Errorf("firewall state %q gives %+v", state, doors)
		}
	}
	if d := (Door{5202, "gdbserver", 1000, 9999, true}); d.Disable() != "esxcli network firewall ruleset set -r gdbserver -e false" || d.String() != "gdbserver (TCP 1000-9999)" {
		t.Errorf("%s, %s", d, d.Disable())
	}
}

func FuzzDoors(f *testing.F) {
	w := walls("false", "true")
	f.Add(w.State, w.Sets, w.Rules, w.Allowed, w.Sockets)
	f.Fuzz(func(t *testing.T, state, sets, rules, allowed, sockets string) {
		doors, _ := Doors(Walls{state, sets, rules, allowed, sockets}, netip.MustParseAddr("10.0.0.5"), 5201)
		for _, d := range doors {
			if d.Port < 1 || d.Port > 65535 || d.Ruleset != "" && (d.Port < d.From || d.Port > d.To || strings.ContainsAny(d.Ruleset, " ;'\"$-") && d.Ruleset[0] == '-') {
				t.Errorf("%+v", d)
			}
		}
	})
}
