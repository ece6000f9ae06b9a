package esx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"thru/internal/host/platform"
	"thru/internal/hypervisor"
	"thru/internal/hypervisor/hypervisortest"
	"thru/internal/measure"
)

var _ hypervisor.Source = (*Host)(nil)

// sample is a host of testdata: outputs by the commands that print them; "exit
// COMMAND" has a code and its message on the first line, and the output below.
type sample map[string]string

func load(t testing.TB, name string) sample {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	s := sample{}
	for _, f := range a.Files {
		s[f.Name] = string(f.Data)
	}
	return s
}

func (s sample) Run(ctx context.Context, name string, args ...string) ([]byte, error) {
	line := strings.Join(append([]string{name}, args...), " ")
	if out, ok := s[line]; ok {
		return []byte(out), ctx.Err()
	}
	if said, ok := s["exit "+name]; ok {
		first, out, _ := strings.Cut(said, "\n")
		code, stderr, _ := strings.Cut(first, " ")
		n, err := strconv.Atoi(code)
		if err != nil {
			return nil, err
		}
		return []byte(out), fmt.Errorf("platform: %w", &platform.Exit{Code: n, Stderr: stderr})
	}
	return nil, fmt.Errorf("running %s: %w", name, exec.ErrNotFound)
}

// values returns a part of an inventory as JSON has it.
func values(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestInventory(t *testing.T) {
	h := New(load(t, "esxi-8"), "ssh://root@esx1")
	v, err := h.Inventory(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if v.Source != "ssh://root@esx1" || v.Kind != measure.KindESXi || v.Product != "VMware ESXi 8.0.2 Update 2" || *v.GuestsTotal != 3 || *v.HostsTotal != 1 {
		t.Errorf("%q %q %q, %d guests of %d hosts", v.Source, v.Kind, v.Product, *v.GuestsTotal, *v.HostsTotal)
	}
	for name, x := range map[string]struct {
		of   any
		want []string
	}{
		"web 1": {v.Guest("1"), []string{`"name":"web 1"`, `"power":"on"`, `"pid":1051273`, `"uuid":"564d2a3b-1122-3344-5566-778899aabbcc"`, `"instance_uuid":"52000102-0304-0506-0708-090a0b0c0d0e"`,
			`"os":"debian11_64Guest"`, `"os_running":"Debian GNU/Linux 11 (64-bit)"`, `"hostname":"web1.example"`, `"addresses":["10.0.0.21"]`, `"status":"unmanaged"`, `"hardware_version":"vmx-19"`, `"firmware":"efi"`,
			`"cpus":4`, `"cores_per_socket":2`, `"memory_bytes":8589934592`, `"cpu_allocation":{"reserved":1000000000,"limited":true,"limit":4000000000,"shares_level":"normal"}`,
			`"memory_allocation":{"reserved":1073741824,"limited":false,"shares":1234,"shares_level":"custom"}`, `"latency_sensitivity":"high"`, `"cpu_hot_add":false`,
			`"nics":[{"name":"Network adapter 1","key":"67108878","model":"vmxnet3","mac":"00:0c:29:aa:bb:cc","connected":true,"connected_at_start":true,"port_group":"port group VM Network","network":"VM Network","port":"67108878","addresses":["10.0.0.21"],"uplink":"vmnic0"}]`,
			`"disks":[{"name":"scsi0:0","adapter":"pvscsi","mode":"persistent","path":"web1.vmdk","datastore":"ds1"},{"name":"scsi0:1","adapter":"pvscsi","mode":"independent nonpersistent","path":"data.vmdk","datastore":"ds1"}]`,
			`"advanced":{"ethernet0.ctxperdev":"3"}`}},
		"db":   {v.Guest("7"), []string{`"uuid":"421c0001-0203-0405-0607-08090a0b0c0d"`, `"cpus":1`, `"firmware":"bios"`, `"model":"e1000"`, `"connected_at_start":false`, `"switch":"switch dvs-prod"`, `"port":"20"`}},
		"idle": {v.Guest("9"), []string{`"power":"off"`, `its .vmx file could not be read`}},
		"host": {v.Host("ha-host"), []string{`"name":"esx1.example"`, `"guests_running":2`, `"guest_cpus":5`, `"guest_memory_bytes":10737418240`, `"vmkernel_ports":[{"device":"vmk0","port_group":"port group Management Network"`,
			`"addresses":["10.0.0.9/24"],"netstack":"defaultTcpipStack","tso":true,"services":["management","vmotion"]`, `"datastores":["ds1"]`}},
		"switches": {v.Switches, []string{`{"id":"switch vSwitch0","name":"vSwitch0","kind":"standard","host":"ha-host","mtu_bytes":9000,"ports":128,"uplinks":[{"host":"ha-host","nic":"vmnic0"}],"teaming":{"policy":"ip hash","active":["vmnic0"]},"shaping_out":{"enabled":false},"security":{"promiscuous":false,"forged_transmits":true,"mac_changes":false}}`,
			`{"id":"switch dvs-prod","name":"dvs-prod","kind":"distributed","hosts":["ha-host"],"mtu_bytes":1500`}},
		"port groups": {v.PortGroups, []string{`"name":"VM Network","switch":"switch vSwitch0","host":"ha-host","vlan":"100","shaping_out":{"enabled":true,"average_bps":102400000,"peak_bps":204800000,"burst_bytes":102400}`,
			`"name":"lab net","switch":"switch vSwitch0","host":"ha-host","vlan":"trunk 0-4094"`}},
		"datastores":  {v.Datastores, []string{`{"id":"ds1","name":"ds1","type":"VMFS-6","size_bytes":999922073600,"free_bytes":512000000000}`}},
		"not checked": {v.NotChecked, []string{`"fact":"guests.tools","why":"`, `this host has no such command`, `port_groups.lab net.failover`, "some configuration files: "}},
	} {
		got := values(t, x.of)
		for _, want := range x.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: nothing of %s in\n%s", name, want, got)
			}
		}
	}
}

