package host

import (
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

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

// Born is when a process began, after the machine did (proc_pid_stat(5), field 22):
// with its number it tells it from all others.
func (h *Host) Born(pid int) (time.Duration, error) {
	return parsed(h.fs.read, path.Join("proc", strconv.Itoa(pid), "stat"), parseBorn)
}

func parseBorn(r io.Reader) (time.Duration, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return 0, err
	}
	end := strings.LastIndexByte(string(b), ')')
	f := strings.Fields(string(b[end+1:]))
	if end < 0 || len(f) < 20 {
		return 0, fmt.Errorf("%.80q does not tell when it began", b)
	}
	n, err := strconv.ParseUint(f[19], 10, 63)
	if err != nil || n > uint64(1<<63-1)/uint64(tick) {
		return 0, fmt.Errorf("%.40q is no time", f[19])
	}
	return time.Duration(int64(n) * tick), nil
}

// Up is how long the machine has been running, time asleep included (proc_uptime(5)).
func (h *Host) Up() (time.Duration, error) { return parsed(h.fs.read, "proc/uptime", parseUp) }

func parseUp(r io.Reader) (time.Duration, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return 0, err
	}
	text, _, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
	up, err := time.ParseDuration(text + "s")
	if err != nil || up < 0 {
		return 0, fmt.Errorf("%.40q is no time", text)
	}
	return up, nil
}
