package vsphere

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"thru/internal/fault"
	"thru/internal/hypervisor/hypervisortest"
	"thru/internal/measure"
)

// between is a proxy between a client and its server, which may alter
// requests and answers.
type between struct {
	soap.RoundTripper
	before func(req soap.HasFault) error
	after  func(res soap.HasFault)
}

func (b between) RoundTrip(ctx context.Context, req, res soap.HasFault) error {
	if b.before != nil {
		if err := b.before(req); err != nil {
			return err
		}
	}
	err := b.RoundTripper.RoundTrip(ctx, req, res)
	if err == nil && b.after != nil {
		b.after(res)
	}
	return err
}

// objects returns the objects of a page of properties.
func objects(res soap.HasFault) []types.ObjectContent {
	switch r := res.(type) {
	case *methods.RetrievePropertiesExBody:
		if r.Res != nil && r.Res.Returnval != nil {
			return r.Res.Returnval.Objects
		}
	case *methods.ContinueRetrievePropertiesExBody:
		if r.Res != nil {
			return r.Res.Returnval.Objects
		}
	}
	return nil
}

// refuse turns properties into refused ones, as a server does for an account
// without a privilege.
func refuse(paths ...string) func(soap.HasFault) {
	return func(res soap.HasFault) {
		list := objects(res)
		for i := range list {
			o := &list[i]
			o.PropSet = slices.DeleteFunc(o.PropSet, func(p types.DynamicProperty) bool {
				gone := slices.Contains(paths, p.Name)
				if gone {
					o.MissingSet = append(o.MissingSet, types.MissingProperty{Path: p.Name,
						Fault: types.LocalizedMethodFault{Fault: &types.NoPermission{PrivilegeId: "System.Read"}}})
				}
				return gone
			})
		}
	}
}

