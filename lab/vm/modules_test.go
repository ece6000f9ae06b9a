package vm

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Modules are the loadable modules of a kernel. depmod makes their list only when a kernel is installed; here
// it is read from the modules.
type Modules struct {
	files map[string]string // paths, by name
	built map[string]bool   // names of modules that are built into the kernel
}

// ListModules lists the modules in the folder of a kernel (Kernel.Tree).
func ListModules(tree string) (*Modules, error) {
	m := &Modules{files: map[string]string{}, built: map[string]bool{}}
	err := filepath.WalkDir(tree, func(path string, _ fs.DirEntry, err error) error {
		if name, is := moduleName(path); is {
			m.files[name] = path
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("vm: listing modules: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(tree, "modules.builtin")) // a path a line (Documentation/kbuild/kbuild.rst)
	if err != nil {
		return nil, fmt.Errorf("vm: listing modules: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if name, is := moduleName(strings.TrimSpace(line)); is {
			m.built[name] = true
		}
	}
	return m, nil
}

// moduleName is the name of the module in a file; false where the file is no module.
func moduleName(path string) (string, bool) {
	name, _ := strings.CutSuffix(filepath.Base(path), ".xz") // Debian 13 compresses them
	name, is := strings.CutSuffix(name, ".ko")
	return underscored(name), is
}

// underscored spells a module's name as the kernel does: files and lists use "-" too.
func underscored(name string) string { return strings.ReplaceAll(name, "-", "_") }

// Read returns the bytes of a module, for insmod.
func (m *Modules) Read(name string) ([]byte, error) {
	path := m.files[name]
	if path == "" {
		return nil, fmt.Errorf("vm: this kernel has no module %s", name)
	}
	if !strings.HasSuffix(path, ".xz") {
		return os.ReadFile(path)
	}
	text, err := exec.Command("xz", "-dc", path).Output()
	if err != nil {
		return nil, fmt.Errorf("vm: unpacking %s: %w", path, err)
	}
	return text, nil
}

// Order lists the modules to load for the named ones, each after its dependencies.
func (m *Modules) Order(names ...string) ([]string, error) {
	return order(names, func(name string) ([]string, bool, error) {
		if m.built[name] {
			return nil, false, nil
		}
		image, err := m.Read(name)
		if err != nil {
			return nil, false, err
		}
		needs, err := dependencies(image)
		return needs, true, err
	})
}

// order lists modules after their dependencies. needs returns the dependencies of one, and whether it must be
// loaded at all.
func order(names []string, needs func(string) ([]string, bool, error)) ([]string, error) {
	var list []string
	seen := map[string]bool{}
	var visit func(string) error
	visit = func(name string) error {
		if seen[name] {
			return nil
		}
		seen[name] = true
		below, load, err := needs(name)
		if err != nil || !load {
			return err
		}
		for _, b := range below {
			if err := visit(underscored(b)); err != nil {
				return err
			}
		}
		list = append(list, name)
		return nil
	}
	for _, name := range names {
		if err := visit(underscored(name)); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// dependencies returns the modules that a module needs: the entry "depends" of section .modinfo, which holds
// KEY=VALUE texts that end with a zero byte (include/linux/moduleparam.h, __MODULE_INFO;
// scripts/mod/modpost.c).
func dependencies(module []byte) ([]string, error) {
	file, err := elf.NewFile(bytes.NewReader(module))
	if err != nil {
		return nil, fmt.Errorf("vm: reading a module: %w", err)
	}
	section := file.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("vm: reading a module: it has no section .modinfo")
	}
	text, err := section.Data()
	if err != nil {
		return nil, fmt.Errorf("vm: reading a module: %w", err)
	}
	return depends(text), nil
}

// depends is the value of "depends" in the text of a section .modinfo.
func depends(text []byte) []string {
	for entry := range bytes.SplitSeq(text, []byte{0}) {
		if list, found := bytes.CutPrefix(entry, []byte("depends=")); found && len(list) > 0 {
			return strings.Split(string(list), ",")
		}
	}
	return nil
}

// module builds the parts of a module file that the tests read: an ELF header, and sections .shstrtab and
// .modinfo (elf(5)).
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

// TestDependencies reads the dependencies of a module.
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

// FuzzDependencies: bytes that are no module give an error, and never a panic.
func FuzzDependencies(f *testing.F) {
	f.Add(module("depends=a,b\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := dependencies(text)
		if err != nil && list != nil {
			t.Errorf("%q and %v", list, err)
		}
	})
}

// TestOrder loads each module once, after its dependencies, and no module that is built into the kernel.
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
