package runner

import (
	"strings"

	"thru/internal/measure"
	"thru/internal/transfer"
)

// programCPU adds the CPU time of programs to that of this process. The
// kernel adds up the times of children that have ended, and of their
// children: a server program that still runs is not included.
type programCPU struct {
	name         string // of the program; empty: this process moves the bytes
	user, system int64  // ns, of all children that had ended before
	known        bool
}

// watchPrograms starts the count where a program runs the sessions.
func watchPrograms(sessions []transfer.Session) (p programCPU) {
	if _, ok := sessions[0].(transfer.Outside); ok {
		p.name, _, _ = strings.Cut(sessions[0].Info().Client, " ")
		p.user, p.system, p.known = childrenUsed()
	}
	return p
}

// addTo adds the times when all programs have ended. Where they are not known
// it drops those of this process, which would look like the client's.
func (p programCPU) addTo(span *measure.HostSpan) {
	if p.name == "" || span.Worker == nil {
		return
	}
	user, system, known := childrenUsed()
	if !known || !p.known {
		span.Worker = nil
		span.Missing = append(span.Missing, measure.NotChecked{Fact: "worker", Why: "this system does not report the CPU time of programs"})
		return
	}
	span.Worker.UserNs += user - p.user
	span.Worker.SystemNs += system - p.system
}
