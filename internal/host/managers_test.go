package host

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"thru/internal/host/tree"
)

func TestManagers(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []string
		want  []string
	}{
		{"a container", nil, nil},
		{"Debian with ifupdown", []string{"run/network/ifstate", "run/udev/data/n2", "run/systemd/system/x"}, []string{"ifupdown", "systemd-udevd"}},
		{"an Ubuntu server", []string{"run/systemd/netif/links/2", "etc/netplan/50-cloud-init.yaml", "run/udev/data/n2", "run/systemd/system/x"}, []string{"systemd-networkd", "netplan", "systemd-udevd"}},
		{"Fedora", []string{"run/NetworkManager/devices/2", "run/udev/data/n2", "run/systemd/system/x"}, []string{"NetworkManager", "systemd-udevd"}},
		{"without systemd", []string{"run/udev/data/n2"}, []string{"udev"}},
		{"netplan without a file", []string{"etc/netplan/README"}, nil},
	} {
		root := t.TempDir()
		for _, name := range c.files {
			file := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := (FS{tree.Tree{Root: root}}).managers(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
