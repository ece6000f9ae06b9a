package inventory

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
)

// inventoryColumns returns the columns of an inventory as CSV; each name has its unit. The first ones
// identify the row.
func inventoryColumns() []string {
	return []string{"source", "scope", "id", "name", "of", "host", "cluster", "datacenter", "power", "system", "version",
		"cpus", "memory_bytes", "cpu_reserved_hz", "cpu_limit_hz", "memory_reserved_bytes", "memory_limit_bytes",
		"model", "mac", "network", "vlan", "switch", "mtu_bytes", "uplinks", "connected", "addresses", "format", "mode", "size_bytes", "datastore", "uuid", "tools"}
}

// CSV prints a row for each host ("host"), guest ("vm"), virtual adapter ("adapter"), virtual disk ("disk"),
// network ("network") and datastore.
func CSV(w io.Writer, d *measure.Document) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s\r\n", strings.Join(inventoryColumns(), ","))
	for i := range d.Inventories {
		x := newIndex(&d.Inventories[i])
		put := func(cells map[string]string) {
			cells["source"] = x.Source
			row := make([]string, len(inventoryColumns()))
			for n, name := range inventoryColumns() {
				if row[n] = cells[name]; strings.Trim(row[n], "0123456789") != "" { // a number needs no quotes
					row[n] = doc.CSV(row[n])
				}
			}
			fmt.Fprintf(out, "%s\r\n", strings.Join(row, ",")) // an error stays in the writer
		}
		for n := range x.Hosts {
			put(hostCells(&x.Hosts[n]))
		}
		for n := range x.Guests {
			for _, cells := range guestCells(x, &x.Guests[n]) {
				put(cells)
			}
		}
		for n := range x.PortGroups {
			put(groupCells(x, &x.PortGroups[n]))
		}
		for n := range x.Datastores {
			s := &x.Datastores[n]
			put(map[string]string{"scope": "datastore", "id": s.ID, "name": s.Name, "datacenter": s.Site, "model": measure.Value(s.Type), "size_bytes": integer(s.Size)})
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("report: writing CSV: %w", err)
	}
	return nil
}

func hostCells(h *measure.GuestHost) map[string]string {
	f := h.Facts
	if f == nil {
		f = &measure.Facts{}
	}
	return map[string]string{"scope": "host", "id": h.ID, "name": h.Name, "cluster": h.Cluster, "datacenter": h.Site, "power": measure.Value(h.State), "system": measure.Value(f.Distro), "version": measure.Value(f.Kernel),
		"cpus": doc.Number(f.ThreadCount()), "memory_bytes": integer(f.Memory), "model": machineModel(f.Machine), "uuid": h.UUID}
}

// guestCells returns the rows of a guest: itself, its adapters, its disks.
func guestCells(x *index, g *measure.Guest) []map[string]string {
	host := g.Host
	if h := x.hosts[g.Host]; h != nil {
		host = h.Name
	}
	own := map[string]string{"scope": "vm", "id": g.ID, "name": g.Name, "host": host, "cluster": g.Cluster, "datacenter": g.Site, "power": powerText(g), "system": cmp.Or(measure.Value(g.OSRuns), measure.Value(g.OS)),
		"version": measure.Value(g.Hardware), "cpus": doc.Number(g.CPUs), "memory_bytes": integer(g.Memory), "model": adaptersText(g), "network": networksText(x, g), "addresses": strings.Join(g.Addrs, " "), "uuid": g.UUID, "tools": toolsText(g.Tools)}
	if a := g.CPUShare; a != nil {
		own["cpu_reserved_hz"], own["cpu_limit_hz"] = integer(a.Reserved), integer(a.Limit)
	}
	if a := g.MemoryShare; a != nil {
		own["memory_reserved_bytes"], own["memory_limit_bytes"] = integer(a.Reserved), integer(a.Limit)
	}
	all := []map[string]string{own}
	for i := range g.NICs {
		n := &g.NICs[i]
		vlan := measure.Value(n.VLAN)
		if p := x.groups[n.PortGroup]; p != nil {
			vlan = cmp.Or(vlan, measure.Value(p.VLAN))
		}
		all = append(all, map[string]string{"scope": "adapter", "id": n.Key, "name": n.Name, "of": g.Name, "host": host, "model": measure.Value(n.Model), "mac": measure.Value(n.MAC), "network": measure.Value(n.Network), "vlan": vlan,
			"switch": switchName(x, n), "mtu_bytes": doc.Number(n.MTU), "uplinks": measure.Value(n.Uplink), "connected": yesNo(n.Connected), "addresses": strings.Join(n.Addrs, " ")})
	}
	for i := range g.Disks {
		d := &g.Disks[i]
		store := d.Datastore
		if s := x.stores[d.Datastore]; s != nil {
			store = s.Name
		}
		all = append(all, map[string]string{"scope": "disk", "name": d.Name, "of": g.Name, "host": host, "model": measure.Value(d.Adapter), "format": measure.Value(d.Format), "mode": measure.Value(d.Mode), "size_bytes": integer(d.Size), "datastore": store})
	}
	return all
}

func groupCells(x *index, p *measure.SwitchPortGroup) map[string]string {
	cells := map[string]string{"scope": "network", "id": p.ID, "name": p.Name, "vlan": measure.Value(p.VLAN)}
	if s := x.switches[p.Switch]; s != nil {
		cells["switch"], cells["mtu_bytes"], cells["uplinks"] = s.Name, doc.Number(s.MTU), uplinksText(s, nil)
	}
	if h := x.hosts[cmp.Or(p.Host, hostOfSwitch(x, p.Switch))]; h != nil {
		cells["host"] = h.Name
	}
	return cells
}

func integer(n *int64) string {
	return doc.Known("%s", n, func(n int64) string { return strconv.FormatInt(n, 10) })
}
