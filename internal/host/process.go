package host

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"thru/internal/measure"
)

// process reads what a process has used since it began. Its times and memory
// are of the whole process; the switches that /proc/PID/status shows are of
// the main thread alone, so that those of all threads are added up.
func (f FS) process(pid int) (measure.Process, error) {
	dir := path.Join("proc", strconv.Itoa(pid))
	p, err := parsed(f.read, path.Join(dir, "stat"), parseProcStat)
	if err != nil {
		return p, err
	}
	main, err := parsed(f.read, path.Join(dir, "status"), parseStatus)
	if err != nil {
		return p, err
	}
	p.ResidentB = main.resident
	threads, err := f.names(path.Join(dir, "task"))
	if err != nil {
		return p, err
	}
	var vol, invol int64
	for _, t := range threads {
		st, err := parsed(f.read, path.Join(dir, "task", t, "status"), parseStatus)
		if err != nil {
			continue // the thread has just ended
		}
		vol, invol = vol+st.voluntary, invol+st.involuntary
	}
	p.Voluntary, p.Involuntary = &vol, &invol
	return p, nil
}

// parseProcStat reads the times of /proc/PID/stat (proc_pid_stat(5), fields
// 14 and 15). The name of the program may hold spaces and brackets: what
// counts begins after the last bracket, with field 3.
func parseProcStat(r io.Reader) (measure.Process, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return measure.Process{}, err
	}
	end := strings.LastIndexByte(string(b), ')')
	f := strings.Fields(string(b[end+1:]))
	if end < 0 || len(f) < 13 {
		return measure.Process{}, fmt.Errorf("%.80q has no times", b)
	}
	var ns [2]int64
	for i, s := range f[11:13] {
		n, err := strconv.ParseUint(s, 10, 63)
		if err != nil || n > uint64(1<<63-1)/uint64(tick) {
			return measure.Process{}, fmt.Errorf("%.40q is no time", s)
		}
		ns[i] = int64(n) * tick
	}
	return measure.Process{UserNs: ns[0], SystemNs: ns[1]}, nil
}

// status is what thru reads of /proc/PID/status.
type status struct {
	resident               int64 // bytes; 0 for a kernel thread, which has no such line
	voluntary, involuntary int64
}

// parseStatus reads /proc/PID/status or that of a thread (proc_pid_status(5)).
func parseStatus(r io.Reader) (status, error) {
	st := status{voluntary: -1, involuntary: -1}
	s := bufio.NewScanner(r)
	for s.Scan() {
		name, value, _ := strings.Cut(s.Text(), ":")
		var err error
		switch name {
		case "VmRSS":
			st.resident, err = kilobytes(value)
		case "voluntary_ctxt_switches":
			st.voluntary, err = count(value)
		case "nonvoluntary_ctxt_switches":
			st.involuntary, err = count(value)
		}
		if err != nil {
			return status{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := s.Err(); err != nil {
		return status{}, err
	}
	if st.voluntary < 0 || st.involuntary < 0 {
		return status{}, errors.New("no context switches")
	}
	return st, nil
}

// count reads a number of events.
func count(s string) (int64, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%.40q is no count", s)
	}
	return int64(n), nil
}
