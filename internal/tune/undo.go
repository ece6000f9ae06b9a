package tune

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/unit"
)

// pass is what is known while changes are undone.
type pass struct {
	seen  map[target]string // the value that this tuning left at each target, kept up to date; nil: it is not running
	first map[target]string // the value before the first of all changes that are undone; nil: not all are undone
	back  map[target]bool   // targets that the undo of a later change has restored; nil: not known
}

// undo undoes the changes of a journal with these numbers (nil: all), the
// last first.
func (d *Tuner) undo(j *journal, which map[int64]bool, p pass) (all []measure.Changed) {
	if j == nil {
		return nil
	}
	blocked := map[target]int64{} // by a later change that is not undone
	for i := len(j.changes) - 1; i >= 0; i-- {
		c := j.changes[i]
		if which != nil && !which[c.Number] {
			if !c.closed {
				blocked[c.target()] = c.Number
			}
			continue
		}
		if c.closed {
			if which != nil { // requested again by its number: nothing to do
				all = append(all, settledAgain(c))
			}
			continue
		}
		r := c.Changed
		if later, yes := blocked[c.target()]; yes {
			r.Outcome, r.Error = measure.Failed, fmt.Sprintf("revert the later change %d first", later)
		} else {
			r = d.undoOne(j, c, p)
		}
		if r.Outcome == measure.Failed {
			blocked[c.target()] = c.Number
		}
		all = append(all, r)
	}
	return all
}

// settledAgain returns the result for a change that is undone already.
func settledAgain(c *change) measure.Changed {
	r := c.Changed
	if r.Outcome == measure.Undone {
		r.Outcome = measure.Settled
	}
	return r
}

// undoOne restores the value before a change, unless somebody else has
// changed it since.
func (d *Tuner) undoOne(j *journal, c *change, p pass) measure.Changed {
	now, err := d.machine.Read(c.Knob, c.Interface)
	first, all := p.first[c.target()]
	switch {
	case errors.Is(err, ErrUnknown) && d.gone(c):
		delete(p.seen, c.target()) // a new interface of that name has its own values
		return d.closed(j, c, measure.Settled, "it no longer exists, and the setting with it; if an interface was renamed, revert the setting there manually")
	case errors.Is(err, ErrUnknown):
		return failed(c, fault.Failf("remove "+j.path+" if it no longer exists: the setting is gone with it", "reading it: %w", err))
	case err != nil:
		return failed(c, fmt.Errorf("reading it: %w", err))
	case same(now, c.Before), all && same(now, first):
		return d.closed(j, c, measure.Settled, "")
	case !d.ours(j, c, now):
		return d.closed(j, c, measure.Foreign, d.foreign(j, c, now))
	}
	// The undo goes on where the journal cannot be written: the disk may be
	// full. Then the journal shows the change as open, and its next reader
	// finds the former value in place.
	size, undoing := j.size, c.undoing
	written := j.add(entry{Line: lineUndo, Number: c.Number})
	end := j.size
	moved := d.watch(j, c, p.seen)
	d.conf.step("set")
	if err := d.machine.Set(c.Knob, c.Interface, c.Before); err != nil {
		d.stays(j, c)
		return failed(c, errors.Join(setFailed(measure.Setting{Knob: c.Knob, Interface: c.Interface, Value: c.Before}, err), written))
	}
	d.conf.step("read")
	after, err := d.machine.Read(c.Knob, c.Interface)
	switch {
	case err != nil:
		return failed(c, fmt.Errorf("reading it back: %w", err))
	case !same(after, c.Before):
		d.stays(j, c)
		return failed(c, fmt.Errorf("the host accepted %s but reports %s", quote(c.Before), quote(after)))
	}
	if p.seen != nil {
		p.seen[c.target()] = after
	}
	moved()
	why := ""
	if d.afterBoot(j.record) && !p.back[c.target()] {
		why = d.cameBack(c)
	}
	if p.back != nil {
		p.back[c.target()] = true
	}
	r := d.closed(j, c, measure.Undone, why)
	if !c.closed && !undoing && j.size == end {
		j.takeBack(c, size)
	}
	return r
}

// stays records the value that a failed undo has left: any other value is
// somebody else's from then on.
func (d *Tuner) stays(j *journal, c *change) {
	if now, err := d.machine.Read(c.Knob, c.Interface); err == nil && checkValue(now) == nil {
		j.add(entry{Line: lineDone, Number: c.Number, Found: now}) // on an error the next try takes it for ours
	}
}

