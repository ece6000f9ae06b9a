package remote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"thru/internal/bus"
	"thru/internal/control"
	"thru/internal/fault"
)

func TestMemberOf(t *testing.T) {
	for at, want := range map[string][2]string{
		"fleet/web1": {"fleet", "web1"}, "fleet/": {"fleet", ""}, "/web1": {"", "web1"}, "a/b/c": {"a", "b/c"},
	} {
		if c, n, ok := MemberOf(at); !ok || c != want[0] || n != want[1] {
			t.Errorf("%q: %q %q %v", at, c, n, ok)
		}
	}
	for _, at := range []string{"web1", "10.0.0.1:5200", "iperf3://h/", "ssh://root@h", ""} {
		if _, _, ok := MemberOf(at); ok {
			t.Errorf("%q is taken for a host of a fleet", at)
		}
	}
}

// A name finds the one host that may be used under it, and an error says what to do.
func TestFindHost(t *testing.T) {
	now := time.Date(2026, 11, 22, 14, 0, 0, 0, time.UTC)
	hosts := []bus.Host{
		{ID: "1", Name: "web1", Online: true, Refused: "the name is another's"},
		{ID: "2", Name: "web1", Online: true},
		{ID: "3", Name: "web2", SeenAt: now.Add(-90 * time.Second)},
		{ID: "4", Name: "rogue", Online: true, Refused: "the name is another's"},
		{ID: "5", Name: "db", Online: true},
	}
	if h, err := FindHost(hosts, "fleet", "web1", now); err != nil || h.ID != "2" {
		t.Errorf("web1: %+v %v", h, err)
	}
	for name, want := range map[string][2]string{
		"web2":  {"last seen 1m30s ago", "thru hosts fleet"},
		"rogue": {"refused", "thru hosts fleet"},
		"wbe1":  {"no host named", "did you mean web1?"},
		"zzzzz": {"no host named", "there are db, web1"},
	} {
		_, err := FindHost(hosts, "fleet", name, now)
		if err == nil || !strings.Contains(err.Error(), want[0]) || !strings.Contains(fault.Hint(err), want[1]) {
			t.Errorf("%s: %v; hint %q", name, err, fault.Hint(err))
		}
	}
	if _, err := FindHost(nil, "fleet", "web1", now); err == nil || !strings.Contains(fault.Hint(err), "serve --controller") {
		t.Errorf("an empty fleet: %v", err)
	}
}

// One connection to a controller serves all its users, and ends with the last.
func TestFleetsShareAConnection(t *testing.T) {
	var f fleets
	dialled := 0
	failing := func(context.Context) (*bus.Fleet, error) { dialled++; return nil, errors.New("no") }
	if _, _, err := f.use(t.Context(), "fleet", failing); err == nil || len(f.open) != 0 {
		t.Errorf("a failed connection is kept: %v, %d", err, len(f.open))
	}
	if f.use(t.Context(), "fleet", failing); dialled != 2 {
		t.Errorf("dialled %d times, want a new attempt", dialled)
	}
}

// Routes to a controller over a NATS cluster are stored next to the join strings.
func TestKeptNATS(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("HOME", os.Getenv("XDG_CONFIG_HOME"))
	c := &bus.NATSConfig{URL: "tls://n:4222", Nkey: "/k", CA: "/ca"}
	if err := SaveNATS("fleet", c, false); err != nil {
		t.Fatal(err)
	}
	if err := SaveNATS("fleet", c, false); fault.Code(err) != fault.Usage {
		t.Errorf("a name in use: %v", err)
	}
	if err := SaveNATS("fleet", c, true); err != nil {
		t.Error(err)
	}
	if err := SaveNATS("../x", c, false); fault.Code(err) != fault.Usage {
		t.Errorf("a name that is a path: %v", err)
	}
	if w, err := ControllerString("fleet", bus.PrivilegeOperate); err != nil || w.NATS == nil || *w.NATS != *c {
		t.Errorf("%+v %v", w.NATS, err)
	}
	if _, err := ControllerString("flet", bus.PrivilegeOperate); err == nil || fault.Hint(err) != "did you mean fleet?" {
		t.Errorf("a mistyped name: %v, hint %q", err, fault.Hint(err))
	}
	if err := os.WriteFile(filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "thru", "nats", "fleet.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ControllerString("fleet", bus.PrivilegeOperate); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a damaged file: %v", err)
	}
}

func TestUnreached(t *testing.T) {
	refused := fault.Failf("start it", "no route")
	one := UnreachedError([]unreached{{"a", refused}}, 3)
	if got := one.Error(); got != "a cannot be reached: no route" || !strings.HasPrefix(fault.Hint(one), "start it; measure the pairs") || fault.Code(one) != fault.Failed {
		t.Errorf("%s, hint %s", got, fault.Hint(one))
	}
	var many []unreached
	for i := range fault.MostNamed + 3 {
		many = append(many, unreached{fmt.Sprintf("h%d", i), refused})
	}
	all := UnreachedError(many, 20)
	if got := all.Error(); !strings.HasPrefix(got, "11 of 20 end points cannot be reached: h0 (no route); h1") || !strings.HasSuffix(got, "and 3 more") {
		t.Error(got)
	}
	changed := fault.Failf("remove its line", "bus: the certificate has changed")
	two := UnreachedError([]unreached{{"a", changed}, {"b", refused}}, 2)
	if got := two.Error() + "\n" + fault.Hint(two); got != "2 of 2 end points cannot be reached: a (the certificate has changed); b (no route)\n"+
		"remove its line; start it; or measure the pairs of the others with --go-on" {
		t.Error(got)
	}
}

