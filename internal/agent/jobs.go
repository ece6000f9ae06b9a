package agent

import (
	"thru/internal/engine"
	"thru/internal/fault"
	"thru/internal/measure"
)

// job is work for a client that continues between two requests (bus.Job).
type job struct {
	client, session string
	what            string        // description for Busy
	isFree          bool          // it needs no turn, and Release does not end it
	stop            func()        // ends it; may be called more than once
	over            chan struct{} // closed when it has ended
}

// work is a job of any kind.
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

// keep adds a job to the running ones, if its client has the turn and hasRoom,
// called with mu held, returns true.
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

// forget removes a job; false where it was removed already.
func (a *Agent) forget(w work) bool {
	a.mu.Lock()
	_, known := a.jobs[w.base().session]
	delete(a.jobs, w.base().session)
	report := a.busy
	a.mu.Unlock()
	report()
	return known
}

// find returns the client's job of that kind; a job of another client counts as unknown.
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
	return fault.Failf("", "agent: unknown session %.60q", session)
}

// count returns how many jobs of a kind satisfy is. The caller holds mu.
func count[W work](a *Agent, is func(W) bool) (n int) {
	for _, w := range a.jobs {
		if x, ok := w.(W); ok && is(x) {
			n++
		}
	}
	return n
}

// endJobs ends one job of a client, or all, and waits for their end, so that the
// host is quiet when the turn is given back. Jobs that need no turn end only with
// their client. It returns the number of remaining jobs that hold the turn.
func (a *Agent) endJobs(client, session string, isGone bool) (left int) {
	var ours []work
	a.mu.Lock()
	for _, w := range a.jobs {
		j := w.base()
		switch {
		case j.client != client || j.isFree && !isGone:
		case session == "" || session == j.session:
			if ours = append(ours, w); j.isFree {
				delete(a.jobs, j.session) // so that no other call ends it too
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

// measuresDisk reports whether a disk is measured, or its result was not fetched.
// The caller holds mu.
func (a *Agent) measuresDisk() bool { return count(a, func(*diskTest) bool { return true }) > 0 }

// movingFiles is the word of Busy for file transfers.
const movingFiles = "files"

// moving returns the number of running file transfers. The caller holds mu.
func (a *Agent) moving() int { return count(a, func(x *fileMove) bool { return !x.isOver() }) }

// diskTest is a disk measurement for a client: one at a time.
type diskTest struct {
	job
	test measure.DiskTest // valid once it is over
}

// enter reserves a place for a session of a client that has the turn, and returns
// where it may listen.
func (a *Agent) enter(client, doing string) (engine.Listen, error) {
	if !a.turns.has(client) {
		return engine.Listen{}, errNotYourTurn(doing)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	listen := a.conf.Listen
	if a.closed {
		return listen, fault.Failf("", "agent: %s: the agent is shutting down", doing)
	}
	if a.measuresDisk() {
		return listen, fault.Failf("try again when the disk test has ended", "agent: %s: a disk test runs here", doing)
	}
	if len(a.sessions)+a.opening+a.moving() >= a.limits().Sessions {
		return listen, fault.Failf("wait for other tests to end, or measure fewer pairs there at once; thru serve --max-sessions N allows more",
			"agent: %s: %d sessions are running, the limit of this end point", doing, a.limits().Sessions)
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

// isQuiet reports whether no session is opening and none moves data.
func (a *Agent) isQuiet() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.opening == 0 && a.movesNothing()
}

// isIdle reports whether no session moves data: the path may be probed meanwhile.
func (a *Agent) isIdle() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.movesNothing()
}

// movesNothing is called with the lock held.
func (a *Agent) movesNothing() bool {
	for _, s := range a.sessions {
		select {
		case <-s.over:
		default:
			return false
		}
	}
	return !a.measuresDisk() && a.moving() == 0
}
