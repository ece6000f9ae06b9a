package agent

import (
	"thru/internal/engine"
	"thru/internal/fault"
	"thru/internal/measure"
)

// job is work for a client that goes on between two requests (bus.Job).
type job struct {
	client, session string
	what            string        // Busy's words for it
	isFree          bool          // it needs no turn, and Release leaves it
	stop            func()        // has it end; may be called more than once
	over            chan struct{} // closed when it has ended
}

// work is a job with what its kind has besides.
type work interface{ base() *job }

func (j *job) base() *job { return j }

func newJob(client, what string) job {
	return job{client: client, session: newID(), what: what, over: make(chan struct{})}
}

func (j *job) isOver() bool {
	select {
	case <-j.over:
		return true
	default:
		return false
	}
}

// keep makes it one that is under way, if its client has the turn and there is room
// for it, which is asked with mu held.
func (a *Agent) keep(w work, hasRoom func() bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	j := w.base()
	if a.closed || !j.isFree && !a.turns.has(j.client) || !hasRoom() {
		return false
	}
	a.jobs[j.session] = w
	a.busy()
	return true
}

// forget makes room for the next one; false where it is forgotten already.
func (a *Agent) forget(w work) bool {
	a.mu.Lock()
	_, known := a.jobs[w.base().session]
	delete(a.jobs, w.base().session)
	report := a.busy
	a.mu.Unlock()
	report()
	return known
}

// find returns the work of that kind and client; another's is as unknown as none.
func find[W work](a *Agent, client, session string) (W, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w, ok := a.jobs[session].(W); ok && w.base().client == client {
		return w, nil
	}
	var none W
	return none, errUnknown(session)
}

func errUnknown(session string) error {
	return fault.Failf("", "agent: session %.60q is not known", session)
}

// count is how many there are of a kind for which something is so. The caller holds mu.
func count[W work](a *Agent, is func(W) bool) (n int) {
	for _, w := range a.jobs {
		if x, ok := w.(W); ok && is(x) {
			n++
		}
	}
	return n
}

// endJobs ends one job of a client, or all, and waits for that: the turn is given on
// when the host is quiet. Those that need no turn end only with their client. It
// returns how many are left that hold the turn.
func (a *Agent) endJobs(client, session string, isGone bool) (left int) {
	var ours []work
	a.mu.Lock()
	for _, w := range a.jobs {
		j := w.base()
		switch {
		case j.client != client || j.isFree && !isGone:
		case session == "" || session == j.session:
			if ours = append(ours, w); j.isFree {
				delete(a.jobs, j.session) // nobody else may end it now
			}
		default:
			left++
		}
	}
	a.mu.Unlock()
	for _, w := range ours {
		w.base().stop()
	}
	for _, w := range ours {
		<-w.base().over
		a.forget(w)
	}
	return left
}

// measuresDisk tells whether a disk is measured, or its result was not fetched. The
// caller holds mu.
func (a *Agent) measuresDisk() bool { return count(a, func(*diskTest) bool { return true }) > 0 }

// movingFiles is what Busy says of files that move.
const movingFiles = "files"

// moving is how many files are under way. The caller holds mu.
func (a *Agent) moving() int { return count(a, func(x *fileMove) bool { return !x.isOver() }) }

// diskTest is the measurement of a disk for a client: one at a time.
type diskTest struct {
	job
	test measure.DiskTest // once it is over
}

// enter takes a place for what a client is about to open in its turn, and says where it
// may listen.
func (a *Agent) enter(client, doing string) (engine.Listen, error) {
	if !a.turns.has(client) {
		return engine.Listen{}, errNotYourTurn(doing)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	listen := a.conf.Listen
	if a.closed {
		return listen, fault.Failf("", "agent: %s: the agent ends", doing)
	}
	if a.measuresDisk() {
		return listen, fault.Failf("try again when that has ended", "agent: %s: a disk is measured here", doing)
	}
	if len(a.sessions)+a.opening+a.moving() >= a.conf.Limits.Sessions {
		return listen, fault.Failf("wait for other tests to end, or measure fewer pairs there at once; thru serve --max-sessions N allows more",
			"agent: %s: %d sessions run already, the limit of this end point", doing, a.conf.Limits.Sessions)
	}
	a.opening++
	listen.Offset = a.opened % (listen.Last - listen.First + 1)
	a.opened++
	return listen, nil
}

func (a *Agent) leave(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if id == "" {
		a.opening--
		return
	}
	delete(a.sessions, id)
}

// isQuiet is true when no session is opening, and none moves data any more.
func (a *Agent) isQuiet() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.sessions {
		select {
		case <-s.over:
		default:
			return false
		}
	}
	return a.opening == 0 && !a.measuresDisk() && a.moving() == 0
}
