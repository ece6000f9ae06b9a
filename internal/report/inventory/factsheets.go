package inventory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"thru/internal/doc"
	"thru/internal/measure"
	"thru/internal/place"
	"thru/internal/report/facts"
	"thru/internal/unit"
)

// hostFactSheet returns all facts that C-07 requires of a host, each with its value or the reason why it is
// missing, and the host's location.
func hostFactSheet(x *index, h *measure.GuestHost) factSheet {
	f := h.Facts
	if f == nil {
		f = &measure.Facts{}
	}
	missing := slices.Concat(f.NotChecked, h.NotChecked)
	s := factSheet{Name: doc.Clean(h.Name), About: doc.Clean(doc.Join(hostState(h), machineModel(f.Machine), h.Cluster)), missing: missing}
	if x.Kind != measure.KindKVM || h.UUID != "" {
		s.line("place", doc.Join(doc.Prefixed("data center ", h.Site), doc.Prefixed("cluster ", h.Cluster), measure.Value(h.State), doc.Prefixed("UUID ", h.UUID)), "")
	}
	f = withoutVolumes(f)
	for _, i := range machineItems() {
		if i.name != "file systems" { // a host of guests has datastores
			s.Rows = append(s.Rows, doc.Row{Name: i.name, Value: i.from(f, missing, noReason)})
			s.said = append(s.said, i.missing...)
		}
	}
	s.line("PCI devices", pciText(h.PCI), "")
	if x.Kind != measure.KindKVM || len(h.Datastores) > 0 {
		s.line("datastores, VMFS version", storesText(x, h), s.whyNot("datastores"))
	}
	s.line("version and build", doc.Join(hostVersion(f), qemuText(x)), s.whyNot("distribution", "kernel"))
	s.line("BIOS, not default", "", doc.NotChecked+": the firmware does not expose its settings to the hypervisor")
	settings := s.whyNot("settings_changed")
	if x.Kind == measure.KindKVM {
		settings = doc.NotChecked + ": Linux does not report which settings are defaults"
	}
	s.line("settings, not default", settingsChanged(x, h, missing), settings)
	if x.Kind != measure.KindKVM {
		s.line("unsupported CPU", legacyText(h, missing), s.whyNot("settings_changed"))
		s.line("boot device", measure.Value(f.Boot), s.whyNot("boot_device"))
	}
	s.line("NUMA", facts.NUMA(f.NUMA), s.whyNot("numa_nodes"))
	s.line("running guests", handedText(h), s.whyNot("guests_running"))
	for _, p := range h.Ports {
		s.line("VMkernel port "+p.Device, portText(x, &p), doc.NotChecked)
	}
	for i := range x.Switches {
		if w := &x.Switches[i]; w.Host == h.ID || slices.Contains(w.Hosts, h.ID) {
			s.line("switch "+w.Name, switchText(w, h.ID), doc.NotChecked)
		}
	}
	s.rest()
	return s
}

// withoutVolumes omits volumes that span disks: the facts list such a volume as a disk with its file system,
// and it is among the datastores.
func withoutVolumes(f *measure.Facts) *measure.Facts {
	own := *f
	own.Disks = slices.DeleteFunc(slices.Clone(f.Disks), func(d measure.Disk) bool {
		return d.Driver == "" && d.Model == "" && len(d.Mounts) == 1 && strings.HasPrefix(d.Mounts[0].Type, "VMFS")
	})
	return &own
}

// ofEach returns what could not be read of any guest, by the keys of one.
func ofEach(x *index, kind string) (all []measure.NotChecked) {
	for _, m := range x.NotChecked {
		if key, ok := m.Below(kind); ok {
			all = append(all, measure.NotChecked{Fact: key, Why: m.Why})
		}
	}
	return all
}

// line adds a fact, or the reason why it is missing; it omits one without both.
func (s *factSheet) line(name, value, missing string) {
	if value = cmp.Or(doc.Clean(value), missing); value != "" {
		s.Rows = append(s.Rows, doc.Row{Name: doc.Clean(name), Value: value})
	}
}

// rest names what else could not be read, grouped by the reason.
func (s *factSheet) rest() {
	var gaps []doc.Gap
	v := measure.NewVocabulary()
	for _, m := range s.missing {
		if !slices.ContainsFunc(s.said, func(key string) bool { return measure.IsPart(m.Fact, key) }) {
			gaps = doc.AddGap(gaps, v.Words(doc.Clean(m.Fact)), doc.Reason(m.Why))
		}
	}
	for _, g := range gaps[:min(len(gaps), doc.MostLines)] {
		s.line(doc.NotChecked, g.Text(doc.MostLines), "")
	}
}

