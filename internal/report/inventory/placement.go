package inventory

import (
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/report/facts"
)

// hostPlacement is the guest of an end point and its host; nil if no inventory knows it.
type hostPlacement struct {
	x     *index
	guest *measure.Guest
	host  *measure.GuestHost
}

// placementAt finds the guest and the host of an end point.
func placementAt(d *measure.Document, p *measure.EndPoint) *hostPlacement {
	if p.Placement == nil {
		return nil
	}
	for i := range d.Inventories {
		if v := &d.Inventories[i]; v.Source == p.Placement.Source {
			found := &hostPlacement{newIndex(v), v.Guest(p.Placement.Guest), v.Host(p.Placement.Host)}
			if found.guest == nil && found.host == nil {
				return nil
			}
			return found
		}
	}
	return nil
}

// line returns an inventory's value for a line of the acceptance record that the end point itself cannot see;
// "" if it has none.
func (b *hostPlacement) line(name string) string {
	if b == nil {
		return ""
	}
	if name == "hypervisor, version and build" && b.host != nil && b.host.Facts != nil {
		return doc.Clean(doc.Join(hostVersion(b.host.Facts), doc.Prefixed("on ", b.host.Name)))
	}
	if b.guest == nil {
		return ""
	}
	s := guestFactSheet(b.x, b.guest)
	rows := map[string]string{}
	for _, r := range s.Rows {
		rows[r.Name] = r.Value
	}
	switch name {
	case "virtual disks and their adapters":
		var all []string
		for _, disk := range b.guest.Disks[:min(len(b.guest.Disks), facts.MostInterfaces)] {
			all = append(all, doc.Clean(disk.Name)+": "+rows[doc.Clean(disk.Name)])
		}
		return strings.Join(all, "; ")
	case "reservations, limits and shares":
		return "CPU: " + rows["CPU allocation"] + "; memory: " + rows["memory allocation"]
	case "CPU affinity of the guest":
		return rows["CPU affinity"]
	}
	return ""
}