// TestContract runs the contract of all sources.
func TestContract(t *testing.T) {
	hypervisortest.Suite{Open: func(t *testing.T) hypervisor.Source { return New(load(t, "esxi-8"), "ssh://root@esx1") }}.Run(t)
}

// A choice by address has its host and networks; an empty choice has nothing.
func TestInventoryChooses(t *testing.T) {
	h := New(load(t, "esxi-8"), "esx1")
	v, err := h.Inventory(t.Context(), func(g *measure.Guest) bool { return len(g.Addrs) > 0 && g.Addrs[0] == "10.0.0.21" }, nil)
	if err != nil || len(v.Guests) != 1 || v.Guests[0].Name != "web 1" || len(v.Hosts) != 1 || *v.GuestsTotal != 3 {
		t.Errorf("%d guests, %d hosts, %v", len(v.Guests), len(v.Hosts), err)
	}
	v, err = h.Inventory(t.Context(), func(*measure.Guest) bool { return false }, func(x *measure.GuestHost) bool { return x.Name == "other" })
	if err != nil || len(v.Guests)+len(v.Hosts)+len(v.Switches)+len(v.PortGroups) != 0 {
		t.Errorf("%d guests, %d hosts, %d switches, %v", len(v.Guests), len(v.Hosts), len(v.Switches), err)
	}
	v, err = h.Inventory(t.Context(), func(*measure.Guest) bool { return false }, func(x *measure.GuestHost) bool { return len(x.Ports) > 0 && x.Ports[0].Addrs[0] == "10.0.0.9/24" })
	if err != nil || len(v.Hosts) != 1 || len(v.Switches) != 2 {
		t.Errorf("by the host's address: %d hosts, %d switches, %v", len(v.Hosts), len(v.Switches), err)
	}
}

func TestInventoryOfNothing(t *testing.T) {
	_, err := New(sample{}, "esx1").Inventory(t.Context(), nil, nil)
	if err == nil || !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("%v", err)
	}
	few := sample{"esxcli system version get": "   Product: VMware ESXi\n   Version: 8.0.2\n   Build: 1\n"}
	v, err := New(few, "esx1").Inventory(t.Context(), nil, nil)
	if err != nil || len(v.Guests) != 0 || !strings.Contains(values(t, v.NotChecked), `"fact":"guests"`) {
		t.Errorf("%v, not checked: %s", err, values(t, v.NotChecked))
	}
}

// hanging is a host whose management does not answer.
type hanging struct{ sample }

func (h hanging) Run(ctx context.Context, name string, args ...string) ([]byte, error) {
	if name != "esxcli" && name != "vim-cmd" {
		return h.sample.Run(ctx, name, args...)
	}
	<-ctx.Done()
	return nil, fmt.Errorf("platform: running ssh: %w", ctx.Err())
}

// A hanging service costs one wait, and is named.
func TestInventoryHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		v, err := New(hanging{load(t, "esxi-8")}, "esx1").Inventory(t.Context(), nil, nil)
		if d := time.Since(begin); d > 3*patience {
			t.Errorf("it took %v", d)
		}
		if said := values(t, v); err != nil || !strings.Contains(said, "hostd seems to hang") || !strings.Contains(said, "timed out") {
			t.Errorf("%v, %s", err, said)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := New(hanging{sample{}}, "esx1").Inventory(ctx, nil, nil); err == nil {
			t.Error("an inventory after its context")
		}
	})
}

func FuzzText(f *testing.F) {
	s := load(f, "esxi-8")
	for _, name := range []string{"vim-cmd vmsvc/getallvms", "exit grep", "vim-cmd vmsvc/get.guest 1"} {
		f.Add(s[name])
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, g := range readGuestList(text) {
			if g.ID == "" || g.file == "" {
				t.Errorf("a guest without an id or a file: %+v", g)
			}
		}
		files := map[string]map[string]string{}
		readFiles(text, files)
		for _, v := range files {
			var g measure.Guest
			fill(&g, v)
			if g.CPUs == nil || *g.CPUs < 0 || g.Memory != nil && *g.Memory < 0 {
				t.Errorf("%+v", g)
			}
		}
		readTree(text)
		for c, n := range readRound(text) {
			if n < 0 || c.counter == "" {
				t.Errorf("%+v: %d", c, n)
			}
		}
		if top, err := newTop(strings.NewReader(text), func(string, string) bool { return true }); err == nil {
			for {
				values, err := top.next()
				if err != nil {
					break
				}
				if len(values) != len(top.columns) {
					t.Errorf("%d values of %d columns", len(values), len(top.columns))
				}
			}
		}
	})
}