// One agent under two names has one turn: a pair of the two would wait for itself.
func TestTwoNamesOfOne(t *testing.T) {
	end := func(id, addr, host string, addrs ...string) *control.EndPoint {
		return &control.EndPoint{Addr: addr, Hello: bus.HelloReply{ID: id, Hostname: host, Addrs: addrs}}
	}
	for _, tt := range []struct {
		name     string
		a, b     *control.EndPoint
		same     bool
		warnings int
	}{
		{"two hosts", end("1", "10.0.0.1:5200", "x", "10.0.0.1"), end("2", "10.0.0.2:5200", "y", "10.0.0.2"), false, 0},
		{"one agent by two addresses", end("1", "10.0.0.1:5200", "x", "10.0.0.1", "10.1.0.1"), end("1", "10.1.0.1:5200", "x", "10.1.0.1", "10.0.0.1"), true, 1},
		{"two agents of a host", end("1", "10.0.0.1:5200", "x", "10.0.0.1"), end("2", "10.0.0.1:5300", "x", "10.0.0.1"), false, 1},
		{"older agents", end("", "10.0.0.1:5200", "x"), end("", "10.0.0.1:5200", "x"), true, 0},
		{"iperf3 too", end("1", "10.0.0.1:5200", "x"), &control.EndPoint{Addr: "10.0.0.1:5201", Foreign: true}, false, 0},
	} {
		ends := map[string]*control.EndPoint{"a": tt.a, "b": tt.b}
		if err := SameAgent(ends); (err != nil) != tt.same {
			t.Errorf("%s: %v", tt.name, err)
		}
		if w := SameHost(ends); len(w) != tt.warnings {
			t.Errorf("%s: %q", tt.name, w)
		}
	}
}

func TestSSHTargets(t *testing.T) {
	for in, want := range map[string]struct {
		destination string
		port        int
	}{
		"ssh://root@esx1": {"root@esx1", 0}, "ssh://10.0.0.5:2222": {"10.0.0.5", 2222}, "ssh://root@[fd00::2]:22/": {"root@fd00::2", 22},
	} {
		if d, p, err := SSHTarget(in); err != nil || d != want.destination || p != want.port {
			t.Errorf("%s: %q, %d, %v", in, d, p, err)
		}
	}
	for _, bad := range []string{"ssh://", "ssh://root:secret@esx1", "ssh://-oProxyCommand=x", "ssh://-l@host", "ssh://h:0", "ssh://h:70000", "ssh://h/etc", "ssh://a b"} {
		if d, _, err := SSHTarget(bad); err == nil {
			t.Errorf("%s: taken as %q", bad, d)
		}
	}
}

// TestVSphereTargets: the last @ ends the user, and no error shows what may be a password.
func TestVSphereTargets(t *testing.T) {
	for _, tt := range []struct{ at, user, addr, wrong string }{
		{at: "vsphere://root@esx1", user: "root", addr: "esx1"},
		{at: "VSPHERE://root@esx1:8443/", user: "root", addr: "esx1:8443"},
		{at: "vsphere://administrator%40vsphere.local@vc.example/sdk", user: "administrator@vsphere.local", addr: "vc.example"},
		{at: "vsphere://administrator@vsphere.local@vc.example", user: "administrator@vsphere.local", addr: "vc.example"},
		{at: `vsphere://CORP%5Canna@10.0.0.1`, user: `CORP\anna`, addr: "10.0.0.1"},
		{at: "vsphere://root@[2001:db8::1]:443", user: "root", addr: "[2001:db8::1]:443"},
		{at: "vsphere://root@[2001:db8::1]", user: "root", addr: "[2001:db8::1]"},
		{at: "vsphere://vc.example", wrong: "names no user"},
		{at: "vsphere://", wrong: "names no user"},
		{at: "vsphere://root@", wrong: "names no host"},
		{at: "vsphere://root@a b", wrong: "names no host"},
		{at: "vsphere://root@h:0", wrong: "is not valid"},
		{at: "vsphere://root@h/dc/vm", wrong: "has no path"},
		{at: "vsphere://ro%zzsesame@h", wrong: "cannot be read"},
		{at: "vsphere://ro:sesame@h", wrong: "a password does not belong"},
		{at: "vsphere://ro%3Asesame@h", wrong: "a password does not belong"},
		{at: "vsphere://ro%3asesame@x@h", wrong: "a password does not belong"},
		{at: "vsphere://ro@h?password=sesame", wrong: "has no query"},
		{at: "vsphere://ro@h:443/?sesame", wrong: "has no query"},
		{at: "vsphere://ro@x:ses/ame@h", wrong: "a password does not belong"},
		{at: "vsphere://ro:ses/ame@h", wrong: "the URL has an @ after a slash"},
	} {
		user, addr, err := vsphereTarget(tt.at)
		if tt.wrong == "" && (err != nil || user != tt.user || addr != tt.addr) {
			t.Errorf("%s: %q, %q, %v", tt.at, user, addr, err)
		}
		if tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong) || fault.Code(err) != fault.Usage || strings.Contains(err.Error()+fault.Hint(err), "ses")) {
			t.Errorf("%s: %v, want %q", tt.at, err, tt.wrong)
		}
	}
}
