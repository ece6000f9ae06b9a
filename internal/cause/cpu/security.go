package cpu

import (
	"strings"

	"thru/internal/cause/gate"
	"thru/internal/cause/scene"
	"thru/internal/measure"
)

// SecurityGate is the gate `security`.
func SecurityGate() gate.Rule {
	return gate.Rule{ID: "security", Words: "selinux apparmor seccomp", Title: "Security modules", About: "SELinux, AppArmor and seccomp around thru; information only",
		Why:    "they may refuse or slow down system calls: a result should name them (C-32)",
		Source: "C-32", Fix: "do nothing: this is information", Checklist: []string{"C-32"}, Host: gateSecurity}
}

func gateSecurity(h *scene.Host) *gate.Finding {
	s := h.Security
	if s == nil {
		return nil
	}
	var parts []string
	for _, p := range [][2]string{{"SELinux", measure.Value(s.SELinux)}, {"AppArmor", measure.Value(s.AppArmor)}, {"seccomp", measure.Value(s.Seccomp)}, {"CPU mitigations", measure.Value(s.Mitigations)}} {
		if p[1] != "" {
			parts = append(parts, p[0]+" "+p[1])
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return gate.Pass("%s", strings.Join(parts, ", "))
}
