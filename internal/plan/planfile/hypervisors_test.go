package planfile

import (
	"slices"
	"strings"
	"testing"

	"thru/internal/fault"
)

func TestHypervisors(t *testing.T) {
	const plan = "thru: 1\nend_points: [b]\npairs: [{from: local, to: b}]\nhypervisors: "
	f, err := Parse("p.yaml", []byte(plan+"[vsphere://reader@vc.example, \"vsphere://a%40b@vc2\", kvm1, vsphere://a@b.local@vc:8443/sdk]"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.Expand(nil, nil)
	if want := []string{"vsphere://reader@vc.example", "vsphere://a%40b@vc2", "kvm1", "vsphere://a@b.local@vc:8443/sdk"}; err != nil || !slices.Equal(p.Hypervisors, want) {
		t.Errorf("%q, %v, want %q", p.Hypervisors, err, want)
	}
	for text, want := range map[string]string{
		"[vsphere://reader:secret@vc]":  "p.yaml:4:15: a password does not belong in a plan",
		"[kvm1, kvm1]":                  `p.yaml:4:21: the hypervisor "kvm1" exists twice`,
		"[foo://b]":                     "p.yaml:4:15: foo:// is not a hypervisor",
		"[--flag]":                      `p.yaml:4:15: "--flag" is not a hypervisor: the host is missing`,
		"[ssh://root@-oProxy=x]":        `p.yaml:4:15: "ssh://root@-oProxy=x" is not a hypervisor: the host is missing`,
		"[\"vsphere://a%3Asecret@vc\"]": "p.yaml:4:15: a password does not belong in a plan",
		"[1]":                           "p.yaml:4:15: the hypervisor is \"1\"",
		"[]":                            "p.yaml:4:14: ",
		"kvm1":                          "p.yaml:4:14: ",
	} {
		_, err := Parse("p.yaml", []byte(plan+text))
		if err == nil || !strings.HasPrefix(err.Error(), want) || fault.Hint(err) == "" || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
