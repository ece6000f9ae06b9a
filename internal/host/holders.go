package host

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"thru/internal/measure"
)

// Holder is a process that has a socket open.
type Holder struct {
	PID  int
	Name string // of its program, as /proc/PID/comm has it
}

// Holders are the processes that hold sockets, by their inodes (proc_pid_fd(5)).
// Those of other users are seen by root alone: what is not found is left out.
// It looks at every open file of the host, which takes some ten milliseconds.
func (h *Host) Holders(inodes map[uint32]bool) (map[uint32][]Holder, error) {
	pids, err := h.fs.numbered("proc", "")
	if err != nil {
		return nil, fmt.Errorf("host: looking for who holds a socket: %w", err)
	}
	all := map[uint32][]Holder{}
	for _, pid := range pids {
		for _, inode := range h.fs.socketsOf(pid) {
			if !inodes[inode] {
				continue
			}
			name, _ := h.fs.text(path.Join("proc", strconv.Itoa(pid), "comm")) // it may have just ended
			all[inode] = append(all[inode], Holder{PID: pid, Name: name})
		}
	}
	return all, nil
}

// Process is what a process has used since it began.
func (h *Host) Process(pid int) (measure.Process, error) { return h.fs.process(pid) }

// socketsOf are the inodes of a process's sockets, each once; none where it is
// gone or another user's.
func (f FS) socketsOf(pid int) (all []uint32) {
	dir := path.Join("proc", strconv.Itoa(pid), "fd")
	names, err := f.names(dir)
	if err != nil {
		return nil
	}
	seen := map[uint32]bool{}
	for _, n := range names {
		to, err := os.Readlink(filepath.Join(f.Root, dir, n))
		if err != nil {
			continue
		}
		if inode, ok := socketInode(to); ok && !seen[inode] {
			seen[inode] = true
			all = append(all, inode)
		}
	}
	return all
}

// socketInode reads "socket:[1234]".
func socketInode(link string) (uint32, bool) {
	s, ok := strings.CutPrefix(link, "socket:[")
	s, closed := strings.CutSuffix(s, "]")
	n, err := strconv.ParseUint(s, 10, 32)
	return uint32(n), ok && closed && err == nil
}