// gone reports whether the interface or route of a change no longer exists.
func (d *Tuner) gone(c *change) bool {
	m, ok := d.machine.(interface{ Gone(knob, iface string) bool })
	return ok && m.Gone(c.Knob, c.Interface)
}

// ours reports whether a value is what this change left, or any value where a
// crash interrupted the change. After a boot an interrupted change is over,
// and the boot sets its own values.
func (d *Tuner) ours(j *journal, c *change, now string) bool {
	switch {
	case d.afterBoot(j.record):
		return same(now, c.left()) || holds(c.Setting, now)
	case c.undoing:
		return true
	case c.made:
		return same(now, c.Found)
	case len(j.damaged) > 0: // the line that records the change may be lost
		return holds(c.Setting, now)
	}
	return true
}

// foreign returns the reason for leaving a value that is not ours.
func (d *Tuner) foreign(j *journal, c *change, now string) string {
	if d.afterBoot(j.record) {
		return fmt.Sprintf("since the boot it is %s, which thru did not set: it is left as it is (before the tuning it was %s)", quote(now), quote(c.Before))
	}
	return fmt.Sprintf("%v: thru set %s, it is now %s", ErrForeign, quote(c.left()), quote(now))
}

// left returns the value that thru left.
func (c *change) left() string {
	if c.made {
		return c.Found
	}
	return c.Value
}

// closed records that nothing is left to undo.
func (d *Tuner) closed(j *journal, c *change, outcome, why string) measure.Changed {
	if err := j.add(entry{Line: lineUndone, At: d.now(), Number: c.Number, Outcome: outcome, Why: why}); err != nil {
		r := c.Changed
		r.Outcome, r.Error = outcome, fault.Joined(why, err.Error())
		return r
	}
	return c.Changed
}

// failed returns a change that could not be undone; it stays open.
func failed(c *change, err error) measure.Changed {
	r := c.Changed
	r.Outcome, r.Error = measure.Failed, withHint(err)
	return r
}

func withHint(err error) string {
	if h := fault.Hint(err); h != "" {
		return err.Error() + " (" + h + ")"
	}
	return err.Error()
}

// watch records the side effects of a knob that moves others when it is set
// (an offload that others need, the number of channels). Where the kernel
// moves a value that this tuning has set, that is not somebody else's change:
// moved records the new values.
func (d *Tuner) watch(j *journal, about *change, seen map[target]string) (moved func()) {
	before := map[target]string{}
	for s, last := range seen {
		if s == about.target() {
			continue
		}
		if now, err := d.machine.Read(s.knob, s.iface); err == nil && same(now, last) {
			before[s] = now
		}
	}
	return func() {
		for s, old := range before {
			now, err := d.machine.Read(s.knob, s.iface)
			if err != nil || same(now, old) {
				continue
			}
			seen[s] = now
			for _, c := range j.open() { // the last change has left the value
				if c.target() == s {
					j.add(entry{Line: lineDone, Number: c.Number, Found: now}) // on an error it is later left alone, as foreign
					break
				}
			}
		}
	}
}

// cameBack returns what a person should know about a value of ours that a
// boot has set again.
func (d *Tuner) cameBack(c *change) string {
	if file := persistentIn(d.conf.Root, c.Setting); file != "" {
		return "the boot set it again from " + file + ": remove it there, or the next boot does the same"
	}
	return "the boot set it again: find what sets it on this host, or the next boot does the same"
}

// Recover undoes tunings that a crash has interrupted, and returns the
// changes. It does nothing where the tuning is still running.
func (d *Tuner) Recover() ([]measure.Changed, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tuning != nil || len(d.cutOff()) == 0 {
		return nil, nil
	}
	if err := d.conf.Possible(); err != nil {
		return nil, fmt.Errorf("tune: an interrupted tuning is not reverted: %w", err)
	}
	release, err := d.take()
	switch {
	case errors.Is(err, errElsewhere):
		return nil, fault.Failf("run thru tune --rollback when the other tuning has ended", "tune: an interrupted tuning is not reverted: %w", err)
	case errors.Is(err, ErrTaken):
		return nil, nil
	case err != nil:
		return nil, err
	}
	defer release()
	return d.recover()
}

