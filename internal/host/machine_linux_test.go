package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"thru/internal/measure"
)

// recordedHost unpacks a recorded host of testdata: files "-> x" are links,
// and the file "want" has the expected facts, a subject a line.
func recordedHost(t *testing.T, name string) (fs FS, want string) {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range a.Files {
		all[f.Name] = strings.TrimSuffix(string(f.Data), "\n")
	}
	want = all["want"]
	delete(all, "want")
	return files(t, all), want
}

// subjects writes the host's own facts, a subject a line, and then the
// unknown ones.
func subjects(t *testing.T, f measure.Facts) string {
	t.Helper()
	var b strings.Builder
	for _, s := range []struct {
		name  string
		value any
	}{
		{"hypervisor", f.Hypervisor}, {"machine", f.Machine}, {"cpu", f.CPU}, {"numa_nodes", f.NUMA}, {"ram", f.RAM}, {"cgroup", f.Cgroup},
		{"security", f.Security}, {"firewall", f.Firewall}, {"clock", f.Clock}, {"disks", f.Disks}, {"hypervises", f.Hypervises},
		{"privileged", f.Privileged}, {"root_would_add", f.RootAdds},
	} {
		j, err := json.Marshal(s.value)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s\n", s.name, j)
	}
	for _, n := range f.NotChecked {
		subject, _, _ := strings.Cut(n.Fact, ".")
		if slices.Contains([]string{"machine", "cpu", "numa_nodes", "ram", "cgroup", "security", "firewall", "clock", "disks", "hypervises", "privileged"}, subject) {
			if n.Why == "" {
				t.Errorf("%s is not checked for no reason", n.Fact)
			}
			fmt.Fprintf(&b, "not_checked %s\n", n.Fact)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func TestRecordedHosts(t *testing.T) {
	for _, name := range []string{"host-xeon", "host-kvm", "host-container", "host-nitro", "host-hyperv", "host-esx-guest"} {
		t.Run(name, func(t *testing.T) {
			fs, want := recordedHost(t, name)
			got := subjects(t, At(fs.Root).Facts())
			if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if strings.Contains(got, "SECRET") {
				t.Error("a serial number is among the facts")
			}
		})
	}
}

// Each subject of a host that shows nothing is absent, with one reason.
func TestHostThatShowsNothing(t *testing.T) {
	f := At(t.TempDir()).Facts()
	want := measure.Facts{OS: f.OS, Arch: f.Arch, Sysctls: f.Sysctls, NotChecked: f.NotChecked}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, fact := range []string{"machine", "cpu", "numa_nodes", "ram", "cgroup", "disks", "hypervises", "privileged", "clock.source", "security.selinux", "firewall.conntrack", "firewall.nft_tables"} {
		if !noted(f.NotChecked, fact) {
			t.Errorf("%s is not in not_checked", fact)
		}
	}
}

// fakeSystem answers like a kernel; with bad every call fails.
type fakeSystem struct {
	set   ruleset
	limit int
	bad   error
}

func (s fakeSystem) rules() (ruleset, error) { return s.set, s.bad }

func (s fakeSystem) entries(table string) (int, error) { return len(table), s.bad }

func (s fakeSystem) adjtime() (timex, error) {
	return timex{synchronised: true, maxErrorNs: 5000, offsetNs: -7, driftPPM: 1.5}, s.bad
}

func (s fakeSystem) readCost() time.Duration { return 25 * time.Nanosecond }

func (s fakeSystem) free(path string) (int64, error) { return int64(len(path)), s.bad }

func (s fakeSystem) latencyLimit() (int, error) { return s.limit, s.bad }

func TestFactsOfTheRunningKernel(t *testing.T) {
	fs, _ := recordedHost(t, "host-xeon")
	var n notes
	h := Host{fs: fs, system: fakeSystem{limit: 2, set: ruleset{tables: 2, bases: 3, rules: map[string]int{"a": 5, "b": 7}}}}
	f := measure.Facts{Hypervisor: new("none")}
	h.machineFacts(&n, &f)
	if want := (&measure.Clock{Source: new("hpet"), Available: []string{"hpet", "acpi_pm"}, Synchronised: new(true),
		MaxErrorNs: new(int64(5000)), OffsetNs: new(int64(-7)), DriftPPM: new(1.5), ReadNs: new(int64(25))}); !cmp.Equal(want, f.Clock) {
		t.Errorf("clock: %s", cmp.Diff(want, f.Clock))
	}
	if w := f.Firewall; show(w.Tables) != 2 || show(w.Chains) != 3 || show(w.Rules) != 12 || show(w.LongestChain) != 7 || show(w.LegacyRules) != len("ip filter"+"ip nat"+"ip6 filter") {
		t.Errorf("firewall %+v", w)
	}
	if show(f.CPU.IdleState) != "C1" || show(f.CPU.IdleExit) != int64(1000) {
		t.Errorf("a program allows 2 us, and the deepest idle state is %v", show(f.CPU.IdleState))
	}
	if show(f.Disks[0].Mounts[0].FreeBytes) != int64(1) || len(n) != 2 || !noted(n, "machine.version") || !noted(n, "machine.uuid") {
		t.Errorf("free %v, notes %v", show(f.Disks[0].Mounts[0].FreeBytes), n)
	}
	n, f = nil, measure.Facts{}
	h.system = fakeSystem{bad: errors.New("operation not permitted")}
	h.machineFacts(&n, &f)
	for _, fact := range []string{"firewall.nft_tables", "firewall.iptables_rules", "clock.synchronised", "cpu.idle_limit", "disks.mounts./.free_bytes"} {
		if !noted(n, fact) {
			t.Errorf("%s is not in not_checked", fact)
		}
	}
	if f.Firewall.Tables != nil || f.Clock.Synchronised != nil || f.Disks[0].Mounts[0].FreeBytes != nil || show(f.CPU.IdleState) != "C1E" {
		t.Errorf("refused, yet known: %+v", f)
	}
}

// Whether connections are tracked follows from the table and from the rules;
// without either it is not known.
func TestConntrack(t *testing.T) {
	for _, c := range []struct {
		entries, legacy string
		set             *ruleset
		want            any
	}{
		{"1", "", nil, true},
		{"0", "", &ruleset{tracks: true}, true},
		{"0", "", &ruleset{}, false},
		{"0", "nat", &ruleset{}, "not checked"},
		{"0", "", nil, "not checked"},
		{"x", "", &ruleset{}, "not checked"},
		{"", "", nil, false}, // the module is not loaded
	} {
		tree := map[string]string{"proc/sys/net/core/rmem_max": "1", "proc/self/net/dev": "", "proc/self/net/ip_tables_names": c.legacy}
		if c.entries != "" {
			tree["proc/sys/net/netfilter/nf_conntrack_count"] = c.entries
		}
		h := Host{fs: files(t, tree)}
		if c.set != nil {
			h.system = fakeSystem{set: *c.set}
		}
		var n notes
		var got any = "not checked"
		if w := h.firewall(&n); w != nil {
			got = show(w.Conntrack)
		}
		if got != c.want || noted(n, "firewall.conntrack") != (c.want == "not checked") {
			t.Errorf("%+v: %v, notes %v", c, got, n)
		}
	}
}

// A module that is not in use is not loaded, and has no rules.
func TestNftablesNotLoaded(t *testing.T) {
	asked := fakeSystem{set: ruleset{tables: 9}}
	for _, c := range []struct {
		file, text string
		want       int
	}{
		{"lib/modules/6.1.0/modules.builtin", "kernel/net/netfilter/nf_tables_other.ko", 0},
		{"lib/modules/6.1.0/modules.builtin", "kernel/net/netfilter/nf_tables.ko", 9},
		{"sys/module/nf_tables/refcnt", "3", 9},
		{"etc/os-release", "", 9}, // a container has no list of modules
	} {
		var n notes
		h := Host{fs: files(t, map[string]string{"proc/sys/kernel/osrelease": "6.1.0", c.file: c.text}), system: asked}
		if set := h.nftables(&n); set == nil || set.tables != c.want {
			t.Errorf("%s with %q: %+v, want %d tables", c.file, c.text, set, c.want)
		}
	}
}

// To count a thousand CPUs takes a file a socket and a file a core.
func TestHugeHost(t *testing.T) {
	const sockets, cores = 8, 512
	all := map[string]string{cpuDir + "/online": fmt.Sprintf("0-%d", 2*cores-1), cpuDir + "/smt/active": "1"}
	for core := range cores {
		all[fmt.Sprintf("%s/cpu%d/topology/core_cpus_list", cpuDir, core)] = fmt.Sprintf("%d,%d", core, core+cores)
	}
	const per = cores / sockets
	for s := range sockets {
		all[fmt.Sprintf("%s/cpu%d/topology/package_cpus_list", cpuDir, s*per)] =
			fmt.Sprintf("%d-%d,%d-%d", s*per, (s+1)*per-1, cores+s*per, cores+(s+1)*per-1)
	}
	var n notes
	h := Host{fs: files(t, all)}
	p := h.processors(&n, new("Intel(R) Xeon(R) @ 800 MHz"))
	if show(p.Sockets) != sockets || show(p.Cores) != cores || show(p.Threads) != 2*cores || show(p.SMT) != true {
		t.Errorf("sockets %v, cores %v, threads %v, SMT %v; %v", show(p.Sockets), show(p.Cores), show(p.Threads), show(p.SMT), n)
	}
}

func TestRootAdds(t *testing.T) {
	var n notes
	n.add("firewall.nft_tables", "only root may list them: nftables: operation not permitted")
	n.add("firewall.iptables_tables", "/proc/net/ip_tables_names: only root may read it: permission denied")
	n.add("machine", "/sys/class/dmi/id: no such file or directory")
	n.add("interfaces.bond0.100.pci.usable_bps", "permission denied")
	n.add("interfaces.eth0.pci.usable_bps", "permission denied")
	n.add("interfaces.bond0.100.rings.rx", "operation not permitted")
	if want, got := []string{"firewall rules", "PCIe usable rate", "receive ring"}, rootAdds(n); !slices.Equal(want, got) {
		t.Errorf("got %q, want %q", got, want)
	}
}
