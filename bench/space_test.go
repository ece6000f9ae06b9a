//go:build linux

package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"thru/internal/host"
)

// insideVariable marks the copy of this program in the namespace: "own", or "host" if no namespace could be
// created.
const insideVariable = "THRU_BENCH_INSIDE"

// enterNamespace runs this program again in a new network namespace: as root directly, otherwise within a
// user namespace. If neither is allowed it runs on the host's loopback interface.
func enterNamespace(ctx context.Context) error {
	user := &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	for _, attr := range []*syscall.SysProcAttr{{Cloneflags: syscall.CLONE_NEWNET}, user} {
		err := again(ctx, "own", attr)
		if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EINVAL) {
			return err
		}
	}
	return again(ctx, "host", &syscall.SysProcAttr{})
}

func again(ctx context.Context, inside string, attr *syscall.SysProcAttr) error {
	attr.Pdeathsig = syscall.SIGTERM
	cmd := exec.CommandContext(ctx, "/proc/self/exe", os.Args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Env = append(os.Environ(), insideVariable+"="+inside)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = os.Stdout, os.Stderr, attr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("bench: running in a namespace: %w", err)
	}
	return nil
}

// site describes where the measurement runs.
type site struct {
	own        bool   // a separate network namespace
	congestion string // congestion control in effect for new connections
	cpu        string
	cpus       int
	kernel     string
}

// setUp prepares the namespace and describes the machine.
func setUp(s settings) (site, error) {
	facts := host.New().Facts()
	said := func(fact *string) string {
		if fact == nil {
			return "unknown"
		}
		return *fact
	}
	w := site{own: os.Getenv(insideVariable) == "own", cpu: said(facts.CPUModel), cpus: runtime.NumCPU(), kernel: "Linux " + said(facts.Kernel)}
	if !w.own {
		w.congestion = said(facts.Congestion)
		return w, nil
	}
	if err := loopback(s.congestion); err != nil {
		return w, err
	}
	w.congestion = s.congestion
	return w, nil
}

// loopback brings the interface up and sets the congestion control of both its routes: a new namespace
// inherits the host's default, and its sysctl accepts few others, but a route's attribute overrides both.
// netperf resolves names only if there is an address other than 127.0.0.1.
func loopback(congestion string) error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("bench: finding the loopback interface: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("bench: bringing the loopback interface up: %w", err)
	}
	extra := &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(192, 0, 2, 1), Mask: net.CIDRMask(32, 32)}}
	if err := netlink.AddrAdd(lo, extra); err != nil {
		return fmt.Errorf("bench: adding an address: %w", err)
	}
	for _, bits := range []int{8, 32} {
		ip := net.IPv4(127, 0, 0, 1).Mask(net.CIDRMask(bits, 32))
		route := &netlink.Route{LinkIndex: lo.Attrs().Index, Table: unix.RT_TABLE_LOCAL, Type: unix.RTN_LOCAL, Scope: unix.RT_SCOPE_HOST,
			Dst: &net.IPNet{IP: ip, Mask: net.CIDRMask(bits, 32)}, Congctl: congestion}
		if err := netlink.RouteReplace(route); err != nil {
			return fmt.Errorf("bench: setting congestion control %s: %w", congestion, err)
		}
	}
	return nil
}
