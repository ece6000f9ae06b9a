package host

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"thru/internal/host/tree"
	"thru/internal/measure"
)

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
