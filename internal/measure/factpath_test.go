package measure

import "testing"

func TestFactsAt(t *testing.T) {
	f := &Facts{
		Kernel: new("6.12.1"), Sysctls: map[string]string{"net.core.rmem_max": "212992", "netNetqueueEnabled": "FALSE"}, Cores: new(8),
		Interfaces: []Interface{{Name: "eth0"}, {Name: "eth0.100", Up: new(true), Channels: &Channels{Combined: 4}}},
	}
	for path, want := range map[string]string{
		"kernel": "6.12.1", "cores": "8", "sysctls.net.core.rmem_max": "212992", "sysctls.netNetqueueEnabled": "FALSE",
		"interfaces.eth0.100.up": "true", "interfaces.eth0.100.channels.combined": "4",
		"": "", "sysctls": "", "sysctls.net.core": "", "interfaces.eth1.up": "", "kernel.x": "", "interfaces": "", "interfaces.eth0.up": "",
	} {
		if got, found := f.At(path); got != want || found != (want != "") {
			t.Errorf("%q: %q (%v), want %q", path, got, found, want)
		}
	}
	if _, found := (*Facts)(nil).At("kernel"); found {
		t.Error("no facts have a kernel")
	}
}
