package alert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// mostKept bounds the messages that wait for a sink; the oldest are left out.
	mostKept = 1000
	// firstPause and longestPause are between two attempts at a sink that fails.
	firstPause   = 5 * time.Second
	longestPause = 10 * time.Minute
	// repeatEvery is how often lasting alarms are sent again to sinks that would end them.
	repeatEvery = 2 * time.Minute
	// tick is how often the outbox looks what is due.
	tick = time.Second
)

// Outbox sends each message to all sinks, in order, until they take it.
type Outbox struct {
	Save    func(waiting []byte) error // stores what waits for the next run; nil: nobody does
	Warn    func(error)                // a sink begins to fail, or messages were left out
	Done    func(sink string)          // a sink that failed takes messages again
	Lasting func() []Message           // alarms that are not over; nil: none

	mu      sync.Mutex
	sinks   []Sink
	waiting map[string][]Message // by the name of the sink
	lines   map[string]*line
}

// line is how a sink does.
type line struct {
	busy     bool
	failed   time.Duration // pause after the last attempt; 0: it takes messages
	next     time.Time     // attempt
	repeated time.Time
}

// Open takes over what waits from the last run, as Save got it; nil: nothing. It must be called first.
func (o *Outbox) Open(waiting []byte, sinks []Sink) error {
	o.sinks, o.waiting, o.lines = sinks, map[string][]Message{}, map[string]*line{}
	if waiting == nil {
		return nil
	}
	if err := json.Unmarshal(waiting, &o.waiting); err != nil {
		return fmt.Errorf("alert: reading waiting alarms: %w", err)
	}
	return nil
}

// Change replaces the sinks. What waits for those that stay is sent; the others get nothing any more.
func (o *Outbox) Change(sinks []Sink) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sinks = sinks
	maps.DeleteFunc(o.waiting, func(name string, _ []Message) bool {
		return !slices.ContainsFunc(sinks, func(s Sink) bool { return s.Name == name })
	})
}

// Put has a message sent. It returns an error if the message could not be saved; it is sent all the same.
func (o *Outbox) Put(m Message) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	var left error
	for _, s := range o.sinks {
		all := append(o.waiting[s.Name], m)
		if len(all) > mostKept {
			all = all[len(all)-mostKept:]
			left = fmt.Errorf("alert: more than %d alarms wait for %s: the oldest are left out", mostKept, s.Name)
		}
		o.waiting[s.Name] = all
	}
	return errors.Join(left, o.save())
}

// save saves what waits. The caller holds mu.
func (o *Outbox) save() error {
	if o.Save == nil {
		return nil
	}
	text, err := json.Marshal(o.waiting)
	if err == nil {
		err = o.Save(text)
	}
	if err != nil {
		return fmt.Errorf("alert: keeping waiting alarms: %w", err)
	}
	return nil
}

// Run sends until the context ends. What was not sent waits for the next run.
func (o *Outbox) Run(ctx context.Context) {
	var sending sync.WaitGroup
	defer sending.Wait()
	every := time.NewTicker(tick)
	defer every.Stop()
	for ctx.Err() == nil {
		now := time.Now()
		o.mu.Lock()
		for _, s := range o.sinks {
			l := o.lines[s.Name]
			if l == nil {
				l = new(line)
				o.lines[s.Name] = l
			}
			if l.busy || now.Before(l.next) {
				continue
			}
			if s.repeats && o.Lasting != nil && now.Sub(l.repeated).Abs() >= repeatEvery && len(o.waiting[s.Name]) == 0 {
				l.repeated, o.waiting[s.Name] = now, o.Lasting()
			}
			if len(o.waiting[s.Name]) > 0 { // a sink that hangs does not delay the others
				l.busy = true
				sending.Go(func() { o.send(ctx, s, l) })
			}
		}
		o.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-every.C:
		}
	}
}

// send sends what waits for a sink, until it fails.
func (o *Outbox) send(ctx context.Context, s Sink, l *line) {
	for {
		o.mu.Lock()
		all := o.waiting[s.Name]
		if len(all) == 0 || ctx.Err() != nil {
			l.busy = false
			o.mu.Unlock()
			return
		}
		o.mu.Unlock()
		once, cancel := context.WithTimeout(ctx, sendTime)
		err := s.Send(once, all[0])
		cancel()
		if err != nil && ctx.Err() == nil {
			o.fail(s, l, err)
			return
		}
		if err == nil {
			o.sent(s, l, all[0])
		}
	}
}

// fail notes that a sink did not take a message.
func (o *Outbox) fail(s Sink, l *line, err error) {
	if l.failed == 0 {
		o.Warn(fmt.Errorf("alert: an alarm waits for %s: %w", s.Name, err))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	l.failed = min(max(2*l.failed, firstPause), longestPause)
	l.busy, l.next = false, time.Now().Add(l.failed)
}

// sent removes a message. While it was sent, older ones may have been left out.
func (o *Outbox) sent(s Sink, l *line, m Message) {
	if l.failed > 0 && o.Done != nil {
		o.Done(s.Name)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	l.failed = 0
	all := o.waiting[s.Name]
	if i := slices.IndexFunc(all, func(x Message) bool { return x.At.Equal(m.At) && x.Alarm.ID == m.Alarm.ID }); i >= 0 {
		o.waiting[s.Name] = slices.Delete(slices.Clone(all), i, i+1)
	}
	if err := o.save(); err != nil {
		o.Warn(err)
	}
}
