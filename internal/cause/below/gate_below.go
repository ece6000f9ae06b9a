package below

import (
	"maps"
	"slices"
	"strings"

	"thru/internal/cause/gate"
	"thru/internal/measure"
)

// BelowGates judge what lies below an end point that is a virtual machine, as
// its hypervisor says it is set. None applies where no hypervisor was asked.
func BelowGates() []gate.Rule {
	return []gate.Rule{
		{ID: "guest-adapter", Title: "Model of the adapter, by the hypervisor", About: "the model that the hypervisor gives the guest for the adapter of the test",
			Warns:  "it is one that is emulated (e1000, e1000e, pcnet, rtl8139; vmxnet3 by QEMU)",
			Why:    "each access of an emulated register leaves the guest: 1.36 against 2.31 Gb/s with vmxnet3, and more CPU",
			Source: "S-02, C-26", Remedy: "vmxnet3 or virtio", Cause: "emulated-nic", Checklist: []string{"C-26", "S-02"}, Below: true, Host: guestAdapter},
		{ID: "guest-mtu", Title: "MTU below a guest", About: "the MTUs of the guest's interface, of what is behind it in its host, of the switch and of its uplinks",
			Warns:  "one below is smaller than the guest's",
			Why:    "what is larger is dropped without a word: a switch sends no ICMP",
			Source: "C-20, C-21", Remedy: "the same MTU at each of them", Cause: "jumbo-mismatch", Checklist: []string{"C-20", "C-21"}, Below: true, Host: guestMTU},
		{ID: "guest-shaping", Title: "Traffic shaping of a guest's port", About: "the shaping of its port, port group and switch, in both directions",
			Warns:  "one is on, at less than the rate that is wanted, or no rate is stated",
			Why:    "nothing passes faster than its average for longer than a burst",
			Source: "vSphere Networking, traffic shaping policy", Remedy: "switch it off, or raise its average", Cause: "shaper", Checklist: []string{"C-33"}, Below: true, Host: guestShaping},
		{ID: "guest-cpu-limit", Title: "CPU limit of a guest", About: "the limit, or quota, that the hypervisor holds the guest's CPUs to",
			Warns:  "one is set",
			Why:    "the guest cannot see it: its CPUs stand still when the limit is used up",
			Source: "vSphere Resource Management, CPU limit; Linux cgroup-v2.rst", Remedy: "remove it, or raise it", Cause: "cpu-limit", Checklist: []string{"C-08", "C-33"}, Below: true, Host: guestLimit},
		{ID: "guest-tools", Title: "Tools of a guest", About: "whether the hypervisor's tools are current and run, in a guest whose adapter's driver comes with them (Windows)",
			Warns:  "they are old, missing, or do not run",
			Why:    "vmxnet3's driver comes with them: an old one lacks offloads and repairs",
			Source: "C-26", Remedy: "install the current ones", Cause: "wrong-driver", Checklist: []string{"C-26"}, Below: true, Host: guestTools},
	}
}

// below is what the first inventory that knows the end says of it as a guest;
// false where it is none, or nobody was asked.
func below(h *gate.Host) (measure.Beneath, bool) {
	if len(h.End.Below) == 0 || h.End.Below[0].Guest == nil {
		return measure.Beneath{}, false
	}
	return h.End.Below[0], true
}

func guestAdapter(h *gate.Host) *gate.Finding {
	b, ok := below(h)
	switch {
	case !ok || b.NIC == nil:
		return nil
	case b.NIC.Model == nil || *b.NIC.Model == "":
		return gate.NotChecked("model of "+b.NIC.Name, gate.Reason(b.Guest.NotChecked, "nics.model", "nics"))
	case !b.NIC.Emulated(b.Kind()):
		return gate.Pass("%s of %s is a %s", b.NIC.Name, b.Guest.Name, *b.NIC.Model)
	}
	return gate.Warn("%s of %s is emulated (%s)", b.NIC.Name, b.Guest.Name, *b.NIC.Model).Do(h.ChangeModel())
}

// carries is the interface of the guest that the test uses: that of its route,
// else the one with the MAC of its adapter.
func carries(h *gate.Host, b measure.Beneath) *gate.Face {
	if top := h.Top(); top != nil {
		return top
	}
	for i := range h.Interfaces {
		d := &h.Interfaces[i]
		if b.NIC != nil && b.NIC.MAC != nil && d.MAC != nil && strings.EqualFold(*b.NIC.MAC, *d.MAC) {
			return &gate.Face{Interface: d, Host: h}
		}
	}
	return nil
}

