package worker

import (
	"fmt"
	"slices"

	"thru/internal/fault"
	"thru/internal/measure"
)

// path is one implementation of moving data at one end of a flow; every path of a system passes the contract suite.
type path struct {
	name string
	io   streamRunner
	// can returns why the path does not work here, at this end; nil means that it always works.
	can func(f *flow) error
}

// streamRunner moves the data of one stream in its own goroutine.
type streamRunner interface {
	// prepare prepares the connection before the barrier.
	prepare(f *flow, s *stream) error
	// move sends until f.stop or until the stream's share is sent, or receives until io.EOF.
	move(f *flow, s *stream) error
	// sendEnough, at the receiver, tells the sender that the measured time is over.
	sendEnough(f *flow)
	// heardEnough, at the sender, is true once that message has arrived. It does not block.
	heardEnough(f *flow) bool
	// finish, at the sender, ends the stream and waits for the peer to close it.
	finish(f *flow, s *stream)
	// interrupt ends a blocked call of the stream from another goroutine.
	interrupt(s *stream)
}

// choose returns the data path of this end: the requested one if it works here, else the first of the others that works, with the reason. A forced path is
// used or refused.
func choose(c openCommand, f *flow) (path, []measure.NotChecked, error) {
	all := paths(c)
	want := c.wanted()
	var missing []measure.NotChecked
	if i := slices.IndexFunc(all, func(p path) bool { return p.name == want }); i > 0 {
		p := all[i]
		all = append([]path{p}, slices.Delete(all, i, i+1)...)
	} else if i < 0 && want != "" {
		return path{}, nil, unknownPath(want)
	}
	for _, p := range all {
		var err error
		if c.without(p.name) {
			err = fmt.Errorf("switched off")
		} else if p.can != nil {
			err = p.can(f)
		}
		if err == nil {
			return p, missing, nil
		}
		if p.name == want && c.Spec.IOForced {
			return path{}, nil, fault.Failf("omit --io: thru then chooses one that works here, and reports it", "worker: data path %q does not work at this end: %w", c.Spec.IO, err)
		}
		missing = append(missing, measure.NotChecked{Fact: "io." + p.name, Why: err.Error()})
	}
	return path{}, nil, unknownPath(want)
}

func unknownPath(name string) error {
	return fault.Usagef("list the data paths: thru test --help", "worker: data path %q does not exist on this system", name)
}

// wanted returns this end's path for the requested one: with zero-copy sending the receiver copies, and on the lean path it discards the data.
func (c openCommand) wanted() string {
	switch {
	case c.Spec.IO == measure.IOLean && c.Sends:
		return measure.IOSendfile
	case c.Spec.IO == measure.IOSendfile && !c.Sends:
		return measure.IOCopy
	default:
		return c.Spec.IO
	}
}

// without reports whether a test has disabled a feature.
func (c openCommand) without(feature string) bool { return slices.Contains(c.Without, feature) }
