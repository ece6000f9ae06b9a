package vm

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"thru/internal/measure"
)

// TestArguments holds what QEMU is told: never the machine's own acceleration, a
// disk whose changes are thrown away, and an identity of its own.
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

// TestUUID: each number gives a UUID as thru reads it.
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

// TestTail: what the kernel says of a panic hides what init has said before.
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

// TestShell runs lines in a guest's shell: what they write and their exit codes
// come back, and a shell that is gone or silent is an error.
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

// TestShellSilent: a guest that hangs costs no more than the caller's time.
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

// TestMonitor says a word to QEMU's monitor, and hears where that refuses it.
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
