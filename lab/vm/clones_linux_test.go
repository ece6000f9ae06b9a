//go:build vmlab

package vm

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"thru/lab"
)

// TestClones boots several VMs of one image and one disk, has each write to the disk, and boots one again:
// each has its own identity and sees only its own writes, and no write is kept (C-36).
func TestClones(t *testing.T) {
	disk := filepath.Join(t.TempDir(), "disk.raw")
	if err := os.WriteFile(disk, []byte(fmt.Sprintf("%-1048576s", "as it was made")), 0o600); err != nil {
		t.Fatal(err)
	}
	files := []string{theImage.Kernel, theImage.Initramfs, disk}
	before := sums(t, files)
	o := newOperator(t)
	specs := []Spec{
		{Name: "clone1", Number: 11, NIC: VMXNET3, Disk: disk},
		{Name: "clone2", Number: 12, NIC: Virtio, Disk: disk},
	}
	for _, v := range o.boot(specs...) {
		o.run(v, "printf %-512s "+v.Name+" | dd of=/dev/vda conv=fsync 2>/dev/null; echo left > /root/left")
		judgeClone(o, v, v.Name)
		o.close(v)
	}
	again := o.boot(specs[0])[0]
	judgeClone(o, again, "as it was made")
	if out := o.run(again, "ls -A /root | grep -v '^\\.' || true"); strings.Contains(out, "left") {
		t.Errorf("a file of the last boot is still there: %s", out)
	}
	if after := sums(t, files); after != before {
		t.Errorf("the image was written to:\n%s%s", before, after)
	}
	say("\nclones: 2 of one image and disk, one booted again: own names, addresses and disks; the image is as it was")
}

// judgeClone checks the identity of a VM, and the beginning of its disk.
func judgeClone(o *operator, v *VM, content string) {
	o.t.Helper()
	got := strings.Fields(o.run(v, "hostname; cat /sys/class/dmi/id/product_uuid /sys/class/net/eth0/address"))
	if want := []string{v.Name, v.UUID(), v.MAC()}; strings.Join(got, " ") != strings.Join(want, " ") {
		o.t.Errorf("the clone is %v, want %v", got, want)
	}
	if got := strings.TrimSpace(o.run(v, "head -c 64 /dev/vda")); got != content {
		o.t.Errorf("the disk of %s begins with %q, want %q", v.Name, got, content)
	}
}

// sums returns the SHA-256 sums of files, one a line.
func sums(t *testing.T, files []string) string {
	t.Helper()
	var all strings.Builder
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		h := sha256.New()
		if _, err := io.Copy(h, file); err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
		fmt.Fprintf(&all, "%x %s\n", h.Sum(nil), name)
	}
	return all.String()
}

// orphanVariable makes TestOrphan run as the process that is killed.
const orphanVariable = "VMLAB_ORPHAN"

// TestOrphan kills a process that has started a VM: the VM ends too, and the next site removes its
// namespaces.
func TestOrphan(t *testing.T) {
	if os.Getenv(orphanVariable) != "" {
		v, err := NewSite(t, theImage.Image).Start(context.Background(), Spec{Name: "orphan", Number: 11, NIC: VMXNET3})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("orphan", v.Pid())
		time.Sleep(time.Minute) // killed long before
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestOrphan$")
	cmd.Env = append(os.Environ(), orphanVariable+"=1", "TMPDIR="+t.TempDir()) // its files, which it cannot remove
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	pid := 0
	for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
		if number, found := strings.CutPrefix(lines.Text(), "orphan "); found {
			pid, err = strconv.Atoi(number)
		}
	}
	if pid == 0 || !alive(pid) {
		_ = cmd.Process.Kill()
		t.Fatalf("no VM was started: process %d, %v", pid, err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed: its error says so
	lab.Eventually(t, 5*time.Second, "QEMU ends with who has started it", func() bool { return !alive(pid) })
	NewSite(t, theImage.Image) // removes what is left
}

// alive reports whether a process runs; a zombie does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
