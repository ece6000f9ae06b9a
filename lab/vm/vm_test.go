// Package vm runs real virtual machines under emulation: QEMU without acceleration, Debian's kernel, and an
// initramfs with busybox and thru. So the drivers of guests (e1000, e1000e, vmxnet3, virtio) are the real
// ones, on any machine that can run a program as root.
//
// A Site is a switch, which is a network namespace with a bridge, and a host at it. Every VM of a site boots
// the same image, has one adapter of a chosen model at the bridge, and serves as a thru end point. No write
// of a VM is kept: it has no disk, or a disk whose changes are discarded.
//
// It needs qemu-system-x86, busybox-static and, once, a Debian archive to download a kernel from. A VM ends
// with the process that started it.
package vm

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"thru/internal/measure"
)

// Models of adapters that the image has drivers for, for Spec.NIC.
const (
	E1000   = "e1000"
	E1000E  = "e1000e"
	VMXNET3 = "vmxnet3"
	Virtio  = "virtio-net-pci"
)

// Time limits. Under emulation a VM takes about 8 s to be ready; on two CPUs each VM that starts at the same
// time adds about as much.
const (
	readyLimit = 120 * time.Second
	quitLimit  = 5 * time.Second
)

// readyMark is the text that init writes to the console when the end point listens and the adapter has a
// carrier.
const readyMark = "vm: ready"

// Spec describes a VM.
type Spec struct {
	Name   string
	Number int    // FirstNumber to 99, unique in the site: address, MAC and UUID follow from it
	NIC    string // model: E1000 ...
	CPUs   int    // 0 means 1
	Memory int    // in MB; 0 means 512
	MTU    int    // of the adapter in the guest; 0 means 1500
	Disk   string // raw image that the VM sees as /dev/vda; its writes are discarded. Empty: none
}

// Address is the VM's address in the site's network.
func (s Spec) Address() netip.Addr { return netip.AddrFrom4([4]byte{10, siteNet, 0, byte(s.Number)}) }

// MAC is the address of its adapter, in QEMU's range (52:54:00).
func (s Spec) MAC() string { return fmt.Sprintf("52:54:00:77:00:%02x", s.Number) }

// UUID is the UUID in the VM's firmware (SMBIOS, system UUID).
func (s Spec) UUID() string { return fmt.Sprintf("74687275-766d-4000-8000-0000000000%02x", s.Number) }

// Tap is the name of the adapter's other end, a port of the site's bridge.
func (s Spec) Tap() string { return fmt.Sprintf("vm%d", s.Number) }

// VM is a running virtual machine.
type VM struct {
	Spec
	site   *Site
	folder string // console, sockets
	cmd    *exec.Cmd
	ended  chan struct{} // closed when QEMU has ended
	stderr *strings.Builder
	shell  *shell // nil until Ready
	closed bool
}

// Start begins to boot a VM and returns. The end of ctx kills it. The caller closes it.
func (s *Site) Start(ctx context.Context, spec Spec) (*VM, error) {
	if spec.Name == "" || spec.Number < FirstNumber || spec.Number > 99 || s.image.Drivers[spec.NIC] == nil {
		return nil, fmt.Errorf("vm: starting %q: number %d or adapter %q is none", spec.Name, spec.Number, spec.NIC)
	}
	folder, err := os.MkdirTemp("", "thru-vm-") // short: paths of sockets have 108 bytes at most (unix(7))
	if err != nil {
		return nil, fmt.Errorf("vm: starting %s: %w", spec.Name, err)
	}
	if err := s.plug(spec); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	v := &VM{Spec: spec, site: s, folder: folder, ended: make(chan struct{}), stderr: &strings.Builder{}}
	v.cmd = s.Switch.Command(ctx, emulator, spec.arguments(s.image, folder)...)
	v.cmd.Stderr = v.stderr
	if err := v.run(); err != nil {
		return nil, errors.Join(fmt.Errorf("vm: starting %s: %w", spec.Name, err), s.unplug(spec), os.RemoveAll(folder))
	}
	return v, nil
}

// Pid is the process id of QEMU.
func (v *VM) Pid() int { return v.cmd.Process.Pid }

// Console returns the console output of the kernel and init so far.
func (v *VM) Console() string {
	text, err := os.ReadFile(filepath.Join(v.folder, consoleFile))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Ready waits until the guest serves as an end point. The error includes the end of the console.
func (v *VM) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for !strings.Contains(v.Console(), readyMark) {
		select {
		case <-v.ended:
			return fmt.Errorf("vm: %s ended while it booted: %s\n%s", v.Name, strings.TrimSpace(v.stderr.String()), tail(v.Console()))
		case <-ctx.Done():
			return fmt.Errorf("vm: waiting for %s: %w\n%s", v.Name, ctx.Err(), tail(v.Console()))
		case <-time.After(100 * time.Millisecond):
		}
	}
	var err error
	v.shell, err = dialShell(ctx, filepath.Join(v.folder, shellSocket))
	return err
}

