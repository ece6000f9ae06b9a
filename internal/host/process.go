package host

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

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