// noReason is the reason if none is known.
const noReason = "the hypervisor does not report it"

// whyNot returns why a fact is missing, by the prefixes of its keys; rest then omits these keys.
func (s *factSheet) whyNot(keys ...string) string {
	return doc.NotChecked + ": " + cmp.Or(s.reason(keys...), noReason)
}

// reason is whyNot without a text for the case that no reason is known: it returns "" then.
func (s *factSheet) reason(keys ...string) string {
	s.said = append(s.said, keys...)
	for _, m := range slices.Concat(s.missing, s.ofAll) {
		if slices.ContainsFunc(keys, func(key string) bool { return measure.IsPart(m.Fact, key) }) {
			return doc.Reason(m.Why)
		}
	}
	return ""
}

// noneOf returns none for an empty list that was read, else why it is not known.
func (s *factSheet) noneOf(n int, none string, keys ...string) string {
	why := s.reason(keys...)
	if n == 0 && why == "" {
		return none
	}
	return doc.NotChecked + ": " + cmp.Or(why, noReason)
}

// isMissing reports whether a fact could not be read.
func isMissing(missing []measure.NotChecked, key string) bool {
	return slices.ContainsFunc(missing, func(m measure.NotChecked) bool { return measure.IsPart(m.Fact, key) })
}

// settingsChanged returns the settings that were changed: "none" if the settings of an ESXi host were read
// and all are defaults, and which settings were not read.
func settingsChanged(x *index, h *measure.GuestHost, missing []measure.NotChecked) string {
	const key = "settings_changed"
	switch {
	case h.Facts == nil:
		return ""
	case x.Kind == measure.KindKVM:
		return changedText(h.Facts)
	}
	all := []string{cmp.Or(changedText(h.Facts), "none")}
	for _, m := range missing {
		switch what, _ := m.Below(key); {
		case m.Fact == key && len(h.Facts.Changed) == 0:
			return ""
		case measure.IsPart(m.Fact, key):
			part := cmp.Or(what, "others") + " " + doc.NotChecked + " (" + m.Why + ")"
			all = onceMore(all, part)
		}
	}
	if len(all) > 1 && len(h.Facts.Changed) == 0 {
		all[0] = "none among those read"
	}
	return strings.Join(all[:min(len(all), doc.MostLines)], "; ")
}

func legacyText(h *measure.GuestHost, missing []measure.NotChecked) string {
	if s := place.LegacySetting(h.Facts); s != "" {
		return "allowed by " + s + ": this version of ESXi does not support such a CPU"
	}
	unread := func(m measure.NotChecked) bool {
		name, _ := m.Below("settings_changed")
		return m.Fact == "settings_changed" || place.IsLegacySetting(name)
	}
	if h.Facts == nil || slices.ContainsFunc(missing, unread) {
		return ""
	}
	return "no: allowLegacyCPU has its default"
}