func guestMTU(h *gate.Host) *gate.Finding {
	b, ok := below(h)
	top := carries(h, b)
	if !ok || top == nil || top.MTU == nil {
		return nil
	}
	var uplinks []string
	if b.NIC != nil && b.NIC.Uplink != nil {
		uplinks = []string{*b.NIC.Uplink}
	}
	all := b.MTUs(uplinks)
	if len(all) == 0 {
		return gate.NotChecked("MTUs below "+b.Guest.Name, "the inventory does not tell them")
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if n := all[name]; n > 0 && n < *top.MTU {
			return gate.Warn("%s takes packets of %d bytes, and %s has an MTU of %d", name, n, top.Name, *top.MTU).
				Do(gate.Advise(gate.Command("on the hypervisor: MTU %d there; or %d at %s of the guest", *top.MTU, n, top.NIC())).Risking("all ports of a switch share its MTU"))
		}
	}
	return gate.Pass("all below %s take the %d bytes of %s", b.Guest.Name, *top.MTU, top.Name)
}

func guestShaping(h *gate.Host) *gate.Finding {
	b, ok := below(h)
	if !ok {
		return nil
	}
	told := false
	for _, sends := range []bool{true, false} {
		s, at, known := b.Shaped(sends)
		told = told || known
		if s == nil {
			continue
		}
		what := "receives"
		if sends {
			what = "sends"
		}
		if want := h.Subject.LinkBps; want > 0 && *s.AverageBps >= want {
			continue
		}
		return gate.Warn("%s holds what %s %s to %s", at, b.Guest.Name, what, gate.Rate(*s.AverageBps)).
			Do(gate.Advise("on the hypervisor: raise the average of that traffic shaping, or switch it off").Risking("it may be meant"))
	}
	if !told {
		return gate.NotChecked("traffic shaping of "+b.Guest.Name, "the inventory does not tell it")
	}
	return gate.Pass("no traffic shaping below what is wanted is on for %s", b.Guest.Name)
}

func guestLimit(h *gate.Host) *gate.Finding {
	b, ok := below(h)
	if !ok {
		return nil
	}
	fix := gate.Advise("on the hypervisor: remove the CPU limit of this guest, or raise it").Risking("it may then take CPU that others of the host count on")
	switch cpus, hz, known := b.CPULimit(); {
	case cpus > 0:
		return gate.Warn("%s may use %.3g CPUs", b.Guest.Name, cpus).Do(fix)
	case hz > 0:
		return gate.Warn("%s may use %.3g GHz", b.Guest.Name, hz/1e9).Do(fix)
	case !known:
		return gate.NotChecked("CPU limit of "+b.Guest.Name, gate.Reason(b.Guest.NotChecked, "cpu_allocation", "cpu_quota_cpus"))
	}
	return gate.Pass("no CPU limit is set for %s", b.Guest.Name)
}

func guestTools(h *gate.Host) *gate.Finding {
	b, ok := below(h)
	if !ok {
		return nil
	}
	word, known := OldTools(h.Facts, b.Guest)
	switch {
	case word != "":
		return gate.Warn("the hypervisor's tools in %s are %s", b.Guest.Name, word).Do(gate.Advise("install the current tools in it").Risking("the guest may restart"))
	case known:
		return gate.Pass("the hypervisor's tools in %s are current", b.Guest.Name)
	}
	return nil // its drivers do not come with them
}

// OldTools says what is wrong with the hypervisor's tools of a guest whose
// drivers come with them, which are those of Windows: "old", "not running"; ""
// where nothing is known to be. known tells whether it is known that they are well.
func OldTools(facts *measure.Facts, g *measure.Guest) (word string, known bool) {
	t := g.Tools
	if t == nil || !isWindows(facts, g) {
		return "", false
	}
	switch {
	case t.Status != nil && (*t.Status == "old" || *t.Status == "not installed"):
		return *t.Status, true
	case t.Running != nil && !*t.Running:
		return "not running", true
	}
	return "", t.Status != nil
}

// isWindows by the end's own word, else by what its tools or its settings say.
func isWindows(f *measure.Facts, g *measure.Guest) bool {
	systems := []*string{g.OSRuns, g.OS}
	if f != nil {
		systems = append([]*string{f.OS}, systems...)
	}
	for _, os := range systems {
		if os != nil && *os != "" {
			return strings.HasPrefix(strings.ToLower(*os), "win") || strings.Contains(strings.ToLower(*os), "windows")
		}
	}
	return false
}