// Run runs a line in the guest's shell, and returns its standard output and error. An exit code other than 0
// is an error.
func (v *VM) Run(ctx context.Context, line string) (string, error) {
	if v.shell == nil {
		return "", fmt.Errorf("vm: running %q: %s is not ready", line, v.Name)
	}
	out, code, err := v.shell.run(ctx, line)
	if err == nil && code != 0 {
		err = fmt.Errorf("exit code %d: %s", code, strings.TrimSpace(out))
	}
	if err != nil {
		return out, fmt.Errorf("vm: running %q in %s: %w", line, v.Name, err)
	}
	return out, nil
}

// Joins are what thru serve in the guest printed when it was ready: the join string, and those with more
// rights, by name ("tune").
type Joins struct {
	Join string            `json:"join_string"`
	More map[string]string `json:"join_strings"`
}

// Joins reads the join strings of the guest's end point.
func (v *VM) Joins(ctx context.Context) (Joins, error) {
	out, err := v.Run(ctx, "cat "+serveFile)
	if err != nil {
		return Joins{}, err
	}
	var j Joins
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&j); err != nil {
		return j, fmt.Errorf("vm: reading the join strings of %s: %w", v.Name, err)
	}
	return j, nil
}

// Close kills the VM, like a power cut, and removes its port and files. A second call does nothing.
func (v *VM) Close() error {
	if v.closed {
		return nil
	}
	v.closed = true
	if v.shell != nil {
		v.shell.close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), quitLimit)
	defer cancel()
	err := monitor(ctx, filepath.Join(v.folder, monitorSocket), "quit")
	select {
	case <-v.ended:
		err = nil // it may have been killed by others
	case <-ctx.Done():
		_ = v.cmd.Process.Kill() // it may be gone already
		<-v.ended
	}
	return errors.Join(err, v.site.unplug(v.Spec), os.RemoveAll(v.folder))
}

