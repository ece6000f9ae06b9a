package kvm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/rogpeppe/go-internal/txtar"

	"thru/internal/measure"
)

// seeds are the files of the recorded hosts whose names end so.
func seeds(f *testing.F, suffix string) {
	for _, name := range []string{"libvirt", "proxmox"} {
		b, err := os.ReadFile(filepath.Join("testdata", name+".txtar"))
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range txtar.Parse(b).Files {
			if strings.HasSuffix(file.Name, suffix) {
				f.Add(file.Data)
			}
		}
	}
}

// plausible checks what holds for every guest, whatever its creator wrote.
func plausible(t *testing.T, g *measure.Guest) {
	t.Helper()
	texts := []string{g.ID, g.Name, g.UUID}
	for _, n := range g.NICs {
		texts = append(texts, n.Name, n.Key, n.Switch)
		if n.Queues != nil && *n.Queues < 1 {
			t.Errorf("%d queues", *n.Queues)
		}
	}
	for _, d := range g.Disks {
		texts = append(texts, d.Name)
		if d.Size != nil && *d.Size < 0 {
			t.Errorf("a disk of %d bytes", *d.Size)
		}
	}
	for _, s := range texts {
		if strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }) || len(s) > 8*maxText {
			t.Errorf("%q is not fit to be printed", s)
		}
	}
	if g.Memory != nil && *g.Memory < 0 || g.CPUs != nil && *g.CPUs < 1 || g.CPUQuota != nil && !(*g.CPUQuota > 0) {
		t.Errorf("%v bytes, %v CPUs", show(g.Memory), show(g.CPUs))
	}
}

func FuzzCommandLine(f *testing.F) {
	seeds(f, "/cmdline")
	f.Add([]byte("kvm\n-smp\n9999999999999999999,sockets=4294967295\n-m\n1e30T\n-netdev\n{\"type\":\"tap\",\"fds\":\"-1:x:5\"}"))
	f.Add([]byte("kvm\n-device\nvfio-pci,sysfsdev=/\n-blockdev\nnode-name=a,file=a\n-device\nide-hd,drive=a"))
	f.Fuzz(func(t *testing.T, b []byte) {
		args := strings.Split(string(b), "\n")
		m := readMachine(args)
		for _, n := range m.nics {
			m.NICs = append(m.NICs, n.GuestNIC)
		}
		plausible(t, &m.Guest)
	})
}

func FuzzDomain(f *testing.F) {
	seeds(f, ".xml")
	f.Fuzz(func(t *testing.T, b []byte) {
		if g, err := readDomain("x", b); err == nil {
			plausible(t, &g)
		}
	})
}

func FuzzProxmox(f *testing.F) {
	seeds(f, ".conf")
	f.Fuzz(func(t *testing.T, b []byte) {
		if g, err := readProxmox("100", b); err == nil {
			plausible(t, &g)
		}
	})
}

// FuzzCounters: what the kernel shows is read in any form without a panic.
func FuzzCounters(f *testing.F) {
	seeds(f, "net/dev")
	seeds(f, "proc/stat")
	seeds(f, "/stat")
	seeds(f, "/schedstat")
	seeds(f, "/vmstat")
	seeds(f, "/status")
	root := f.TempDir()
	file := filepath.Join(root, "proc", "stat")
	for _, dir := range []string{"proc", "proc/self/net"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			f.Fatal(err)
		}
	}
	for _, name := range []string{"vmstat", "self/net/dev", "one"} {
		if err := os.Symlink(file, filepath.Join(root, "proc", name)); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
		h := At(root, "x")
		tree := h.tree
		for cpu, n := range h.busy() {
			if cpu < 0 {
				t.Errorf("CPU %d was busy for %v", cpu, n)
			}
		}
		devices, _ := h.machine.Devices()
		for name := range devices {
			if strings.ContainsAny(name, " \n") {
				t.Errorf("interface %q", name)
			}
		}
		if used, waited := tree.schedstat("proc/one"); used < 0 || waited < 0 || tree.swapIns() < 0 {
			t.Error("a negative time")
		}
		tree.allowed("proc/one", []int{0, 1})
		ranGuest(string(b))
		roleOf(string(b))
	})
}
