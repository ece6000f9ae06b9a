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

// place is an object of the tree of folders.
type place struct {
	name   string
	parent types.ManagedObjectReference // empty: the root
}

// tree is what everything stands in: folders, data centers, clusters, pools,
// and the hosts, which are few beside the machines.
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

// plain leaves out what is no part of an object's identity here: a server's
// own id in a reference (ServerGuid), which some answers have and others not.
func plain(r types.ManagedObjectReference) types.ManagedObjectReference {
	return types.ManagedObjectReference{Type: r.Type, Value: r.Value}
}

// unescape reads a name, in which vCenter writes "/" as "%2f".
func unescape(s *string) string {
	if s == nil {
		return ""
	}
	if name, err := url.PathUnescape(*s); err == nil {
		return name
	}
	return *s
}

// depth bounds the way up, should a tree have a ring.
const depth = 64

// up visits an object and those above it until see says stop.
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

// nearest is the name of the next object above of one of the kinds, or "".
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

// site is the name of the data center that an object is in.
func (t tree) site(from types.ManagedObjectReference) string { return t.nearest(from, "Datacenter") }

// cluster is the name of the cluster that a host is in; a host alone has none.
func (t tree) cluster(host types.ManagedObjectReference) string {
	return t.nearest(host, "ClusterComputeResource")
}

// path is the way of folders to an object, without the folder of the data
// center that all machines stand in.
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

// pool is the name of a machine's resource pool; the one that every cluster
// has and nobody made is none.
func (t tree) pool(ref types.ManagedObjectReference) string {
	p := t[plain(ref)]
	if p.parent.Type != "ResourcePool" && p.parent.Type != "VirtualApp" && p.name == "Resources" {
		return ""
	}
	return p.name
}

// hosts are all hosts that there are.
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

// kindWord is how NotChecked names objects of a kind.
func kindWord(of string) string {
	words := map[string]string{"VirtualMachine": "guests", "HostSystem": "hosts", "Datastore": "datastores", "OptionManager": "hosts.options",
		"DistributedVirtualSwitch": "switches", "VmwareDistributedVirtualSwitch": "switches", "DistributedVirtualPortgroup": "port_groups"}
	return cmp.Or(words[of], of)
}
