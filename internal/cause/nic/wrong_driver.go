package nic

import (
	"strings"

	"thru/internal/cause/diagnose"
	"thru/internal/cause/gate"
	"thru/internal/cause/hypervisor"
	"thru/internal/cause/rule"
	"thru/internal/cause/scene"
	"thru/internal/measure"
)

// WrongDriver is the cause `wrong-driver`.
func WrongDriver() rule.Cause {
	return rule.Cause{
		Rule: diagnose.Rule{
			Cause: "wrong-driver", TCP: true, UDP: true, Title: "the driver is not the kernel's own", Judge: func(f *diagnose.Flow) *diagnose.Outcome { return f.Either(judgeWrongDriver) },
			Seen:        "the driver did not come with the running kernel; in a Windows guest: the hypervisor's tools, which include the driver, are old or do not run",
			Distinction: "it accepts a setting, but the setting has no effect", Fix: "install the driver of this kernel", Effect: "settings without effect (S-05)",
			Source: "gate driver-of-kernel",
		},
		Gates: []gate.Rule{
			{ID: "driver-of-kernel", Words: "version module", Title: "Driver of this kernel", About: "whether the driver came with the running kernel and was built for it",
				Warns:  "the driver is not the kernel's own",
				Why:    "a driver for another release may accept settings without effect (S-05): verify what it reports",
				Source: "S-03, S-05, C-26", Fix: "install the driver of this kernel, or the vendor's driver for exactly this release", Checklist: []string{"S-05", "C-26"}, Face: gateDriverOfKernel},
			{ID: "guest-tools", Words: "vmtools tools", Title: "Tools of a guest", About: "whether the hypervisor's tools are current and run, in a guest that gets its network driver from them (Windows)",
				Warns:  "they are old, missing, or do not run",
				Why:    "they include the vmxnet3 driver: an old one lacks offloads and bug fixes",
				Source: "C-26", Fix: "install the current tools", Checklist: []string{"C-26"}, Hypervisor: true, Host: gateGuestTools},
		},
	}
}

func judgeWrongDriver(e *diagnose.End) *diagnose.Outcome {
	o, warns := hypervisor.Gated(e, "wrong-driver")
	if warns {
		return o.MarkNotBinding()
	}
	return hypervisor.Best(ToolsTooOld(e), o)
}

// ToolsTooOld returns a non-binding outcome for a guest whose drivers come with the hypervisor's tools, which is
// the case only on Windows; nil if there is nothing to report.
func ToolsTooOld(e *diagnose.End) *diagnose.Outcome {
	if e.Guest() == nil {
		return nil
	}
	word, _ := OldTools(e.Facts, e.Guest())
	if word == "" {
		return nil
	}
	return diagnose.Possible("the hypervisor's tools in %s, which include the network driver, are %s", hypervisor.GuestName(e), word).At(e.OnFace()).
		By(measure.Proof{EndPoint: e.Name, Counter: "tools reported by the hypervisor", Note: word}).MarkNotBinding().
		AddFix(&measure.Fix{EndPoint: hypervisor.HostName(e), Advice: "install the current tools in " + hypervisor.GuestName(e), Risk: "the guest may restart"})
}

// OldTools returns what is wrong with the hypervisor's tools of a Windows guest, whose drivers come with them:
// "old", "not running"; "" if no fault is known. known reports whether they are known to be in order.
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

// isWindows judges by the end's own facts, or else by its tools or its settings.
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

func gateDriverOfKernel(f *scene.Face) *gate.Finding {
	if !f.Device() {
		return nil
	}
	name := f.DriverName()
	if f.Version != nil && *f.Version != "" {
		name += " " + *f.Version
	}
	switch {
	case scene.IsFalse(f.InTree):
		fix := scene.Commands("", scene.Command("modinfo %s", f.DriverName())).WithAdvice("compare its version with the kernel's, and install the driver of this kernel")
		if f.Host.System != "linux" {
			fix = scene.Fix{}
		}
		return gate.Warn("the driver of %s (%s) did not come with this kernel", f.Name, name).Do(fix)
	case scene.IsTrue(f.InTree):
		return gate.Pass("the driver of %s (%s) is the kernel's own", f.Name, name)
	case f.Driver == nil:
		return gate.Missing(f, "driver of "+f.Name, "driver")
	}
	return gate.Missing(f, "whether the driver of "+f.Name+" ("+name+") is the kernel's own", "driver_of_kernel")
}

func gateGuestTools(h *scene.Host) *gate.Finding {
	b, ok := hypervisor.Placement(h)
	if !ok {
		return nil
	}
	word, known := OldTools(h.Facts, b.Guest)
	switch {
	case word != "":
		return gate.Warn("the hypervisor's tools in %s are %s", b.Guest.Name, word).Do(scene.Advise("install the current tools in the guest").Risking("the guest may restart"))
	case known:
		return gate.Pass("the hypervisor's tools in %s are current", b.Guest.Name)
	}
	return nil // its drivers do not come with them
}