func storesText(x *index, h *measure.GuestHost) string {
	var all []string
	for _, id := range h.Datastores[:min(len(h.Datastores), facts.MostInterfaces)] {
		d := x.stores[id]
		if d == nil {
			continue
		}
		all = append(all, d.Name+" "+doc.Bracket(doc.Join(cmp.Or(measure.Value(d.Type), "type "+doc.NotChecked), bytesText(d.Size), doc.Known("%s free", d.Free, unit.Size), strings.Join(d.Devices, ", "))))
	}
	if n := len(h.Datastores) - facts.MostInterfaces; n > 0 {
		all = append(all, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(all, "; ")
}

// pciText names the cards of a host, each kind with its count.
func pciText(all []measure.PCIDevice) string {
	return counted(all[:min(len(all), doc.MostLines)], func(d *measure.PCIDevice) string {
		return strings.TrimSpace(strings.TrimSpace(d.Vendor+" "+d.Name) + " " + doc.Bracket(d.Class))
	})
}

// qemuText returns the program that runs the guests of a Linux host, with its version.
func qemuText(x *index) string {
	if x.Kind != measure.KindKVM {
		return ""
	}
	name, _, _ := strings.Cut(x.Product, " on ")
	return name
}

// countText returns "8 vCPUs"; "" for nil.
func countText(n *int, noun string) string {
	return doc.Known("%s", n, func(n int) string { return unit.Plural(n, noun) })
}

func handedText(h *measure.GuestHost) string {
	if h.Guests != nil && *h.Guests == 0 {
		return "none"
	}
	return doc.Join(doc.Number(h.Guests), countText(h.CPUsHanded, "virtual CPU"), doc.Known("%s of memory", h.MemHanded, unit.Size))
}

func portText(x *index, p *measure.VMkernelPort) string {
	network := measure.Value(p.Network)
	if g := x.groups[p.PortGroup]; g != nil {
		network = strings.TrimSpace(cmp.Or(network, g.Name) + " " + doc.Bracket(vlanText(measure.Value(g.VLAN))))
	}
	return doc.Join(strings.Join(p.Addrs, ", "), network, mtuOf(p.MTU), doc.Prefixed("MAC ", measure.Value(p.MAC)),
		doc.Known("TSO %s", p.TSO, doc.OnOff), measure.Value(p.Stack), doc.Prefixed("for ", strings.Join(p.Services, " and ")))
}

func mtuOf(mtu *int) string { return doc.Prefixed("MTU ", doc.Number(mtu)) }

func switchText(w *measure.VirtualSwitch, host string) string {
	own := *w
	own.Uplinks = slices.DeleteFunc(slices.Clone(w.Uplinks), func(u measure.Uplink) bool { return u.Host != "" && u.Host != host })
	return doc.Join(w.Kind, doc.Prefixed("version ", measure.Value(w.Version)), cmp.Or(mtuOf(w.MTU), "MTU "+doc.NotChecked), doc.Prefixed("uplinks ", uplinksText(&own, w.Teaming)), doc.Prefixed("teaming by ", teamingText(w.Teaming)),
		doc.Prefixed("shaped ", shapingText(w.ShapeIn, w.ShapeOut)), doc.Known("network I/O control %s", w.NIOC, doc.OnOff), securityOf(w.Security),
		doc.Known("multicast snooping %s", w.Snooping, doc.OnOff), doc.Known("VLAN filtering %s", w.VLANs, doc.OnOff))
}

// securityOf words what a switch allows guests beyond their own traffic, in vSphere's terms.
func securityOf(s *measure.PortSecurity) string {
	if s == nil {
		return ""
	}
	words := func(on bool) string { return map[bool]string{true: "accept", false: "reject"}[on] }
	return doc.Prefixed("security: ", doc.Join(doc.Known("promiscuous mode %s", s.Promiscuous, words),
		doc.Known("forged transmits %s", s.Forged, words), doc.Known("MAC changes %s", s.MACChanges, words)))
}

// newGuestFactSheet returns the fact sheet of a guest without its lines.
func newGuestFactSheet(x *index, g *measure.Guest) *factSheet {
	about := doc.Join(powerText(g), countText(g.CPUs, "vCPU"), bytesText(g.Memory), adaptersText(g))
	return &factSheet{x: x, Name: doc.Clean(g.Name), About: doc.Clean(about), missing: g.NotChecked, ofAll: ofEach(x, "guests")}
}

// guestFactSheet returns all facts that C-08 requires of a guest, each with its value or the reason why it is
// missing.
func guestFactSheet(x *index, g *measure.Guest) factSheet {
	s := newGuestFactSheet(x, g)
	host := g.Host
	if h := x.hosts[g.Host]; h != nil {
		host = h.Name
	}
	s.line("place", doc.Join(doc.Prefixed("on ", host), doc.Prefixed("cluster ", g.Cluster), doc.Prefixed("data center ", g.Site), doc.Prefixed("folder ", g.Folder), doc.Prefixed("pool ", g.Pool)), s.whyNot("host"))
	s.line("power", powerText(g), s.whyNot("power"))
	s.line("vCPUs", guestCPUs(g), s.whyNot("cpus"))
	s.line("RAM", bytesText(g.Memory), s.whyNot("memory_bytes"))
	s.disks(g)
	s.line("storage adapters", counted(g.Disks, func(d *measure.GuestDisk) string { return cmp.Or(measure.Value(d.Adapter), doc.NotChecked) }), s.noneOf(len(g.Disks), "no disk", "disks.adapter", "disks"))
	s.adapters(x, g)
	s.line("network adapters", adaptersText(g), s.noneOf(len(g.NICs), "none", "nics.model", "nics"))
	s.line("CPU allocation", s.cpuAllocation(g), "")
	s.line("CPU quota", doc.Known("max %s CPUs", g.CPUQuota, doc.Digits), "")
	s.line("memory allocation", s.memoryAllocation(g), "")
	s.line("CPU affinity", s.affinity(g), "")
	s.line("OS and service pack", s.systemText(g), s.whyNot("os_running", "os"))
	s.line("tools", toolsText(g.Tools), s.whyNot("tools"))
	s.line("virtual hardware", doc.Join(measure.Value(g.Hardware), measure.Value(g.Firmware)), s.whyNot("hardware_version"))
	if x.Kind != measure.KindKVM { // QEMU has no such setting
		s.line("latency sensitivity", measure.Value(g.Latency), s.whyNot("latency_sensitivity"))
	}
	s.line("addresses", doc.Join(measure.Value(g.Hostname), strings.Join(g.Addrs, ", ")), s.whyNot("addresses", "hostname"))
	s.line("identity", doc.Join(doc.Prefixed("id ", g.ID), doc.Prefixed("UUID ", g.UUID), doc.Prefixed("instance ", g.InstanceUUID)), "")
	s.line("settings", settingsText(g.Advanced), "")
	s.line("host threads", threadsText(g), "")
	s.rest()
	return *s
}

func (s *factSheet) cpuAllocation(g *measure.Guest) string {
	return cmp.Or(doc.Clean(s.allocationText(g.CPUShare, "cpu_allocation", hertzText)), s.whyNot("cpu_allocation", "cpu_quota_cpus"))
}

func (s *factSheet) memoryAllocation(g *measure.Guest) string {
	return cmp.Or(doc.Clean(s.allocationText(g.MemoryShare, "memory_allocation", unit.Size)), s.whyNot("memory_allocation"))
}

func (s *factSheet) affinity(g *measure.Guest) string {
	return cmp.Or(doc.Clean(affinityText(g)), s.whyNot("cpu_affinity", "cpu_pins"))
}

func powerText(g *measure.Guest) string {
	if g.Template {
		return doc.Join("template", g.Power)
	}
	return g.Power
}

func guestCPUs(g *measure.Guest) string {
	if g.CPUs == nil {
		return ""
	}
	s := strconv.Itoa(*g.CPUs)
	if g.PerSocket != nil && *g.PerSocket > 0 {
		s += fmt.Sprintf(" (%d per socket)", *g.PerSocket)
	}
	if g.HotAddCPU != nil && *g.HotAddCPU {
		s += ", hot add on, which hides the NUMA nodes"
	}
	return doc.Join(s, doc.Prefixed("model ", measure.Value(g.CPUModel)), doc.Prefixed("NUMA nodes ", unit.List(g.NUMANodes)))
}

// disks adds a line for each virtual disk.
func (s *factSheet) disks(g *measure.Guest) {
	for i := range g.Disks[:min(len(g.Disks), facts.MostInterfaces)] {
		s.line(g.Disks[i].Name, s.diskText(&g.Disks[i]), "")
	}
	if len(g.Disks) == 0 {
		s.line("virtual disks", "", s.noneOf(0, "none", "disks"))
	}
}

// diskText words a virtual disk, with the reason for each of its facts that is missing.
func (s *factSheet) diskText(d *measure.GuestDisk) string {
	known := func(name, value, key string) string {
		if value != "" {
			return value
		}
		return s.open(name, "disks."+d.Name+"."+key, "disks."+key)
	}
	store := ""
	if t := s.x.stores[d.Datastore]; t != nil {
		store = strings.TrimSpace("on " + t.Name + " " + doc.Bracket(measure.Value(t.Type)))
	}
	digits := func(n int64) string { return strconv.FormatInt(n, 10) }
	rate := func(bytes int64) string { return doc.ByteRate(float64(bytes)) }
	return doc.Clean(doc.Join(known("adapter", measure.Value(d.Adapter), "adapter"), known("type", measure.Value(d.Type), "type"), known("size", bytesText(d.Size), "size_bytes"),
		known("format", measure.Value(d.Format), "format"), known("mode", measure.Value(d.Mode), "mode"), known("origin", createdText(d), "created"),
		store, measure.Value(d.Path), doc.Prefixed("cache ", measure.Value(d.Cache)),
		doc.Known("max %s IOPS", d.LimitIOPS, digits), doc.Known("max %s", d.LimitBytes, rate)))
}

// open names a part of a value that is missing, with the reason.
func (s *factSheet) open(name string, keys ...string) string {
	return name + " " + doc.NotChecked + " (" + cmp.Or(s.reason(keys...), noReason) + ")"
}

// createdText words how a disk was created.
func createdText(d *measure.GuestDisk) string {
	if measure.Value(d.Created) == "of its own" {
		return "no parent: neither a clone nor a snapshot"
	}
	return doc.Prefixed("created as ", measure.Value(d.Created))
}

// adapters adds a line for each virtual adapter.
func (s *factSheet) adapters(x *index, g *measure.Guest) {
	for i := range g.NICs[:min(len(g.NICs), facts.MostInterfaces)] {
		n := &g.NICs[i]
		model := cmp.Or(measure.Value(n.Model), "model "+doc.NotChecked)
		state := ""
		if n.Connected != nil && !*n.Connected {
			state = "not connected"
		}
		s.line(n.Name, doc.Join(model, state, doc.Prefixed("MAC ", measure.Value(n.MAC)), networkName(x, n), doc.Prefixed("switch ", switchName(x, n)), doc.Prefixed("uplink ", measure.Value(n.Uplink)), doc.Prefixed("port ", measure.Value(n.Port)),
			countText(n.Queues, "queue"), doc.Known("vhost %s", n.Vhost, doc.OnOff),
			doc.Prefixed("host interface ", measure.Value(n.Device)), mtuOf(n.MTU), withoutText(n.Offloads), doc.Prefixed("rate limit ", nicLimitText(n)), strings.Join(n.Addrs, ", ")), "")
	}
}

func withoutText(on map[string]bool) string {
	off := unit.Filtered(slices.Sorted(maps.Keys(on)), func(k string) bool { return !on[k] })
	return doc.Prefixed("without ", strings.Join(off[:min(len(off), doc.MostLines)], " "))
}

// allocationText returns "reserved 2.00 GHz, no limit, shares 4000 (normal)".
func (s *factSheet) allocationText(a *measure.Allocation, key string, print func(int64) string) string {
	if a == nil {
		return ""
	}
	reserved := s.open("reservation", key+".reserved")
	if a.Reserved != nil {
		reserved = "reserved " + print(*a.Reserved)
		if *a.Reserved == 0 {
			reserved = "no reservation"
		}
	}
	limit := s.open("limit", key+".limited")
	switch {
	case a.Limit != nil && (a.Limited == nil || *a.Limited):
		limit = "limit " + print(*a.Limit)
	case a.Limited != nil && *a.Limited:
		limit = "a limit of unknown size"
	case a.Limited != nil:
		limit = "no limit"
	}
	shares := s.open("shares", key+".shares")
	if a.Shares != nil {
		shares = strings.TrimSpace("shares " + strconv.FormatInt(*a.Shares, 10) + " " + doc.Bracket(measure.Value(a.Level)))
	}
	return doc.Join(reserved, limit, shares)
}

func hertzText(hz int64) string {
	if hz < 1e9 {
		return doc.Digits(float64(hz)/1e6) + " MHz"
	}
	return doc.Digits(float64(hz)/1e9) + " GHz"
}

func affinityText(g *measure.Guest) string {
	var pins []string
	for _, p := range g.Pins[:min(len(g.Pins), doc.MostLines)] {
		pins = append(pins, fmt.Sprintf("vCPU %d on %s", p.CPU, unit.List(p.Host)))
	}
	switch {
	case len(g.Affinity) > 0:
		return doc.Join("CPUs "+unit.List(g.Affinity), strings.Join(pins, ", "))
	case len(pins) > 0:
		return strings.Join(pins, ", ")
	case isMissing(g.NotChecked, "cpu_affinity") || isMissing(g.NotChecked, "cpu_pins"):
		return ""
	}
	return "any CPU of the host"
}

// systemText returns the system that runs in a guest according to its tools, and the configured one.
func (s *factSheet) systemText(g *measure.Guest) string {
	runs, set := measure.Value(g.OSRuns), measure.Value(g.OS)
	switch {
	case runs != "" && set != "" && runs != set:
		return runs + " (configured for " + set + ")"
	case runs != "":
		return runs
	case set != "":
		return "configured for " + set + "; running system: " + s.whyNot("os_running")
	}
	return ""
}

func toolsText(t *measure.GuestTools) string {
	if t == nil {
		return ""
	}
	runs := func(on bool) string { return map[bool]string{true: "running", false: "not running"}[on] }
	return doc.Join(measure.Value(t.Status), doc.Prefixed("version ", measure.Value(t.Version)), doc.Known("%s", t.Running, runs))
}

func settingsText(all map[string]string) string {
	var words []string
	for _, k := range slices.Sorted(maps.Keys(all)) {
		words = append(words, k+"="+all[k])
	}
	return strings.Join(words[:min(len(words), doc.MostLines)], ", ")
}

// threadsText names the threads of the host that work for a guest (KVM).
func threadsText(g *measure.Guest) string {
	var all []string
	for _, t := range g.Threads[:min(len(g.Threads), doc.MostLines)] {
		all = append(all, strings.TrimSpace(t.Name+" "+doc.Bracket(doc.Join(t.Role, doc.Prefixed("CPUs ", unit.List(t.CPUs))))))
	}
	return doc.Join(doc.Prefixed("process ", doc.Number(g.PID)), strings.Join(all, ", "))
}
