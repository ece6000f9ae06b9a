package host

import (
	"net"
	"os"
	"runtime"
	"testing"
)

func TestPortable(t *testing.T) {
	f := portableFacts()
	if show(f.OS) != runtime.GOOS || f.Cores == nil || *f.Cores < 1 || f.Memory == nil || *f.Memory < 1<<20 || f.Kernel == nil {
		t.Errorf("facts %+v", f)
	}
	list, err := net.Interfaces()
	if err != nil || len(list) == 0 {
		t.Skipf("no interfaces: %v", err)
	}
	name := list[0].Name
	if i := f.Interface(name); i == nil || i.Nominal != nil || !noted(f.NotChecked, "interfaces."+name+".speed_is_nominal") {
		t.Errorf("interface %s: %+v", name, i)
	}
	for _, fact := range []string{"hypervisor", "sysctls", "congestion_control"} {
		if !noted(f.NotChecked, fact) {
			t.Errorf("%s is not in not_checked", fact)
		}
	}
	s := portableRead(name, os.Getpid())
	if len(s.CPUs) == 0 || s.CPUs[0].Idle <= 0 || s.Memory == nil {
		t.Errorf("reading %+v", s)
	}
	for _, fact := range []string{"softnet", "protocol", "worker", "interface.driver", "interface.rx_ring_drops", "qdisc"} {
		if !noted(s.Missing, fact) {
			t.Errorf("%s is not in missing", fact)
		}
	}
	var n notes
	a := portableActivity(&n)
	if len(a.cpus) == 0 || len(a.nets) == 0 || a.taken.IsZero() || !noted(n, "load.softnet_squeezed") || !noted(n, "load.processes") {
		t.Errorf("activity %+v, not checked %v", a, n)
	}
	if s = portableRead("no-such-interface", 0); s.NIC != nil || !noted(s.Missing, "interface") {
		t.Errorf("an interface that is not there: %+v", s.NIC)
	}
}