// TestReadOnly verifies that facts which an account may not read are named,
// once for each kind, and that no empty value replaces them.
func TestReadOnly(t *testing.T) {
	c := dial(t, simulated(t, small(), nil))
	c.vim.RoundTripper = between{RoundTripper: c.vim.RoundTripper, after: refuse("config.option", "config.network.pnic", "config.hardware.device", "config.uuid", "hardware.systemInfo")}
	v, err := c.Inventory(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	hypervisortest.Check(t, &v)
	for _, want := range []string{
		"hosts.config.option: no permission (System.Read) of DC0_C0_H0 and 1 more",
		"hosts.config.network.pnic: no permission (System.Read) of DC0_C0_H0 and 1 more",
		"guests.config.hardware.device: no permission (System.Read) of ",
		"guests.config.uuid: no permission (System.Read) of ",
	} {
		if n := slices.IndexFunc(v.NotChecked, func(n measure.NotChecked) bool { return strings.HasPrefix(n.Fact+": "+n.Why, want) }); n < 0 {
			t.Errorf("no reason for %s in %+v", want, v.NotChecked)
		}
	}
	g, h := v.Guests[0], v.Hosts[0]
	if g.UUID != "" || g.NICs != nil || g.Disks != nil || h.Facts.Sysctls != nil || h.UUID != "" || h.Facts.Changed != nil {
		t.Errorf("%+v, %+v", g, h.Facts)
	}
	for list, facts := range map[*[]measure.NotChecked][]string{&g.NotChecked: {"uuid", "nics", "disks"}, &h.Facts.NotChecked: {"sysctls", "settings_changed", "interfaces", "machine"}} {
		for _, fact := range facts {
			if why := reasonOf(*list, fact); why == "" {
				t.Errorf("no reason for %s in %+v", fact, *list)
			}
		}
	}
	chosen, err := c.Inventory(t.Context(), func(g *measure.Guest) bool { return g.UUID == "x" }, nil)
	if err != nil || len(chosen.Guests) > 0 || !slices.ContainsFunc(chosen.NotChecked, func(n measure.NotChecked) bool { return n.Fact == "guests.config.uuid" }) {
		t.Errorf("where the UUID decides: %+v, %v", chosen.NotChecked, err)
	}
}

// TestRefusedStep verifies that the refusal of one step leaves the rest.
func TestRefusedStep(t *testing.T) {
	c := dial(t, simulated(t, small(), nil))
	c.vim.RoundTripper = between{RoundTripper: c.vim.RoundTripper, before: func(req soap.HasFault) error {
		if r, is := req.(*methods.CreateContainerViewBody); is && slices.Contains(r.Req.Type, "Datastore") {
			return soap.WrapVimFault(&types.NoPermission{PrivilegeId: "System.View"})
		}
		return nil
	}}
	v, err := c.Inventory(t.Context(), nil, nil)
	if err != nil || len(v.Guests) == 0 || len(v.Hosts) == 0 || reasonOf(v.NotChecked, "datastores") != "no permission (System.View)" {
		t.Errorf("%+v, %v", v.NotChecked, err)
	}
	hypervisortest.Check(t, &v)
	if running := func(h measure.GuestHost) bool { return h.Guests != nil && *h.Guests > 0 }; !slices.ContainsFunc(v.Hosts, running) {
		t.Errorf("no host has guests: %+v", v.Hosts)
	}
	direct := c.vim.RoundTripper
	defer func() { c.vim.RoundTripper = direct }()
	c.vim.RoundTripper = between{before: func(soap.HasFault) error {
		return soap.WrapVimFault(&types.NoPermission{PrivilegeId: "System.View"})
	}}
	if _, err := c.Inventory(t.Context(), nil, nil); err == nil || !strings.Contains(err.Error(), "no permission (System.View)") || !strings.Contains(fault.Hint(err), "Read-only") {
		t.Errorf("%v (%s)", err, fault.Hint(err))
	}
}

// TestSomeMachines verifies that the number of running machines is not
// reported for a host with machines that are not visible.
func TestSomeMachines(t *testing.T) {
	c := dial(t, simulated(t, small(), nil))
	direct := c.vim.RoundTripper
	guests := func(req soap.HasFault) bool {
		r, is := req.(*methods.CreateContainerViewBody)
		return is && slices.Contains(r.Req.Type, "VirtualMachine")
	}
	drop := func(res soap.HasFault) {
		if r, is := res.(*methods.RetrievePropertiesExBody); is && r.Res != nil && r.Res.Returnval != nil {
			of := r.Res.Returnval
			first := slices.IndexFunc(of.Objects, func(o types.ObjectContent) bool { return o.Obj.Type == guestKind })
			of.Objects = slices.DeleteFunc(of.Objects, func(o types.ObjectContent) bool {
				return o.Obj.Type == guestKind && o.Obj.Value != of.Objects[first].Obj.Value
			})
		}
	}
	for name, tc := range map[string]struct {
		before func(soap.HasFault) error
		after  func(soap.HasFault)
		why    string
	}{
		"folder":  {nil, drop, "in full: the account may not see the others"},
		"refused": {func(req soap.HasFault) error { return refusedIf(guests(req)) }, nil, "no permission (System.View)"},
		"memory":  {nil, refuse("config.hardware.memoryMB"), "in full"},
		"list":    {nil, refuse("vm"), "no permission (System.Read)"},
	} {
		t.Run(name, func(t *testing.T) {
			c.vim.RoundTripper = between{direct, tc.before, tc.after}
			defer func() { c.vim.RoundTripper = direct }()
			v, err := c.Inventory(t.Context(), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			hypervisortest.Check(t, &v)
			unknown := slices.IndexFunc(v.Hosts, func(h measure.GuestHost) bool { return h.Guests == nil })
			if unknown < 0 {
				t.Fatalf("all counts are known: %+v", v.Hosts)
			}
			h := v.Hosts[unknown]
			if h.CPUsHanded != nil || h.MemHanded != nil || !strings.Contains(reasonOf(h.NotChecked, "guests_running"), tc.why) {
				t.Errorf("%v, %v: %+v", h.CPUsHanded, h.MemHanded, h.NotChecked)
			}
		})
	}
}

func refusedIf(is bool) error {
	if is {
		return soap.WrapVimFault(&types.NoPermission{PrivilegeId: "System.View"})
	}
	return nil
}

// TestChanging verifies that a session lost between two requests, and a
// machine removed between two requests, affect nothing else.
func TestChanging(t *testing.T) {
	c := dial(t, simulated(t, small(), nil))
	pages, direct := 0, c.vim.RoundTripper
	c.vim.RoundTripper = between{RoundTripper: direct, before: func(req soap.HasFault) error {
		if _, is := req.(*methods.RetrievePropertiesExBody); is {
			if pages++; pages == 4 { // the tree, the machines, the hosts, and now their options
				_, err := methods.Logout(t.Context(), direct, &types.Logout{This: *c.vim.ServiceContent.SessionManager})
				return err
			}
		}
		return nil
	}}
	v, err := c.Inventory(t.Context(), nil, nil)
	if err != nil || len(v.Hosts) != 2 || pages < 8 || c.logins != 2 {
		t.Errorf("%d hosts, %d questions, %d logins: %v", len(v.Hosts), pages, c.logins, err)
	}
	n := len(v.Guests)
	gone := v.Guests[1].ID
	c.vim.RoundTripper = between{RoundTripper: direct, before: func(req soap.HasFault) error {
		r, is := req.(*methods.RetrievePropertiesExBody)
		if is && slices.ContainsFunc(r.Req.SpecSet[0].ObjectSet, func(o types.ObjectSpec) bool { return o.Obj.Value == gone }) {
			return soap.WrapVimFault(&types.ManagedObjectNotFound{Obj: types.ManagedObjectReference{Type: "VirtualMachine", Value: gone}})
		}
		return nil
	}}
	all := func(*measure.Guest) bool { return true }
	if v, err = c.Inventory(t.Context(), all, nil); err != nil || len(v.Guests) != n-1 || v.Guest(gone) != nil || *v.GuestsTotal != n {
		t.Errorf("%d of %d guests: %v", len(v.Guests), *v.GuestsTotal, err)
	}
}

// crowd answers like a server of n equal machines.
type crowd struct {
	soap.RoundTripper
	n, sent int
	one     types.ObjectContent
	asked   types.RetrievePropertiesEx
	most    int       // objects in a page
	each    func(int) // after each page
}

func (c *crowd) RoundTrip(ctx context.Context, req, res soap.HasFault) error {
	switch r := req.(type) {
	case *methods.RetrievePropertiesExBody:
		if r.Req.SpecSet[0].PropSet[0].Type != "VirtualMachine" {
			break
		}
		if err := c.RoundTripper.RoundTrip(ctx, req, res); err != nil {
			return err
		}
		c.one, c.asked, c.sent = objects(res)[0], *r.Req, 0
		page, token := c.page()
		*res.(*methods.RetrievePropertiesExBody).Res.Returnval = types.RetrieveResult{Objects: page, Token: token}
		return nil
	case *methods.ContinueRetrievePropertiesExBody:
		if r.Req.Token != "crowd" {
			break
		}
		page, token := c.page()
		res.(*methods.ContinueRetrievePropertiesExBody).Res = &types.ContinueRetrievePropertiesExResponse{Returnval: types.RetrieveResult{Objects: page, Token: token}}
		return nil
	}
	return c.RoundTripper.RoundTrip(ctx, req, res)
}

// page returns the next page, with as many objects as requested.
func (c *crowd) page() ([]types.ObjectContent, string) {
	c.each(c.sent)
	var list []types.ObjectContent
	for len(list) < int(c.asked.Options.MaxObjects) && c.sent < c.n {
		o := c.one
		o.Obj.Value = fmt.Sprintf("vm-%d", c.sent)
		o.PropSet = slices.Clone(o.PropSet)
		for i := range o.PropSet {
			if o.PropSet[i].Name == "name" {
				o.PropSet[i].Val = fmt.Sprintf("machine %d", c.sent)
			}
			if list, is := o.PropSet[i].Val.(types.ArrayOfOptionValue); is { // 16 KB each
				list.OptionValue = append(slices.Clone(list.OptionValue), &types.OptionValue{Key: "other", Value: strings.Repeat("x", 16<<10)})
				o.PropSet[i].Val = list
			}
		}
		list = append(list, o)
		c.sent++
	}
	c.most = max(c.most, len(list))
	if c.sent == c.n {
		return list, ""
	}
	return list, "crowd"
}

// TestManyMachines verifies that of 5,000 machines only the records are kept:
// the memory in use while they are read stays below the size of their pages.
func TestManyMachines(t *testing.T) {
	c := dial(t, simulated(t, small(), nil))
	var most, first uint64
	in := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	many := &crowd{RoundTripper: c.vim.RoundTripper, n: 5000, each: func(sent int) {
		switch {
		case sent == 0:
			first = in()
		case sent%500 == 0:
			most = max(most, in())
		}
	}}
	c.vim.RoundTripper = many
	v, err := c.Inventory(t.Context(), nil, nil)
	if err != nil || len(v.Guests) != 5000 || many.most > pageSize {
		t.Fatalf("%d guests, pages of %d: %v", len(v.Guests), many.most, err)
	}
	kept := int64(most) - int64(first)
	t.Logf("5,000 machines: %.1f MB in use beyond the first page", float64(kept)/1e6)
	if limit := int64(5000 * 8 << 10); kept > limit {
		t.Errorf("%d bytes in use, more than %d: pages are kept", kept, limit)
	}
	runtime.KeepAlive(v)
}

// TestImageAndDrivers covers what the simulator has no objects for: the image
// that a host was installed from and the parameters of its drivers
// (HostImageConfigGetProfile, QueryConfiguredModuleOptionString).
func TestImageAndDrivers(t *testing.T) {
	c := dial(t, dressed(t))
	direct := c.vim.RoundTripper
	c.vim.RoundTripper = answering{direct, func(req, res soap.HasFault) bool {
		switch r := res.(type) {
		case *methods.HostImageConfigGetProfileBody:
			r.Res = &types.HostImageConfigGetProfileResponse{Returnval: types.HostImageProfileSummary{Name: "ESXi-8.0U3-24022510-standard"}}
		case *methods.QueryConfiguredModuleOptionStringBody:
			r.Res = &types.QueryConfiguredModuleOptionStringResponse{}
			if req.(*methods.QueryConfiguredModuleOptionStringBody).Req.Name == "nmlx5_core" {
				r.Res.Returnval = "DRSS=4 RSS=4,4 odd max_vfs="
			}
		default:
			return false
		}
		return true
	}}
	v, err := c.Inventory(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := v.Hosts[0].Facts
	if *f.Distro != "VMware ESXi 8.0.2 Update 3 (ESXi-8.0U3-24022510-standard)" || f.Changed["nmlx5_core.DRSS"] != "4" || f.Changed["nmlx5_core.RSS"] != "4,4" || len(f.Changed) != 6 {
		t.Errorf("%s, %v", *f.Distro, f.Changed)
	}
	c.vim.RoundTripper = between{RoundTripper: direct, before: func(req soap.HasFault) error {
		if _, is := req.(*methods.QueryConfiguredModuleOptionStringBody); is {
			return soap.WrapVimFault(&types.NoPermission{PrivilegeId: "Host.Config.AdvancedConfig"})
		}
		return nil
	}}
	if v, err = c.Inventory(t.Context(), nil, nil); err != nil || reasonOf(v.Hosts[0].Facts.NotChecked, "settings_changed.drivers") != "no permission (Host.Config.AdvancedConfig)" {
		t.Errorf("%+v, %v", v.Hosts[0].Facts.NotChecked, err)
	}
}

// answering is a proxy that answers some calls itself.
type answering struct {
	soap.RoundTripper
	answer func(req, res soap.HasFault) bool
}

func (a answering) RoundTrip(ctx context.Context, req, res soap.HasFault) error {
	if a.answer(req, res) {
		return nil
	}
	return a.RoundTripper.RoundTrip(ctx, req, res)
}

// TestChosen verifies that a chosen machine brings the networks that it uses, and no
// others.
func TestChosen(t *testing.T) {
	model := simulator.VPX()
	model.Portgroup = 5
	c := dial(t, simulated(t, model, nil))
	all, err := c.Inventory(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := all.Guests[0]
	v, err := c.Inventory(t.Context(), func(o *measure.Guest) bool { return o.ID == g.ID }, nil)
	if err != nil {
		t.Fatal(err)
	}
	hypervisortest.Check(t, &v)
	var names []string
	for _, p := range v.PortGroups {
		names = append(names, p.Name)
	}
	if want := []string{*g.NICs[0].Network, "Management Network", "VM Network"}; !slices.Equal(slices.DeleteFunc(names, func(n string) bool { return strings.Contains(n, "Uplinks") }), want) {
		t.Errorf("port groups %v, want %v; all are %d", names, want, len(all.PortGroups))
	}
	if len(v.Switches) != 2 || v.Switches[0].Kind != "distributed" || !slices.Equal(v.Switches[0].Hosts, []string{g.Host}) {
		t.Errorf("switches %+v", v.Switches)
	}
}

// TestHostAlone verifies what an ESXi host knows about a distributed switch
// without its vCenter.
func TestHostAlone(t *testing.T) {
	c := dial(t, simulated(t, simulator.ESX(), func(m *simulator.Model) {
		dressGuest(m)
		dressHost(m, &m.Map().Any("HostSystem").(*simulator.HostSystem).HostSystem)
	}))
	v, err := c.Inventory(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	hypervisortest.Check(t, &v)
	s := v.Switch("dvs-uuid")
	if s == nil || s.Kind != "distributed" || s.Name != "DVS0" || *s.MTU != 9000 || len(s.Uplinks) != 1 || s.Uplinks[0].NIC != "vmnic1" {
		t.Errorf("switch %+v", s)
	}
	n := slices.IndexFunc(v.Guests, func(g measure.Guest) bool { return g.Name == "web/1" })
	if nic := v.Guests[n].NICs[0]; nic.Switch != "dvs-uuid" || nic.PortGroup != "" || *nic.Port != "17" {
		t.Errorf("adapter %+v", nic)
	}
}
