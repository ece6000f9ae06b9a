package vm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// module is a file as the kernel's linker makes it, as far as it is read: an ELF
// header, and sections .shstrtab and .modinfo (elf(5)).
func module(modinfo string) []byte {
	const header, entry = 64, 64
	names := "\x00.shstrtab\x00.modinfo\x00"
	var b bytes.Buffer
	put := func(v any) { _ = binary.Write(&b, binary.LittleEndian, v) } // a Buffer takes all
	b.WriteString("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	put([]uint16{1, 62}) // relocatable, x86-64
	put(uint32(1))
	put([]uint64{0, 0, uint64(header + len(names) + len(modinfo))})
	put(uint32(0))
	put([]uint16{header, 0, 0, entry, 3, 1})
	b.WriteString(names + modinfo)
	b.Write(make([]byte, entry)) // the first section is none
	for _, s := range []struct{ name, kind, offset, size int }{{1, 3, header, len(names)}, {11, 1, header + len(names), len(modinfo)}} {
		put([]uint32{uint32(s.name), uint32(s.kind)})
		put([]uint64{0, 0, uint64(s.offset), uint64(s.size)})
		put([]uint32{0, 0})
		put([]uint64{1, 0})
	}
	return b.Bytes()
}

// TestDependencies reads what a module says that it needs.
func TestDependencies(t *testing.T) {
	for _, tt := range []struct {
		modinfo string
		want    []string
	}{
		{"license=GPL\x00depends=net_failover,virtio-ring\x00name=virtio_net\x00", []string{"net_failover", "virtio-ring"}},
		{"depends=\x00name=vmxnet3\x00", nil},
		{"name=depends=no\x00", nil},
		{"", nil},
	} {
		got, err := dependencies(module(tt.modinfo))
		if err != nil || !cmp.Equal(got, tt.want) {
			t.Errorf("%q: %q, %v, want %q", tt.modinfo, got, err, tt.want)
		}
	}
	for _, text := range []string{"", "\x7fELF", "no module"} {
		if _, err := dependencies([]byte(text)); err == nil {
			t.Errorf("%q passes for a module", text)
		}
	}
}

// FuzzDependencies: bytes that are no module are refused, never more.
func FuzzDependencies(f *testing.F) {
	f.Add(module("depends=a,b\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := dependencies(text)
		if err != nil && list != nil {
			t.Errorf("%q and %v", list, err)
		}
	})
}

// TestOrder loads each module behind what it needs, once, and nothing that the
// kernel holds already.
func TestOrder(t *testing.T) {
	tree := t.TempDir()
	write := func(name string, text []byte) {
		t.Helper()
		path := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("modules.builtin", []byte("kernel/lib/crc32.ko\n"))
	write("kernel/net/virtio_net.ko", module("depends=net-failover,virtio_ring,crc32\x00"))
	write("kernel/net/net_failover.ko", module("depends=failover\x00"))
	write("kernel/net/failover.ko", module("depends=\x00"))
	write("kernel/virtio/virtio_ring.ko", module("depends=\x00"))
	write("kernel/virtio/virtio_pci.ko", module("depends=virtio_ring\x00"))
	write("kernel/net/lonely.ko", module("depends=nowhere\x00"))
	m, err := ListModules(tree)
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Order("virtio-pci", "virtio_net")
	if want := []string{"virtio_ring", "virtio_pci", "failover", "net_failover", "virtio_net"}; err != nil || !cmp.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	for _, name := range []string{"nowhere", "lonely"} {
		if _, err := m.Order(name); err == nil {
			t.Errorf("%s can be loaded", name)
		}
	}
	if _, err := ListModules(filepath.Join(tree, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no modules: %v", err)
	}
}
