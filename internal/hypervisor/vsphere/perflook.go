package vsphere

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/types"
)

// reference returns the object of an id in an inventory: hosts are "host-9",
// or "ha-host" on a directly connected ESXi host; guests are "vm-42", or "42"
// there.
func reference(id string) types.ManagedObjectReference {
	if strings.HasPrefix(id, "host-") || id == "ha-host" {
		return types.ManagedObjectReference{Type: hostKind, Value: id}
	}
	return types.ManagedObjectReference{Type: guestKind, Value: id}
}

// values are properties of objects, by their paths. An unreadable property is
// absent.
type values map[types.ManagedObjectReference]map[string]types.AnyType

// properties reads properties of objects of one type. An object that does not
// exist, or may not be seen, is absent.
func (c *Client) properties(ctx context.Context, refs []types.ManagedObjectReference, paths ...string) (values, error) {
	found := values{}
	q := query{refs: refs, paths: paths}
	err := c.again(ctx, func(vc *vim25.Client) error {
		return q.each(ctx, vc, func(o *types.ObjectContent) error {
			found[o.Obj] = map[string]types.AnyType{}
			for _, set := range o.PropSet {
				found[o.Obj][set.Name] = set.Val
			}
			return nil
		})
	})
	return found, err
}

// look reads the names of the entities, their present hosts, and whether they
// run.
func (p *perf) look(ctx context.Context) error {
	var guests, hosts []types.ManagedObjectReference
	for _, e := range p.entities {
		if e.ref.Type == guestKind {
			guests = append(guests, e.ref)
		} else {
			hosts = append(hosts, e.ref)
		}
	}
	of, err := p.c.properties(ctx, guests, "name", "runtime.host", "runtime.powerState", "runtime.connectionState", "config.hardware.numCPU")
	if err != nil {
		return err
	}
	for _, set := range of {
		if on, is := set["runtime.host"].(types.ManagedObjectReference); is && !slices.Contains(hosts, on) {
			hosts = append(hosts, on)
		}
	}
	host, err := p.c.properties(ctx, hosts, "name", "runtime.connectionState", "configManager.dateTimeSystem")
	if err != nil {
		return err
	}
	for ref, set := range host {
		p.host(ref.Value, set)
	}
	for _, e := range p.entities {
		set := of[e.ref]
		if e.ref.Type == hostKind {
			set = host[e.ref]
		}
		p.place(e, set)
	}
	return nil
}

// host stores the name of a host and the object with its clock.
func (p *perf) host(id string, set map[string]types.AnyType) {
	h := p.hosts[id]
	if h == nil {
		h = &stamper{name: id}
		p.hosts[id] = h
	}
	if name, is := set["name"].(string); is {
		h.name = name
	}
	if system, is := set["configManager.dateTimeSystem"].(types.ManagedObjectReference); is {
		h.system = &system
	}
	h.off = ""
	if state, is := set["runtime.connectionState"].(types.HostSystemConnectionState); is && state != types.HostSystemConnectionStateConnected {
		h.off = "the host " + h.name + " is not connected (" + string(state) + ")"
	}
}

// place stores the host of an entity, and why there may be nothing to read of
// it.
func (p *perf) place(e *entity, set map[string]types.AnyType) {
	if set == nil {
		e.off = "it no longer exists"
		return
	}
	e.name = e.ref.Value
	if name, is := set["name"].(string); is {
		e.name = name
	}
	e.on = e.ref.Value
	if e.ref.Type == guestKind {
		e.on = ""
		if on, is := set["runtime.host"].(types.ManagedObjectReference); is {
			e.on = on.Value
		}
	}
	e.first = cmp.Or(e.first, e.on)
	e.cpus = 1
	if n, is := set["config.hardware.numCPU"].(int32); is && n > 0 {
		e.cpus = int(n)
	}
	e.off = ""
	if h := p.hosts[e.on]; h != nil {
		e.off = h.off
	}
	switch power, _ := set["runtime.powerState"].(types.VirtualMachinePowerState); power {
	case types.VirtualMachinePowerStatePoweredOff:
		e.off = "it is powered off"
	case types.VirtualMachinePowerStateSuspended:
		e.off = "it is suspended"
	}
}

// why returns an error in words for a person.
func (p *perf) why(err error) string {
	if err == nil {
		return ""
	}
	if errors.Is(err, context.Canceled) {
		return "the reading was interrupted"
	}
	if words, _ := p.c.words(err); words != "" {
		return words
	}
	if faultOf(err) != nil {
		return faultWords(err)
	}
	return err.Error()
}