// tail is the end of a console, up to the kernel's panic that follows the end of init.
func tail(text string) string {
	text, _, _ = strings.Cut(text, "Kernel panic")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// arguments are those of QEMU (qemu-system-x86_64(1)) for a VM with its console and sockets in a folder.
func (s Spec) arguments(image *Image, folder string) []string {
	in := func(name string) string { return filepath.Join(folder, name) }
	args := []string{
		// Threads have names, as with libvirt and Proxmox: "CPU 0/TCG".
		"-name", "guest=" + s.Name + ",debug-threads=on", "-uuid", s.UUID(), "-nodefaults", "-display", "none", "-no-reboot",
		// No hardware acceleration: the same everywhere, also inside a guest.
		"-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max",
		"-smp", fmt.Sprint(max(s.CPUs, 1)), "-m", fmt.Sprint(cmp.Or(s.Memory, 512)),
		"-kernel", image.Kernel, "-initrd", image.Initramfs,
		// The kernel passes unknown parameters to init as variables
		// (Documentation/admin-guide/kernel-parameters.rst).
		"-append", fmt.Sprintf("console=ttyS0 quiet panic=-1 vm_name=%s vm_nic=%s vm_address=%s/24 vm_mtu=%d", s.Name, s.NIC, s.Address(), cmp.Or(s.MTU, 1500)),
		"-serial", "file:" + in(consoleFile),
		"-chardev", "socket,id=shell,server=on,wait=off,path=" + in(shellSocket), "-device", "virtio-serial-pci", "-device", "virtserialport,chardev=shell",
		"-qmp", "unix:" + in(monitorSocket) + ",server=on,wait=off",
		"-netdev", "tap,id=net0,script=no,downscript=no,vhost=off,ifname=" + s.Tap(),
		"-device", s.NIC + ",netdev=net0,romfile=,mac=" + s.MAC(), // no boot ROM, which ipxe-qemu would have to provide
	}
	if s.Disk != "" {
		args = slices.Concat(args, []string{
			"-drive", "if=none,id=disk0,format=raw,snapshot=on,file=" + s.Disk, // changes go to an unnamed file
			"-device", "virtio-blk-pci,drive=disk0"})
	}
	return args
}

// TestArguments checks QEMU's arguments: no hardware acceleration, a disk whose changes are discarded, and an
// identity of its own.
func TestArguments(t *testing.T) {
	image := &Image{Kernel: "/k", Initramfs: "/i"}
	plain := Spec{Name: "a", Number: 11, NIC: E1000}.arguments(image, "/f")
	line := strings.Join(plain, " ")
	for _, want := range []string{
		"-accel tcg,thread=multi", "-smp 1 -m 512", "-kernel /k -initrd /i", "ifname=vm11",
		"-uuid 74687275-766d-4000-8000-00000000000b", "e1000,netdev=net0,romfile=,mac=52:54:00:77:00:0b",
		"vm_name=a vm_nic=e1000 vm_address=10.77.0.11/24 vm_mtu=1500", "file:/f/console",
	} {
		if !strings.Contains(line, want) {
			t.Errorf("%q is not in %s", want, line)
		}
	}
	if strings.Contains(line, "-drive") || strings.Contains(line, "kvm") {
		t.Errorf("a disk, or KVM: %s", line)
	}
	more := strings.Join(Spec{Name: "b", Number: 99, NIC: VMXNET3, CPUs: 2, Memory: 256, MTU: 9000, Disk: "/d"}.arguments(image, "/f"), " ")
	for _, want := range []string{"-smp 2 -m 256", "vm_mtu=9000", "snapshot=on,file=/d", "mac=52:54:00:77:00:63"} {
		if !strings.Contains(more, want) {
			t.Errorf("%q is not in %s", want, more)
		}
	}
}

// TestUUID: each number gives another UUID, in the form that thru reads.
func TestUUID(t *testing.T) {
	seen := map[string]bool{}
	for n := FirstNumber; n < 100; n++ {
		uuid := Spec{Number: n}.UUID()
		if measure.UUID(uuid) != uuid || seen[uuid] {
			t.Errorf("number %d: %s", n, uuid)
		}
		seen[uuid] = true
	}
}

// TestTail: tail drops the kernel's panic and keeps the messages of init before it.
func TestTail(t *testing.T) {
	got := tail("loading\nip: no such device\n[    5.9] Kernel panic - not syncing\n[    5.9] Call Trace:\n")
	if !strings.Contains(got, "no such device") || strings.Contains(got, "Call Trace") {
		t.Errorf("%q", got)
	}
	if got := tail(strings.Repeat("line\n", 100)); strings.Count(got, "line") != 15 {
		t.Errorf("%q", got)
	}
}

// answering serves one connection of a socket and returns its path.
func answering(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if conn, err := l.Accept(); err == nil {
			serve(conn)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return path
}

// TestShell runs lines in a guest's shell: it returns their output and exit codes, and an error for a shell
// that is gone or silent.
func TestShell(t *testing.T) {
	replies := []string{"6.1.0\n\nvm: exit 0\n", "no newline\nvm: exit 0\n", "sh: x: not found\n\nvm: exit 127\n", "half"}
	path := answering(t, func(conn net.Conn) {
		in := bufio.NewScanner(conn)
		for _, reply := range replies {
			for in.Scan() && !strings.Contains(in.Text(), shellMark) { // a command ends with the line that prints the mark
			}
			fmt.Fprint(conn, reply)
		}
	})
	s, err := dialShell(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	v := &VM{Spec: Spec{Name: "guest"}, shell: s}
	for i, tt := range []struct {
		want  string
		wrong string
	}{{"6.1.0\n", ""}, {"no newline", ""}, {"sh: x: not found\n", "exit code 127"}, {"half", "EOF"}} {
		got, err := v.Run(t.Context(), "line")
		if got != tt.want || (err == nil) != (tt.wrong == "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
			t.Errorf("line %d: %q, %v, want %q, %q", i, got, err, tt.want, tt.wrong)
		}
	}
	if _, err := (&VM{}).Run(t.Context(), "line"); err == nil {
		t.Error("a VM that is not ready runs a line")
	}
}

// TestShellSilent: with a guest that hangs, run ends with the caller's ctx.
func TestShellSilent(t *testing.T) {
	release := make(chan struct{})
	path := answering(t, func(net.Conn) { <-release })
	defer close(release)
	s, err := dialShell(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, _, err := s.run(ctx, "sleep 1000"); err == nil {
		t.Error("a silent shell has answered")
	}
}

// TestMonitor sends a command to QEMU's monitor, and returns its error.
func TestMonitor(t *testing.T) {
	for _, tt := range []struct{ reply, wrong string }{
		{`{"return": {}}`, ""},
		{`{"error": {"class": "CommandNotFound", "desc": "no such word"}}`, "no such word"},
		{`nonsense`, "invalid"},
	} {
		var heard []string
		path := answering(t, func(conn net.Conn) {
			fmt.Fprintln(conn, `{"QMP": {"version": {}, "capabilities": []}}`)
			in := bufio.NewScanner(conn)
			for _, reply := range []string{`{"return": {}}`, tt.reply} {
				if in.Scan() {
					heard = append(heard, in.Text())
				}
				fmt.Fprintln(conn, reply)
			}
		})
		err := monitor(t.Context(), path, "quit")
		if (err == nil) != (tt.wrong == "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
			t.Errorf("%s: %v", tt.reply, err)
		}
		if want := []string{`{"execute":"qmp_capabilities"}`, `{"execute":"quit"}`}; err == nil && !slices.Equal(heard, want) {
			t.Errorf("the monitor heard %q, want %q", heard, want)
		}
	}
	if err := monitor(t.Context(), filepath.Join(t.TempDir(), "none"), "quit"); err == nil {
		t.Error("no monitor has answered")
	}
}
