package host

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"thru/internal/host/tree"
	"thru/internal/measure"
)

// process reads what a process has used since it began. Its times and memory
// are those of the whole process. /proc/PID/status shows the context switches
// of the main thread only, so process adds up those of all threads.
func (f FS) process(pid int) (measure.Process, error) {
	dir := path.Join("proc", strconv.Itoa(pid))
	p, err := tree.Parsed(f.Read, path.Join(dir, "stat"), parseProcStat)
	if err != nil {
		return p, err
	}
	main, err := tree.Parsed(f.Read, path.Join(dir, "status"), parseStatus)
	if err != nil {
		return p, err
	}
	p.ResidentB = main.resident
	threads, err := f.Names(path.Join(dir, "task"))
	if err != nil {
		return p, err
	}
	var vol, invol int64
	for _, t := range threads {
		st, err := tree.Parsed(f.Read, path.Join(dir, "task", t, "status"), parseStatus)
		if err != nil {
			continue // the thread has just ended
		}
		vol, invol = vol+st.voluntary, invol+st.involuntary
	}
	p.Voluntary, p.Involuntary = &vol, &invol
	return p, nil
}

// parseProcStat reads the times of /proc/PID/stat (proc_pid_stat(5), fields
// 14 and 15). The program name may hold spaces and brackets: field 3 begins
// after the last bracket.
func parseProcStat(line string) (measure.Process, error) {
	end := strings.LastIndexByte(line, ')')
	f := strings.Fields(line[end+1:])
	if end < 0 || len(f) < 13 {
		return measure.Process{}, fmt.Errorf("%.80q has no times", line)
	}
	var ns [2]int64
	for i, s := range f[11:13] {
		n, err := strconv.ParseUint(s, 10, 63)
		if err != nil || n > uint64(1<<63-1)/uint64(tick) {
			return measure.Process{}, fmt.Errorf("%.40q is not a time", s)
		}
		ns[i] = int64(n) * tick
	}
	return measure.Process{UserNs: ns[0], SystemNs: ns[1]}, nil
}

// status holds fields of /proc/PID/status.
type status struct {
	resident               int64 // bytes; 0 for a kernel thread, which has no such line
	voluntary, involuntary int64
}

// parseStatus reads /proc/PID/status or the same file of a thread
// (proc_pid_status(5)).
func parseStatus(text string) (status, error) {
	st := status{voluntary: -1, involuntary: -1}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		var err error
		switch name {
		case "VmRSS":
			st.resident, err = tree.Kilobytes(value)
		case "voluntary_ctxt_switches":
			st.voluntary, err = tree.Count(value)
		case "nonvoluntary_ctxt_switches":
			st.involuntary, err = tree.Count(value)
		}
		if err != nil {
			return status{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	if st.voluntary < 0 || st.involuntary < 0 {
		return status{}, errors.New("no context switches")
	}
	return st, nil
}

// Holder is a process with an open socket.
type Holder struct {
	PID  int
	Name string // the program's name by /proc/PID/comm
}

// Holders returns the processes that have sockets open, by socket inode
// (proc_pid_fd(5)). Only root sees those of other users: sockets that are not
// found are left out. It reads every open file of the host, which takes some
// ten milliseconds.
func (h *Host) Holders(inodes map[uint32]bool) (map[uint32][]Holder, error) {
	pids, err := h.fs.Numbered("proc", "")
	if err != nil {
		return nil, fmt.Errorf("host: finding the owner of a socket: %w", err)
	}
	all := map[uint32][]Holder{}
	for _, pid := range pids {
		for _, inode := range h.fs.socketsOf(pid) {
			if !inodes[inode] {
				continue
			}
			name, _ := h.fs.Text(path.Join("proc", strconv.Itoa(pid), "comm")) // the process may have just ended
			all[inode] = append(all[inode], Holder{PID: pid, Name: name})
		}
	}
	return all, nil
}

// Process returns the CPU time and memory that a process has used since it
// began.
func (h *Host) Process(pid int) (measure.Process, error) { return h.fs.process(pid) }

// socketsOf returns the inodes of a process's sockets, each once; none where
// the process is gone or belongs to another user.
func (f FS) socketsOf(pid int) (all []uint32) {
	dir := path.Join("proc", strconv.Itoa(pid), "fd")
	names, err := f.Names(dir)
	if err != nil {
		return nil
	}
	seen := map[uint32]bool{}
	for _, n := range names {
		if inode, ok := socketInode(f.Link(path.Join(dir, n))); ok && !seen[inode] {
			seen[inode] = true
			all = append(all, inode)
		}
	}
	return all
}

// socketInode parses "socket:[1234]".
func socketInode(link string) (uint32, bool) {
	s, ok := strings.CutPrefix(link, "socket:[")
	s, closed := strings.CutSuffix(s, "]")
	n, err := strconv.ParseUint(s, 10, 32)
	return uint32(n), ok && closed && err == nil
}

// Born returns the time from boot to the start of a process
// (proc_pid_stat(5), field 22). Together with the process number it
// identifies the process.
func (h *Host) Born(pid int) (time.Duration, error) {
	return tree.Parsed(h.fs.Read, path.Join("proc", strconv.Itoa(pid), "stat"), parseBorn)
}

func parseBorn(line string) (time.Duration, error) {
	end := strings.LastIndexByte(line, ')')
	f := strings.Fields(line[end+1:])
	if end < 0 || len(f) < 20 {
		return 0, fmt.Errorf("%.80q has no start time", line)
	}
	n, err := strconv.ParseUint(f[19], 10, 63)
	if err != nil || n > uint64(1<<63-1)/uint64(tick) {
		return 0, fmt.Errorf("%.40q is not a time", f[19])
	}
	return time.Duration(int64(n) * tick), nil
}

// Up returns the time since boot, suspended time included (proc_uptime(5)).
func (h *Host) Up() (time.Duration, error) { return tree.Parsed(h.fs.Read, "proc/uptime", parseUp) }

func parseUp(line string) (time.Duration, error) {
	seconds, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	up, err := time.ParseDuration(seconds + "s")
	if err != nil || up < 0 {
		return 0, fmt.Errorf("%.40q is not a time", seconds)
	}
	return up, nil
}

// mostDescendants limits how many processes are read.
const mostDescendants = 64

// ChildConnections returns the TCP connections of the descendants of a
// process, in this network namespace, and adds their inodes to known. It looks
// only for those of a process that has sockets and none of the known ones: the
// kernel reads its whole table for that, which takes some ten milliseconds.
func (h *Host) ChildConnections(pid int, known map[uint32]bool) (all []measure.Addresses, err error) {
	inodes := map[uint32]bool{}
	for _, child := range h.fs.descendants(pid) {
		sockets := h.fs.socketsOf(child)
		if slices.ContainsFunc(sockets, func(inode uint32) bool { return known[inode] }) {
			continue
		}
		for _, inode := range sockets {
			inodes[inode] = true
		}
	}
	if len(inodes) == 0 {
		return nil, nil
	}
	for _, file := range []string{"tcp", "tcp6"} {
		found, err := tree.Parsed(h.fs.net, file, connectionsOf(inodes, known))
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
// for the established connections of the given sockets, which it adds to known.
func connectionsOf(inodes, known map[uint32]bool) func(string) ([]measure.Addresses, error) {
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
				known[uint32(inode)], all = true, append(all, measure.Addresses{Local: local.String(), Peer: peer.String()})
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
