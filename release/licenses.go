package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// module is a library inside a binary.
type module struct {
	path, version string
	copied        string   // the folder of the changed copy that the build takes for it, from the root of the sources; else empty
	licenses      []string // SPDX identifiers
	texts         []string
}

// modulesOf reads from a binary which libraries are in it, Go's own among them.
func modulesOf(binary string) ([]module, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("reading the libraries of %s: %w", binary, err)
	}
	all := []module{{path: "std", version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range info.Deps {
		one := module{path: m.Path, version: m.Version}
		if m.Replace != nil {
			one.copied = m.Replace.Path
		}
		all = append(all, one)
	}
	return all, nil
}

// addLicenses reads the licences of all modules. Their files are where Go keeps sources.
func addLicenses(root string, systems []system) error {
	folders, err := foldersOf(systems)
	if err != nil {
		return err
	}
	for _, s := range systems {
		for i := range s.modules {
			m := &s.modules[i]
			folder := folders[m.path]
			if m.copied != "" {
				folder = filepath.Join(root, m.copied)
			}
			if err := cmp.Or(m.readLicenses(folder), m.permitted()); err != nil {
				return err
			}
		}
	}
	return nil
}

// foldersOf asks Go for the folder of each module.
func foldersOf(systems []system) (map[string]string, error) {
	wanted := map[string]bool{}
	for _, s := range systems {
		for _, m := range s.modules[1:] {
			if m.copied == "" {
				wanted[m.path+"@"+m.version] = true
			}
		}
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("asking go for its folder: %w", err)
	}
	folders := map[string]string{"std": strings.TrimSpace(string(goroot))}
	args := slices.Sorted(maps.Keys(wanted))
	if len(args) == 0 {
		return folders, nil
	}
	text, err := exec.Command("go", append([]string{"mod", "download", "-json"}, args...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("asking go for the sources of libraries: %w", err)
	}
	for d := json.NewDecoder(strings.NewReader(string(text))); ; {
		var m struct{ Path, Dir string }
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return folders, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading the answer of go: %w", err)
		}
		folders[m.Path] = m.Dir
	}
}

// readLicenses reads the files that a copy of the module must come with.
func (m *module) readLicenses(folder string) error {
	files, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("reading the licence of %s: %w", m.path, err)
	}
	for _, f := range files {
		name := strings.ToUpper(f.Name())
		legal := slices.ContainsFunc([]string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "PATENTS"}, func(p string) bool { return strings.HasPrefix(name, p) })
		if !legal || f.IsDir() || strings.HasSuffix(name, ".GO") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, f.Name()))
		if err != nil {
			return err
		}
		m.texts = append(m.texts, strings.TrimSpace(string(text)))
		if strings.HasPrefix(name, "PATENTS") { // a grant, no licence
			continue
		}
		for _, match := range licensecheck.Scan(text).Match {
			if !slices.Contains(m.licenses, match.ID) {
				m.licenses = append(m.licenses, match.ID)
			}
		}
	}
	if len(m.texts) == 0 {
		return fmt.Errorf("%s has no licence in %s: it may not be passed on", m.path, folder)
	}
	slices.Sort(m.licenses)
	return nil
}

// permitted refuses licences that ask more of whoever passes on a binary than texts and the place of the sources.
func (m *module) permitted() error {
	for _, id := range m.licenses {
		if strings.Contains(id, "GPL") {
			return fmt.Errorf("%s is under %s, and linked statically: leave it out, or let .ci/slim replace it", m.path, id)
		}
	}
	return nil
}

// all returns the modules of all systems, each once.
func all(systems []system) []module {
	byPath := map[string]module{}
	for _, s := range systems {
		for _, m := range s.modules {
			byPath[m.path] = m
		}
	}
	return slices.SortedFunc(maps.Values(byPath), func(a, b module) int { return strings.Compare(a.path, b.path) })
}

// title names a module with its licences.
func (m module) title() string {
	if m.copied != "" {
		m.version += " (changed or replaced by .ci/slim of the sources)"
	}
	return fmt.Sprintf("%s %s: %s", m.path, m.version, strings.Join(m.licenses, ", "))
}

// licenseTexts lists the text of each licence with the modules that are under it.
func licenseTexts(systems []system) string {
	var texts []string
	under := map[string]string{}
	for _, m := range all(systems) {
		for _, text := range m.texts {
			if under[text] == "" {
				texts = append(texts, text)
			}
			under[text] += m.title() + "\n"
		}
	}
	var b strings.Builder
	b.WriteString("thru is linked with the following libraries. Their licences ask to be passed on.\n" +
		"The sources of a library: go mod download -json PATH@VERSION. Those that thru changes are in .ci/slim of its sources.\n")
	for _, text := range texts {
		fmt.Fprintf(&b, "\n%s\n%s\n%s\n", strings.Repeat("=", 80), under[text], text)
	}
	return b.String()
}

// copyright is the file of that name in packages of Debian.
func copyright(systems []system, year int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `Copyright %d the contributors to thru

thru is licensed under the Apache License, Version 2.0. On Debian systems the text of
this licence is in /usr/share/common-licenses/Apache-2.0.

The binary contains the following libraries. The texts of their licences with their
copyright notices are in /usr/share/doc/thru/third-party-licenses.txt.gz. "make build"
in the sources of thru links other versions of them.

`, year)
	for _, m := range all(systems) {
		b.WriteString(m.title() + "\n")
	}
	return b.String()
}
