package tune

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"thru/internal/fault"
	"thru/internal/measure"
)

// Limits of a request.
const (
	mostSettings = 64
	maxName      = 256 // bytes of the name of a knob, an interface, or a person
)

// holdWait is how long Tuner waits for a process that only cleans up.
const holdWait = 3 * time.Second

// Config describes a tuner.
type Config struct {
	Version string   // thru's version
	Only    []string // knobs that the host's operator allows, by id; empty: all
	// Guard starts the process that undoes the tuning where this process
	// dies; stop tells it whether the tuning ended normally. Nil: there is no
	// guard.
	Guard func(dir string) (stop func(orderly bool), err error)
	// Possible returns why nothing can be changed here; nil: the function of
	// that name.
	Possible func() error
	Boot     func() string    // id of this boot; nil: the kernel's
	Now      func() time.Time // nil: time.Now
	Root     string           // root of the host's files, such as /etc/machine-id; empty: /
	step     step
	socket   string        // held while somebody tunes; empty: lockName
	run      string        // folder of the lock that only root can take; empty: runFolder
	space    func() space  // returns the network namespace; nil: that of this thread
	wait     time.Duration // for a process that only cleans up; 0: holdWait
}

// space is a network namespace; knobs belong to one.
type space struct {
	id    uint64 // 0: not known
	first bool   // the host's own, which exists after each boot, unlike others
}

// runFolder can be written by root only, and a boot empties it (hier(7)).
const runFolder = "/run"

// lockName is an abstract socket (unix(7)): one for each network namespace,
// as for the knobs, and gone with the process that holds it.
const lockName = "@thru-tune"

// Tuner changes the settings of a host for one client at a time. Its journal
// is on the disk before a change is made, and suffices to undo it. Its
// methods may be called concurrently; they run one after the other.
type Tuner struct {
	dir     folder
	machine Machine
	conf    Config

	mu     sync.Mutex
	tuning *tuning // the running tuning; nil: none
}

// tuning is a running tuning.
type tuning struct {
	client, owner string
	release       func()             // releases the lock
	journal       *journal           // nil until the first change
	stop          func(orderly bool) // stops the guard; nil: there is none
	seen          map[target]string  // the value that this tuning left at each target
}

// Open returns the tuner of this host, with journals in a folder; it writes
// nothing before a tuning begins. Recover undoes what a crash has left.
func Open(dir string, m Machine, c Config) (*Tuner, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("tune: finding the folder of the journal: %w", err)
	}
	if c.Boot == nil {
		c.Boot = bootID
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Possible == nil {
		c.Possible = Possible
	}
	c.socket, c.run, c.wait = cmp.Or(c.socket, lockName), cmp.Or(c.run, runFolder), cmp.Or(c.wait, holdWait)
	if c.space == nil {
		c.space = ownSpace
	}
	if c.step == nil {
		c.step = func(string) {}
	}
	return &Tuner{dir: folder(abs), machine: m, conf: c}, nil
}

// Knobs returns the knobs of the host and of the given interfaces. A knob
// that the operator has not allowed has that as its reason.
func (d *Tuner) Knobs(interfaces []string) []measure.KnobState {
	all := d.machine.Knobs(interfaces)
	for i := range all {
		if all[i].Refused == "" && !d.allows(all[i].Knob) {
			all[i].Refused = "not allowed by its operator (--tune-only)"
		}
	}
	return all
}

// NoTune returns why nothing can be changed here; empty where something can.
func (d *Tuner) NoTune() string {
	err := d.conf.Possible()
	if err == nil {
		return ""
	}
	return fault.Text(err)
}

// By returns who tunes this host now; empty: nobody.
func (d *Tuner) By() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.tuning != nil:
		return d.tuning.owner
	case !held(d.hostLock(), d.conf.socket):
		return ""
	}
	return d.other()
}

// other returns the owner of a tuning by another process, as far as the
// journal names it.
func (d *Tuner) other() string {
	for _, r := range d.records() {
		if !r.ended && r.begin.Owner != "" {
			return r.begin.Owner
		}
	}
	return "another process of this host"
}

