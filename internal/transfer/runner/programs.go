package runner

import (
	"strings"

	"thru/internal/measure"
	"thru/internal/transfer"
)

// programCPU adds what programs have used to what this process has. The kernel adds
// up the times of children that have ended, and of theirs: a server's program beside
// this, which runs on, is not among them.
type programCPU struct {
	name         string // of the program; empty: the bytes are moved by this process
	user, system int64  // ns, of all children that had ended before
	known        bool
}

// watchPrograms begins where sessions are those of a program.
func watchPrograms(sessions []transfer.Session) (p programCPU) {
	if _, ok := sessions[0].(transfer.Outside); ok {
		p.name, _, _ = strings.Cut(sessions[0].Info().Client, " ")
		p.user, p.system, p.known = childrenUsed()
	}
	return p
}

// addTo ends it when all programs have. Without their times those of this process
// alone would look like the client's: they are left out.
func (p programCPU) addTo(span *measure.HostSpan) {
	if p.name == "" || span.Worker == nil {
		return
	}
	user, system, known := childrenUsed()
	if !known || !p.known {
		span.Worker = nil
		span.Missing = append(span.Missing, measure.NotChecked{Fact: "worker", Why: "this system does not tell what programs have used"})
		return
	}
	span.Worker.UserNs += user - p.user
	span.Worker.SystemNs += system - p.system
}
