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

// version returns the product, version and build of the hypervisor; "" if the inventory does not have it.
func (b *hostPlacement) version() string {
	if b.host == nil || b.host.Facts == nil {
		return ""
	}
	return doc.Clean(doc.Join(hostVersion(b.host.Facts), doc.Prefixed("on ", b.host.Name)))
}

// ofGuest returns an accessor for a value of the guest's fact sheet.
func ofGuest(value func(*factSheet, *measure.Guest) string) func(*hostPlacement) string {
	return func(b *hostPlacement) string {
		if b.guest == nil {
			return ""
		}
		return value(newGuestFactSheet(b.x, b.guest), b.guest)
	}
}

// diskTexts words each virtual disk.
func (s *factSheet) diskTexts(g *measure.Guest) string {
	var all []string
	for i := range g.Disks[:min(len(g.Disks), facts.MostInterfaces)] {
		all = append(all, doc.Clean(g.Disks[i].Name)+": "+s.diskText(&g.Disks[i]))
	}
	return strings.Join(all, "; ")
}

func (s *factSheet) allocations(g *measure.Guest) string {
	return "CPU: " + s.cpuAllocation(g) + "; memory: " + s.memoryAllocation(g)
}
