//go:build vmlab

package vm

import (
	"cmp"
	"context"
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// systemdScript runs in the VM, and systemdInit is its first program.
var (
	//go:embed systemd.sh
	systemdScript []byte
	//go:embed systemd.init
	systemdInit []byte
)

// systemdUnit starts the script when the system is up, with the console for its output.
const systemdUnit = `[Service]
ExecStart=/bin/sh /root/systemd.sh
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
`

// journeyLimit bounds the boot and life of the VM: 4 minutes on two CPUs beside other work.
const journeyLimit = 12 * time.Minute

// mostExposed is the exposure that each unit may have: systemd-analyze(1), security.
const mostExposed = 2.0

// TestSystemd boots Debian with systemd from a disk, and has the package live there: installed, a service that measures and reloads, a
// watch, a port in use, purged.
func TestSystemd(t *testing.T) {
	folder := t.TempDir()
	steps := journey(t, folder, debianDisk(t, folder))
	for _, c := range []struct{ step, want string }{
		{"boot", `(?m)^running$`},
		{"install", `(?s)Setting up thru .*\ndisabled\ndisabled$`}, // a host serves only if its owner says so
		{"serve", `(?m)^active$`},
		{"measure", `goodput +[0-9.]+ .?b/s`},
		{"reload", `(?m)^reloaded\nthru-serve runs under systemd`},
		{"watch", `(?m)^Type=notify\nActiveState=active\nStatusText=watches 1 path$`},
		{"watch-reload", `(?s)^reloaded\n.*active$`},
		{"watch-stop", `(?s)^ActiveState=inactive\nResult=success\nExecMainStatus=0\n.*probes each 2 s, was each 1 s.*local -> me`},
		{"port-in-use", `address already in use`},
		{"purge", `(?s)thru-serve is removed; .*\ninactive$`},
		{"left", `^/var/lib/private/thru-control\n/var/lib/private/thru-serve\n/var/lib/private/thru-watch\n/var/lib/thru-control\n/var/lib/thru-serve\n/var/lib/thru-watch$`},
	} {
		if !regexp.MustCompile(c.want).MatchString(steps[c.step]) {
			t.Errorf("%s: not %s but\n%s", c.step, c.want, steps[c.step])
		}
	}
	levels := regexp.MustCompile(`exposure level for (\S+): ([0-9.]+)`).FindAllStringSubmatch(steps["security"], -1)
	for _, l := range levels {
		if level, err := strconv.ParseFloat(l[2], 64); err != nil || level > mostExposed {
			t.Errorf("%s is exposed by %s, more than %.1f", l[1], l[2], mostExposed)
		}
	}
	if len(levels) != 3 {
		t.Errorf("systemd-analyze judges %d units of 3:\n%s", len(levels), steps["security"])
	}
}

// debianDisk makes a disk with a small Debian, the package and the script.
func debianDisk(t *testing.T, folder string) string {
	t.Helper()
	root, dist, disk := filepath.Join(folder, "root"), filepath.Join(folder, "dist"), filepath.Join(folder, "disk")
	host := func(name string, args ...string) string {
		t.Helper()
		out, err := output(t.Context(), folder, name, args...)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(out)
	}
	tree, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	host("make", "-C", tree, "release", "CROSS=linux/amd64", "VERSION=0.0.0+1.gvm", "DIST="+dist)
	release := host("sh", "-c", ". /etc/os-release; echo $VERSION_CODENAME")
	host("mmdebstrap", "--quiet", "--mode=root", "--variant=apt", "--include=systemd,systemd-sysv", release, root)
	host("sh", "-c", "cp dist/*.deb root/root/ && rm -rf root/var/cache/apt root/var/lib/apt/lists")
	for name, text := range map[string][]byte{"root/systemd.sh": systemdScript, "etc/systemd/system/journey.service": []byte(systemdUnit)} {
		if err := os.WriteFile(filepath.Join(root, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	wants := filepath.Join(root, "etc/systemd/system/multi-user.target.wants")
	host("sh", "-c", "mkdir -p "+wants+" && ln -s ../journey.service "+wants+"/ && ln -sf /lib/systemd/system/multi-user.target root/etc/systemd/system/default.target")
	host("mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", root, disk, "900M")
	return disk
}

// journey boots the disk, and returns the output of each step of the script.
func journey(t *testing.T, folder, disk string) map[string]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), journeyLimit)
	defer cancel()
	kernel, err := theKernel(ctx)
	if err != nil {
		t.Fatal(err)
	}
	initramfs, console := filepath.Join(folder, "initramfs.gz"), filepath.Join(folder, consoleFile)
	if err := diskInitramfs(kernel, initramfs); err != nil {
		t.Fatal(err)
	}
	v := &VM{folder: folder, ended: make(chan struct{}), stderr: &strings.Builder{}}
	v.cmd = exec.CommandContext(ctx, emulator, "-nodefaults", "-display", "none", "-no-reboot", "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max",
		"-smp", "2", "-m", "1024", "-kernel", kernel.Image, "-initrd", initramfs, "-append", "console=ttyS0 quiet panic=-1 systemd.show_status=0",
		"-serial", "file:"+console, "-drive", "if=none,id=disk0,format=raw,snapshot=on,file="+disk, "-device", "virtio-blk-pci,drive=disk0")
	v.cmd.Stderr = v.stderr
	if err := v.run(); err != nil {
		t.Fatal(err)
	}
	<-v.ended
	text := strings.ReplaceAll(v.Console(), "\r", "")
	steps, name := map[string]string{}, ""
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) == 3 && words[0] == "==" {
			name = words[1]
			say("  %4s s: %s", words[2], name)
		} else if name != "" {
			steps[name] += line
		}
	}
	if name != "end" {
		t.Fatalf("the VM ends in step %q: %v %s\n%s", cmp.Or(name, "before the first"), ctx.Err(), v.stderr, tail(text))
	}
	for name, text := range steps {
		steps[name] = strings.TrimSpace(text)
	}
	return steps
}

// diskInitramfs writes the file system in memory that finds the disk.
func diskInitramfs(kernel Kernel, path string) error {
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return err
	}
	modules, err := ListModules(kernel.Tree)
	if err != nil {
		return err
	}
	list, err := modules.Order("virtio_pci", "virtio_blk", "crc32c_generic", "ext4") // ext4 asks for the checksum by name
	if err != nil {
		return err
	}
	files := map[string]source{"init": held(systemdInit), "bin/busybox": onDisk(busybox), "modules/order": held([]byte(strings.Join(list, "\n") + "\n"))}
	for _, name := range list {
		files["modules/"+name+".ko"] = func() ([]byte, error) { return modules.Read(name) }
	}
	return writeFile(path, files)
}
