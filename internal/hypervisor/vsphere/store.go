package vsphere

import (
	"fmt"
	"strings"

	"github.com/vmware/govmomi/vim25/types"

	"thru/internal/measure"
)

// storePaths lists the properties of a datastore.
func storePaths() []string { return strings.Fields("name parent summary info") }

// convertStore converts a datastore.
func convertStore(o *types.ObjectContent, t tree) measure.Datastore {
	r := &reader{object: o}
	d := measure.Datastore{ID: o.Obj.Value, Name: unescape(r.text("", "name", ""))}
	if parent, ok := value[types.ManagedObjectReference](r, "", "parent", ""); ok {
		d.Site = t.site(parent)
	}
	if s, ok := value[types.DatastoreSummary](r, "", "summary", ""); ok {
		d.Type = word(s.Type)
		if s.Capacity > 0 {
			d.Size = &s.Capacity
		}
		if s.Accessible && s.Capacity > 0 {
			d.Free = &s.FreeSpace
		}
		if s.MultipleHostAccess != nil {
			d.Local = new(!*s.MultipleHostAccess)
		}
	}
	switch i := interfaceOf[types.BaseDatastoreInfo](r, "info").(type) {
	case *types.VmfsDatastoreInfo:
		if i.Vmfs == nil {
			break
		}
		if i.Vmfs.MajorVersion > 0 {
			d.Type = new(fmt.Sprintf("VMFS-%d", i.Vmfs.MajorVersion))
		}
		if i.Vmfs.Local != nil {
			d.Local = i.Vmfs.Local
		}
		d.SSD = i.Vmfs.Ssd
		for _, e := range i.Vmfs.Extent {
			d.Devices = append(d.Devices, fmt.Sprintf("%s:%d", e.DiskName, e.Partition))
		}
	case *types.NasDatastoreInfo:
		if i.Nas == nil {
			break
		}
		if kind := volumeKind(i.Nas); kind != "" {
			d.Type = &kind
		}
		d.Local = new(false)
		d.Devices = []string{i.Nas.RemoteHost + ":" + i.Nas.RemotePath}
	}
	return d
}
