package host

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// volumeTree has ext4 on a partition of vda, btrfs with its own device
// number, and a file system in memory.
func volumeTree(t *testing.T) *Host {
	t.Helper()
	root := t.TempDir()
	disk := "sys/devices/pci0/block/vda"
	for name, text := range map[string]string{
		"proc/self/fdinfo/3": "pos:\t0\nflags:\t02\nmnt_id:\t36\nino:\t5\n",
		"proc/self/fdinfo/4": "mnt_id:\t37\n", "proc/self/fdinfo/5": "mnt_id:\t38\n", "proc/self/fdinfo/6": "mnt_id:\t99\n", "proc/self/fdinfo/7": "pos:\t0\n",
		"proc/self/mountinfo": "36 1 254:1 / /srv rw,noatime shared:1 - ext4 /dev/vda1 rw,discard\n" +
			"37 1 0:40 /@ /home rw - btrfs /dev/vda rw,ssd\n38 1 0:41 / /dev/shm rw,nosuid - tmpfs tmpfs rw\n",
		disk + "/queue/scheduler": "[mq-deadline] none\n", disk + "/queue/rotational": "0\n", disk + "/device/model": "QEMU DISK\n", disk + "/dev": "254:0\n",
		disk + "/vda1/partition": "1\n",
		"proc/diskstats":         " 254       0 vda 10 20 30 40 50 60 70 80 0 702220 9760029 0 0 0 0 0 0\n   7       0 loop0 0 0\n",
	} {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"sys/dev/block/254:0": "../../devices/pci0/block/vda", "sys/dev/block/254:1": "../../devices/pci0/block/vda/vda1", "sys/class/block/vda": "../../devices/pci0/block/vda",
	} {
		link = filepath.Join(root, link)
		os.MkdirAll(filepath.Dir(link), 0o755)
		if err := os.Symlink(to, link); err != nil {
			t.Skipf("needs symbolic links: %v", err)
		}
	}
	return At(root)
}

func TestVolume(t *testing.T) {
	h := volumeTree(t)
	for fd, want := range map[uintptr]string{
		3: "ext4 /srv rw,noatime,discard vda QEMU DISK mq-deadline",
		4: "btrfs /home rw,ssd vda QEMU DISK mq-deadline",
		5: "tmpfs /dev/shm rw,nosuid   ",
		6: "     ",
		7: "     ",
		8: "     ",
	} {
		v := h.Volume(fd)
		if got := strings.Join([]string{v.FileSystem, v.Mount, v.Options, v.Device, v.Model, v.Scheduler}, " "); got != want {
			t.Errorf("%d: %q, want %q", fd, got, want)
		}
		switch {
		case v.Device != "" && (v.Rotational == nil || *v.Rotational || len(v.Missing) > 0):
			t.Errorf("%d: %+v", fd, v)
		case v.FileSystem == "" && !noted(v.Missing, "file_system"), v.FileSystem != "" && v.Device == "" && !noted(v.Missing, "device"):
			t.Errorf("%d: missing %v", fd, v.Missing)
		}
	}
}

func TestDiskBusy(t *testing.T) {
	h := volumeTree(t)
	if d, err := h.DiskBusy("vda"); err != nil || d != 702220*time.Millisecond {
		t.Error(d, err)
	}
	for _, name := range []string{"loop0", "vdb", ""} {
		if d, err := h.DiskBusy(name); err == nil {
			t.Errorf("%s: %v", name, d)
		}
	}
}

// TestVolumeHere: this process's own file.
func TestVolumeHere(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux")
	}
	f, err := os.CreateTemp(t.TempDir(), "x")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if v := New().Volume(f.Fd()); v.FileSystem == "" || v.Mount == "" || v.Options == "" || v.Device == "" && !noted(v.Missing, "device") {
		t.Errorf("%+v", v)
	}
}

func FuzzVolume(f *testing.F) {
	f.Add("pos:\t0\nmnt_id:\t36\n", " 254       0 vda 10 20 30 40 50 60 70 80 0 702220 9760029\n")
	f.Fuzz(func(t *testing.T, info, stats string) {
		parseMountID(info)
		if d, err := parseDiskBusy(stats, "vda"); d < 0 || err != nil && d != 0 {
			t.Error(d, err)
		}
	})
}
