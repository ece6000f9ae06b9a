package vm

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Modules are the loadable modules of a kernel. depmod makes its list when a
// kernel is installed; here the modules are asked themselves.
type Modules struct {
	files map[string]string // paths, by name
	built map[string]bool   // names of what the kernel holds without loading
}

// ListModules lists the modules of a kernel's folder (Kernel.Tree).
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

// moduleName is the name of the module in a file; false where it holds none.
func moduleName(path string) (string, bool) {
	name, _ := strings.CutSuffix(filepath.Base(path), ".xz") // Debian 13 packs them
	name, is := strings.CutSuffix(name, ".ko")
	return underscored(name), is
}

// underscored spells a module as the kernel does: files and lists have "-" too.
func underscored(name string) string { return strings.ReplaceAll(name, "-", "_") }

// Read returns the bytes of a module, as insmod takes them.
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

// Order lists what must be loaded for some modules, each behind what it needs.
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

// order lists modules behind what they need. needs says of one what it needs, and
// whether it is to be loaded at all.
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

// dependencies are the modules that one says it needs: the entry "depends" of
// section .modinfo, which holds KEY=VALUE texts that end with a zero byte
// (include/linux/moduleparam.h, __MODULE_INFO; scripts/mod/modpost.c).
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
