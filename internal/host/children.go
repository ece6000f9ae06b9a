package host

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"path"
	"strconv"
	"strings"

	"thru/internal/host/tree"
	"thru/internal/measure"
)

// mostDescendants limits how many processes are read.
const mostDescendants = 64

// ChildConnections returns the TCP connections of all descendants of a
// process, in this network namespace.
func (h *Host) ChildConnections(pid int) ([]measure.Addresses, error) {
	inodes := map[uint32]bool{}
	for _, child := range h.fs.descendants(pid) {
		for _, inode := range h.fs.socketsOf(child) {
			inodes[inode] = true
		}
	}
	if len(inodes) == 0 {
		return nil, nil
	}
	var all []measure.Addresses
	for _, file := range []string{"tcp", "tcp6"} {
		found, err := tree.Parsed(h.fs.net, file, connectionsOf(inodes))
		if unlessAbsent(err) != nil { // a system without IPv6 has no tcp6
			return nil, fmt.Errorf("host: reading the connections of a program: %w", err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// descendants lists the children of a process and their descendants
// (proc_pid_task(5), children); none where the kernel does not list them.
func (f FS) descendants(pid int) []int {
	all := []int{pid}
	for i := 0; i < len(all) && len(all) < mostDescendants; i++ {
		dir := path.Join("proc", strconv.Itoa(all[i]), "task")
		threads, _ := f.Names(dir) // it may have just ended
		for _, t := range threads {
			text, _ := f.Text(path.Join(dir, t, "children"))
			for _, word := range strings.Fields(text) {
				if n, err := strconv.Atoi(word); err == nil && n > 0 {
					all = append(all, n)
				}
			}
		}
	}
	return all[1:]
}

// connectionsOf returns a parser of /proc/net/tcp or tcp6 (proc_pid_net(5))
// for the established connections of the given sockets.
func connectionsOf(inodes map[uint32]bool) func(string) ([]measure.Addresses, error) {
	const established = "01"
	return func(text string) (all []measure.Addresses, err error) {
		for line := range strings.Lines(text) {
			f := strings.Fields(line)
			if len(f) < 10 || f[3] != established {
				continue // the header, and sockets that are not connected
			}
			inode, err := strconv.ParseUint(f[9], 10, 32)
			if err != nil || !inodes[uint32(inode)] {
				continue
			}
			local, ok1 := hexAddr(f[1])
			peer, ok2 := hexAddr(f[2])
			if ok1 && ok2 {
				all = append(all, measure.Addresses{Local: local.String(), Peer: peer.String()})
			}
		}
		return all, nil
	}
}

// hexAddr parses "0100007F:1F90": 32-bit words in the machine's byte order,
// and the port.
func hexAddr(s string) (netip.AddrPort, bool) {
	words, port, _ := strings.Cut(s, ":")
	b, err := hex.DecodeString(words)
	n, perr := strconv.ParseUint(port, 16, 16)
	if err != nil || perr != nil || len(b) != 4 && len(b) != 16 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	addr, _ := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(addr.Unmap(), uint16(n)), true
}
