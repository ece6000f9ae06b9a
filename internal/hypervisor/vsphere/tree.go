package vsphere

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/types"
)

// place is an object in the tree of folders.
type place struct {
	name   string
	parent types.ManagedObjectReference // empty: the root
}

// tree holds folders, data centers, clusters, pools, and the hosts, which are
// few compared with machines.
type tree map[types.ManagedObjectReference]place

// readTree reads names and parents.
func readTree(ctx context.Context, vc *vim25.Client, refuse *refusals) (tree, error) {
	t := tree{}
	q := query{types: []string{"Folder", "Datacenter", "ComputeResource", "ResourcePool", "HostSystem"}, paths: []string{"name", "parent"}}
	return t, q.each(ctx, vc, func(o *types.ObjectContent) error {
		r := reader{object: o}
		p := place{name: unescape(r.text("", "name", ""))}
		p.parent, _ = value[types.ManagedObjectReference](&r, "", "parent", "")
		refuse.note(kindWord(o.Obj.Type), p.name, o)
		t[plain(o.Obj)] = p
		return nil
	})
}

// plain removes a server's own id from a reference (ServerGuid), which some
// answers have and others not, and which does not identify the object here.
func plain(r types.ManagedObjectReference) types.ManagedObjectReference {
	return types.ManagedObjectReference{Type: r.Type, Value: r.Value}
}

// unescape decodes a name, in which vCenter writes "/" as "%2f".
func unescape(s *string) string {
	if s == nil {
		return ""
	}
	if name, err := url.PathUnescape(*s); err == nil {
		return name
	}
	return *s
}

// depth limits the walk up a tree that may have a cycle.
const depth = 64

// up visits an object and its parents until see stops it.
func (t tree) up(from types.ManagedObjectReference, see func(types.ManagedObjectReference, place) bool) {
	for range depth {
		from = plain(from)
		p, known := t[from]
		if !known || see(from, p) {
			return
		}
		from = p.parent
	}
}

// nearest returns the name of the next parent of one of the kinds, or "".
func (t tree) nearest(from types.ManagedObjectReference, kinds ...string) string {
	name := ""
	t.up(from, func(r types.ManagedObjectReference, p place) bool {
		found := slices.Contains(kinds, r.Type)
		if found {
			name = p.name
		}
		return found
	})
	return name
}

// site returns the data center of an object.
func (t tree) site(from types.ManagedObjectReference) string { return t.nearest(from, "Datacenter") }

// cluster returns the cluster of a host; a standalone host has none.
func (t tree) cluster(host types.ManagedObjectReference) string {
	return t.nearest(host, "ClusterComputeResource")
}

// path returns the folders of an object, without the data center's folder
// that all machines are in.
func (t tree) path(folder types.ManagedObjectReference) string {
	var names []string
	t.up(folder, func(r types.ManagedObjectReference, p place) bool {
		if above := plain(p.parent); r.Type != "Folder" || above.Type == "Datacenter" || above.Value == "" {
			return true
		}
		names = append(names, p.name)
		return false
	})
	slices.Reverse(names)
	return strings.Join(names, "/")
}

// pool returns the name of a machine's resource pool; "" for the cluster's
// default pool.
func (t tree) pool(ref types.ManagedObjectReference) string {
	p := t[plain(ref)]
	if p.parent.Type != "ResourcePool" && p.parent.Type != "VirtualApp" && p.name == "Resources" {
		return ""
	}
	return p.name
}

// hosts returns all hosts.
func (t tree) hosts() []types.ManagedObjectReference {
	var all []types.ManagedObjectReference
	for r := range t {
		if r.Type == "HostSystem" {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b types.ManagedObjectReference) int { return natural(a.Value, b.Value) })
	return all
}

// natural orders "host-9" before "host-10".
func natural(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// kindWord returns NotChecked's name for objects of a kind.
func kindWord(of string) string {
	words := map[string]string{"VirtualMachine": "guests", "HostSystem": "hosts", "Datastore": "datastores", "OptionManager": "hosts.options",
		"DistributedVirtualSwitch": "switches", "VmwareDistributedVirtualSwitch": "switches", "DistributedVirtualPortgroup": "port_groups"}
	return cmp.Or(words[of], of)
}
