package nfs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"thru/internal/transfer"
)

// Programs, versions and ports: RFC 1833 (the port mapper), RFC 1813 appendix I
// (the mount protocol).
const (
	portmapPort = "111"
	nfsPort     = "2049"
	overTCP     = 6

	portmapProgram, portmapVersion = 100000, 2
	mountProgram, mountVersion     = 100005, 3
	nfsProgram, nfsVersion         = 100003, 3

	maxHandle = 64

	// portmapWait limits the wait for a port mapper behind a firewall that
	// drops packets.
	portmapWait = 3 * time.Second
)

// ports holds the ports of both programs.
type ports struct{ nfs, mount string }

// findPorts asks the port mapper. Servers without one have both on the same
// port.
func (v *v3) findPorts(ctx context.Context) (ports, error) {
	p := ports{v.cfg.Port, v.cfg.Port}
	if v.cfg.Port == "" {
		p = ports{nfsPort, nfsPort}
	}
	brief, cancel := context.WithTimeout(ctx, portmapWait)
	defer cancel()
	conn, err := v.wires.Control(brief, net.JoinHostPort(v.cfg.Host, portmapPort))
	if err != nil {
		return p, ctx.Err() // no listener
	}
	c := newCaller(conn, appendUint32(nil, authNone, 0))
	defer c.close()
	switch mount, err := getPort(ctx, c, mountProgram, mountVersion); {
	case err == nil:
		p.mount = mount
	case v.cfg.Port == "" || !errors.Is(err, errNoProgram):
		return p, fmt.Errorf("the mount protocol's port: %w", err)
	}
	if v.cfg.Port != "" {
		return p, nil
	}
	p.nfs, err = getPort(ctx, c, nfsProgram, nfsVersion)
	return p, err
}

func getPort(ctx context.Context, c *caller, program, version uint32) (string, error) {
	r, err := c.call(ctx, procedure{portmapProgram, portmapVersion, 3, "GETPORT"}, appendUint32(nil, program, version, overTCP, 0), bulk{}, nil)
	if err != nil {
		return "", err
	}
	port := r.uint32()
	if r.bad || port == 0 || port > 65535 {
		return "", fmt.Errorf("its port mapper: %w", errNoProgram)
	}
	return strconv.Itoa(int(port)), nil
}

// root returns the deepest folder on the path to dir that the server exports,
// as mount would.
func (v *v3) root(ctx context.Context, dir string) (m mounted, err error) {
	if v.ports.nfs == "" {
		if v.ports, err = v.findPorts(ctx); err != nil {
			return mounted{}, err
		}
	}
	if err := v.connect(ctx, v.ports.nfs); err != nil {
		return mounted{}, err
	}
	conn, err := v.dial(ctx, v.ports.mount)
	if err != nil {
		return mounted{}, err
	}
	c := newCaller(conn, v.cred)
	defer c.close()
	var refusal error
	for {
		handle, err := mnt(ctx, c, "/"+dir)
		if err == nil {
			v.mounts = append(v.mounts, dir)
			return mounted{dir, handle}, nil
		}
		if refused := mountStatus(0); !errors.As(err, &refused) {
			return mounted{}, err
		} else if refusal == nil || refused.denies() {
			refusal = err
		}
		if dir == "" {
			return mounted{}, refusal
		}
		dir = parent(dir)
	}
}

// mnt requests the handle of one folder.
func mnt(ctx context.Context, c *caller, dir string) ([]byte, error) {
	r, err := c.call(ctx, procedure{mountProgram, mountVersion, 1, "MNT"}, appendOpaque(nil, dir), bulk{}, nil)
	if err != nil {
		return nil, err
	}
	return parseMount(r)
}

func parseMount(r *reader) ([]byte, error) {
	if status := mountStatus(r.uint32()); status != 0 && !r.bad {
		return nil, status
	}
	handle := append([]byte(nil), r.opaque(maxHandle)...)
	sys := false
	for n := r.uint32(); n > 0 && !r.bad; n-- {
		flavor := r.uint32()
		sys = sys || flavor == authSys || flavor == authNone
	}
	switch {
	case r.bad:
		return nil, errors.New("a reply that is too short")
	case !sys:
		return nil, errKerberos
	}
	return handle, nil
}

// leave tells the server to remove the mounts from its list. Nothing depends
// on it.
func (v *v3) leave(ctx context.Context) {
	conn, err := v.dial(ctx, v.ports.mount)
	if err != nil {
		return
	}
	c := newCaller(conn, v.cred)
	defer c.close()
	for _, dir := range v.mounts {
		_, _ = c.call(ctx, procedure{mountProgram, mountVersion, 3, "UMNT"}, appendOpaque(nil, "/"+dir), bulk{}, nil)
	}
}

// mountStatus is why a server refuses to mount a folder (mountstat3).
type mountStatus uint32

// denies reports whether the folder exists, but is not for us.
func (m mountStatus) denies() bool { return m == 1 || m == 13 }

// Error returns the standard's name.
func (m mountStatus) Error() string {
	switch m {
	case 1, 13:
		return "MNT: the server does not export it to this address, this user or this port"
	case 2:
		return "MNT: the server exports no such folder"
	}
	return fmt.Sprintf("MNT: the server refuses it (mountstat3 %d)", uint32(m))
}

// Is maps it to the errors of transfer.
func (m mountStatus) Is(target error) bool {
	return m.denies() && target == transfer.ErrLogin || !m.denies() && target == transfer.ErrMissing
}
