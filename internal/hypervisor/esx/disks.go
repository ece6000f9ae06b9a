package esx

import (
	"cmp"
	"slices"
	"strings"

	"thru/internal/host/platform"
	"thru/internal/measure"
	"thru/internal/unit"
)

// diskKey matches the file of a virtual disk in a .vmx file:
// scsi0:1.fileName.
var diskKey = unit.Pattern(`^((scsi|sata|nvme|ide)\d+):\d+\.filename$`)

// disks reads the guest's disks from its .vmx file, which has neither their
// size nor whether they are thin.
func (r *reading) disks(g *guest, v map[string]string) {
	for key, file := range v {
		m := diskKey().FindStringSubmatch(key)
		if m == nil || !strings.HasSuffix(strings.ToLower(file), ".vmdk") {
			continue
		}
		at := strings.TrimSuffix(key, ".filename")
		if on, known := platform.Flag(v[at+".present"]); known && !on {
			continue
		}
		d := measure.GuestDisk{Name: at, Adapter: cmp.Or(said(v[m[1]+".virtualdev"]), &m[2]), Path: said(file), Mode: new("persistent")} // the default of the file
		if mode := v[at+".mode"]; mode != "" {
			d.Mode = new(strings.ReplaceAll(mode, "-", " "))
		}
		store, _, _ := strings.Cut(g.file, "/")
		if rest, elsewhere := strings.CutPrefix(file, "/vmfs/volumes/"); elsewhere {
			store, _, _ = strings.Cut(rest, "/")
		}
		if slices.ContainsFunc(r.Datastores, func(s measure.Datastore) bool { return s.ID == store }) {
			d.Datastore = store
		}
		g.Disks = append(g.Disks, d)
	}
	slices.SortFunc(g.Disks, func(a, b measure.GuestDisk) int { return strings.Compare(a.Name, b.Name) })
	if len(g.Disks) > 0 {
		g.NotChecked = append(g.NotChecked, measure.NotChecked{Fact: "disks.size_bytes", Why: "not in the .vmx file"}, measure.NotChecked{Fact: "disks.format", Why: "not in the .vmx file"})
	}
}