// Host identifies this host and network namespace until the next boot, equal
// for all callers; empty where it is not known.
func (d *Tuner) Host() string {
	boot, at := d.conf.Boot(), d.conf.space().id
	if boot == "" || at == 0 {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", machineID(d.conf.Root), boot, at))
	return hex.EncodeToString(sum[:8])
}

// Open returns the changes of the journals that are not undone, the last
// first.
func (d *Tuner) Open() []measure.Changed {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []measure.Changed
	for _, r := range d.records() {
		for _, c := range r.open() {
			all = append(all, c.Changed)
		}
	}
	return all
}

// records returns the readable journals of this host, the newest first.
func (d *Tuner) records() (all []record) {
	ids, _ := d.dir.numbers() // writing reports an unreadable folder
	for _, id := range ids {
		if r, err := d.dir.read(id); err == nil && d.isOf(r) == here {
			all = append(all, r)
		}
	}
	return all
}

// of says which host a journal belongs to.
type of int

const (
	here      of = iota
	elsewhere    // another machine, or network namespace, that shares the folder
	past         // a network namespace of an earlier boot, which is gone with all its settings
	unknown      // the line with the host is damaged
)

func (d *Tuner) isOf(r record) of {
	machine, b, now := machineID(d.conf.Root), r.begin, d.conf.space()
	switch {
	case b.Line == "" && len(r.changes)+len(r.damaged) > 0:
		return unknown
	case b.Line == "": // a crash cut it off before any change
		return here
	case b.Machine != "" && machine != "" && b.Machine != machine:
		return elsewhere
	case d.afterBoot(r) && !b.First:
		return past
	case d.afterBoot(r) && now.first, !d.afterBoot(r) && b.Namespace == now.id:
		return here
	}
	return elsewhere
}

// afterBoot reports whether the host has booted since the journal began.
func (d *Tuner) afterBoot(r record) bool {
	boot := d.conf.Boot()
	return r.begin.Boot != "" && boot != "" && r.begin.Boot != boot
}

func (d *Tuner) allows(knob string) bool {
	return len(d.conf.Only) == 0 || slices.Contains(d.conf.Only, knob)
}

// Begin makes a client the owner of the tuning of this host. It first undoes
// what a crash has left of an earlier tuning.
func (d *Tuner) Begin(client, who string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.conf.Possible(); err != nil {
		return err
	}
	if t := d.tuning; t != nil {
		if t.client == client {
			return nil
		}
		return taken(t.owner)
	}
	release, err := d.take()
	if err != nil {
		return err
	}
	left, err := d.recover()
	if err == nil {
		err = leftError(left)
	}
	if err != nil {
		release()
		return err
	}
	d.tuning = &tuning{client: client, owner: who[:min(len(who), maxName)], release: release, seen: map[target]string{}}
	return nil
}

// leftError returns why no tuning can begin where an earlier one could not be
// undone.
func leftError(changed []measure.Changed) error {
	for _, c := range changed {
		if c.Outcome == measure.Failed && c.Knob != "" { // an unreadable journal has no knob; --rollback reports it
			return fault.Failf("show the changes and try again: thru tune --rollback", "tune: an interrupted tuning cannot be reverted: %s: %s", nameOf(c.Setting), c.Error)
		}
	}
	return nil
}

func taken(who string) error {
	return fault.Failf("wait until the other tuning has ended, or end it", "tune: %w: %s", ErrTaken, who)
}

// takenHere adds to ErrTaken the process of this host, which may have been
// stopped.
func (d *Tuner) takenHere(err error) error {
	who := ""
	if !errors.Is(err, errElsewhere) {
		err, who = ErrTaken, ": "+d.other()
	}
	pid := holderPID(d.conf.socket)
	if pid == 0 {
		return fault.Failf("wait until the other tuning has ended, or end it", "tune: %w%s", err, who)
	}
	return fault.Failf(fmt.Sprintf("wait until the other tuning has ended, or end it there: kill %d (kill -9 %d if it hangs); thru then reverts its changes", pid, pid),
		"tune: %w%s (process %d)", err, who, pid)
}

// take locks the host; it waits as long as cleaning up takes.
func (d *Tuner) take() (release func(), err error) {
	if err := d.dir.make(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.conf.wait)
	defer cancel()
	for {
		release, err := hold(d.lockFile(), d.hostLock(), d.conf.socket)
		if !errors.Is(err, ErrTaken) {
			return release, err
		}
		select {
		case <-ctx.Done():
			return nil, d.takenHere(err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// lockFile returns the lock file of this host: several hosts may share the
// folder.
func (d *Tuner) lockFile() string {
	return filepath.Join(string(d.dir), fmt.Sprintf("lock-%08x-%d", sumOf([]byte(machineID(d.conf.Root))), d.conf.space().id))
}

// hostLock returns the lock file for all folders of this host.
func (d *Tuner) hostLock() string {
	return filepath.Join(d.conf.run, fmt.Sprintf("thru-tune-%d.lock", d.conf.space().id))
}

// of returns the running tuning of a client.
func (d *Tuner) of(client string) (*tuning, error) {
	if d.tuning == nil || d.tuning.client != client {
		return nil, fault.Failf("", "tune: this client is not tuning this host (any more)")
	}
	return d.tuning, nil
}

func (d *Tuner) now() string { return d.conf.Now().UTC().Format(time.RFC3339Nano) }

// Revert undoes changes of this tuning by their numbers, the last first; all
// where no numbers are given. Each outcome says what happened: a change that
// somebody else has changed since is left to them.
func (d *Tuner) Revert(client string, numbers []int64) ([]measure.Changed, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t, err := d.of(client)
	if err != nil {
		return nil, err
	}
	var which map[int64]bool
	if len(numbers) > 0 {
		which = map[int64]bool{}
	}
	for _, n := range numbers {
		if t.journal == nil || t.journal.find(n) == nil {
			return nil, fault.Failf("", "tune: reverting: this tuning has no change %d", n)
		}
		which[n] = true
	}
	if t.journal == nil {
		return nil, nil
	}
	return d.undo(t.journal, which, pass{seen: t.seen}), nil
}

// End ends a tuning normally: changes that were not reverted stay, and stay
// in the journal, so that Rollback can undo them later.
func (d *Tuner) End(client string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	t, err := d.of(client)
	if err != nil {
		return err
	}
	return d.end(t)
}

// end closes the journal of a tuning and releases the host. Where the journal
// cannot be written the tuning goes on, since it would look like a crash.
func (d *Tuner) end(t *tuning) error {
	if t.journal != nil {
		if err := d.settle(t.journal); err != nil {
			return err
		}
	}
	d.leave(t, true)
	return nil
}

// settle writes the last line of a journal, and moves the journal to the
// folder done where nothing is left to undo.
func (d *Tuner) settle(j *journal) error {
	open := j.open()
	stays := make([]int64, 0, len(open))
	for _, c := range open {
		stays = append(stays, c.Number)
	}
	if !j.ended {
		if err := j.add(entry{Line: lineEnd, At: d.now(), Stays: stays}); err != nil {
			return err
		}
	}
	if len(open) > 0 || len(j.damaged) > 0 { // an unreadable line may hold a change that is still in force
		return nil
	}
	return d.dir.finish(j)
}

// leave releases everything that a tuning holds.
func (d *Tuner) leave(t *tuning, orderly bool) {
	if t.journal != nil {
		t.journal.close()
	}
	d.tuning = nil
	t.release()
	if t.stop != nil { // after the lock is free: the guard may need it
		t.stop(orderly)
	}
}

// Times for undoing the changes of a lost client.
const (
	goneTries = 3
	goneWait  = time.Second
)

// Gone reports the loss of a client to the tuner. Where the client has not
// ended its tuning, Gone undoes all of it at once. What it cannot undo is
// left to the guard, and to the next process that opens the journal.
func (d *Tuner) Gone(client string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t, err := d.of(client)
	if err != nil {
		return
	}
	for try := range goneTries {
		if t.journal == nil || !anyFailed(d.undo(t.journal, nil, pass{seen: t.seen})) {
			break
		}
		if try < goneTries-1 {
			time.Sleep(goneWait)
		}
	}
	if t.journal == nil || len(t.journal.open()) == 0 {
		if d.end(t) == nil {
			return
		}
	}
	d.leave(t, false)
}

func anyFailed(all []measure.Changed) bool {
	return slices.ContainsFunc(all, func(c measure.Changed) bool { return c.Outcome == measure.Failed })
}

// same reports whether two values are equal as text, whatever space is
// between their words.
func same(a, b string) bool { return slices.Equal(strings.Fields(a), strings.Fields(b)) }

// nameOf returns a setting's name in messages: "tso of eth0".
func nameOf(s measure.Setting) string { return labelled(s.Knob, s.Interface) }

// quote returns a value for a message: long ones are cut.
func quote(v string) string {
	const most = 80
	if len(v) > most {
		return fmt.Sprintf("%.*q...", most, v)
	}
	return fmt.Sprintf("%q", v)
}