// cutOff returns the journals of this host without an end; the caller holds
// the lock, so their processes are dead.
func (d *Tuner) cutOff() []record {
	return unit.Filtered(d.records(), func(r record) bool { return !r.ended })
}

// recover is Recover under the lock.
func (d *Tuner) recover() ([]measure.Changed, error) {
	return d.each(func(r record) bool { return !r.ended && d.isOf(r) == here })
}

// Rollback undoes all changes of the journals that are not undone, including
// those of ended tunings and of earlier boots. It fails where a tuning is
// running.
func (d *Tuner) Rollback() ([]measure.Changed, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tuning != nil {
		return nil, taken(d.tuning.owner)
	}
	ids, err := d.dir.numbers()
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	if err := d.conf.Possible(); err != nil {
		return nil, err
	}
	release, err := d.take()
	if err != nil {
		return nil, err
	}
	defer release()
	return d.each(func(r record) bool { return d.isOf(r) != elsewhere })
}

// each undoes all wanted journals of this host, the newest first. An
// unreadable journal is reported, and the others are undone all the same.
func (d *Tuner) each(wanted func(record) bool) (all []measure.Changed, err error) {
	ids, err := d.dir.numbers()
	if err != nil {
		return nil, err
	}
	stuck, p := map[target]bool{}, pass{first: map[target]string{}, back: map[target]bool{}} // stuck: targets with a later open change that is not undone
	for _, id := range ids {
		r, err := d.dir.read(id)
		if err == nil && d.isOf(r) == here && wanted(r) {
			for _, c := range r.open() { // the oldest comes last
				p.first[c.target()] = c.Before
			}
		}
	}
	for _, id := range ids {
		r, err := d.dir.read(id)
		if err == nil && !wanted(r) {
			for _, c := range r.open() {
				stuck[c.target()] = stuck[c.target()] || d.isOf(r) == here
			}
			continue
		}
		var some []measure.Changed
		switch {
		case err != nil:
		case d.isOf(r) == unknown:
			err = fault.Failf("revert its changes manually, then remove the file", "tune: the journal %s is damaged: its first line no longer names the host; thru reverts none of it", d.dir.path(id))
		default:
			some, err = d.undoJournal(id, stuck, p)
		}
		all = append(all, some...)
		if err != nil {
			all = append(all, measure.Changed{Outcome: measure.Failed, Error: withHint(err)})
		}
	}
	return all, nil
}

// undoJournal undoes the open changes of one journal, and closes it.
func (d *Tuner) undoJournal(id int64, stuck map[target]bool, p pass) (all []measure.Changed, err error) {
	j, err := openJournal(d.dir.path(id), id, d.conf.step)
	if err != nil {
		return nil, err
	}
	defer j.close()
	if d.isOf(j.record) == here {
		all = d.undoHere(j, stuck, p)
	} else {
		for _, c := range j.open() {
			all = append(all, d.closed(j, c, measure.Settled, "its network namespace no longer exists, and the setting with it"))
		}
	}
	if len(j.damaged) > 0 {
		all = append(all, measure.Changed{Outcome: measure.Failed, Error: fmt.Sprintf(
			"the journal %s is damaged (%s): thru does not revert those lines (revert them manually, then remove the file)", j.path, linesOf(j.damaged))})
	}
	if len(j.open()) > 0 {
		return all, nil // it has no end yet: the next call tries again
	}
	return all, d.settle(j)
}

// undoHere undoes the open changes of a journal of this host.
func (d *Tuner) undoHere(j *journal, stuck map[target]bool, p pass) []measure.Changed {
	which := map[int64]bool{}
	for _, c := range j.open() {
		which[c.Number] = !stuck[c.target()]
	}
	all := d.undo(j, which, p)
	for _, c := range j.open() {
		stuck[c.target()] = true
		if !which[c.Number] {
			all = append(all, failed(c, errors.New("a later change of it could not be reverted: revert that first")))
		}
	}
	return all
}

// linesOf names the first of some lines.
func linesOf(numbers []int) string {
	const most = 5
	text := "line " + strings.Trim(fmt.Sprint(numbers[:min(len(numbers), most)]), "[]")
	if n := len(numbers) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// isBusy reports whether a driver's error means that the device is in use.
func isBusy(err error) bool { return errors.Is(err, syscall.EBUSY) }
