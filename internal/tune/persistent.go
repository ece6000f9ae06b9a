package tune

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"thru/internal/cause/knob"
	"thru/internal/measure"
)

// maxConfig limits how much of a configuration file is read, in bytes.
const maxConfig = 1 << 20

// persistentIn returns the file below root that sets a knob at each boot;
// empty where none is found. The file that is read last wins (sysctl.d(5),
// systemd.link(5)).
func persistentIn(root string, s measure.Setting) string {
	if i := slices.IndexFunc(sysctls(), func(c sysctl) bool { return c.knob == s.Knob }); i >= 0 {
		key := strings.ReplaceAll(sysctls()[i].name, "/", ".")
		return findIn(root, []string{"/etc/sysctl.conf", "/etc/sysctl.d/*.conf", "/run/sysctl.d/*.conf", "/usr/lib/sysctl.d/*.conf"}, func(line string) bool {
			name, _, ok := strings.Cut(strings.TrimLeft(line, "- "), "=")
			return ok && strings.ReplaceAll(strings.TrimSpace(name), "/", ".") == key
		})
	}
	if keys := knob.LinkKeys(s); len(keys) > 0 {
		file := findIn(root, []string{"/etc/systemd/network/*.link", "/run/systemd/network/*.link"}, func(line string) bool {
			name, _, ok := strings.Cut(line, "=")
			return ok && slices.Contains(keys, strings.TrimSpace(name))
		})
		if file != "" {
			return file
		}
	}
	if s.Interface == "" {
		return ""
	}
	return findIn(root, []string{"/etc/udev/rules.d/*.rules"}, func(line string) bool {
		return strings.Contains(line, `"`+s.Interface+`"`)
	})
}

// findIn returns the first file with a line that sets the knob; it ignores
// comments.
func findIn(root string, patterns []string, sets func(line string) bool) string {
	for _, p := range patterns {
		files, _ := filepath.Glob(filepath.Join("/", root, p)) // fails only for a bad pattern
		for _, f := range files {
			info, err := os.Stat(f)
			if err != nil || info.Size() > maxConfig {
				continue
			}
			b, _ := os.ReadFile(f) // an unreadable file is skipped
			for line := range strings.Lines(string(b)) {
				line = strings.TrimSpace(line)
				if line != "" && !strings.ContainsAny(line[:1], "#;") && sets(line) {
					return strings.TrimPrefix(f, filepath.Clean("/"+root))
				}
			}
		}
	}
	return ""
}
