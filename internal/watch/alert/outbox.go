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
	// RepeatEvery is how often to call Repeat.
	RepeatEvery = 2 * time.Minute
)

// Outbox sends each message to all sinks, in order, until they take it.
type Outbox struct {
	Sinks []Sink
	Save  func(waiting []byte) error // stores what waits for the next run; nil: nobody does
	Warn  func(error)                // a sink begins to fail, or messages were left out
	Done  func(Sink)                 // a sink that failed takes messages again

	mu      sync.Mutex
	waiting map[string][]Message // by the name of the sink
	wake    []chan struct{}
	stop    func() // ends what Run serves, which then serves the sinks of the moment
}

// Open takes over what waits from the last run, as Save got it; nil: nothing. It must be called first.
func (o *Outbox) Open(waiting []byte) error {
	o.waiting = map[string][]Message{}
	o.Change(o.Sinks)
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
	o.Sinks, o.wake = sinks, nil
	for range sinks {
		o.wake = append(o.wake, make(chan struct{}, 1))
	}
	if o.stop != nil {
		maps.DeleteFunc(o.waiting, func(name string, _ []Message) bool {
			return !slices.ContainsFunc(sinks, func(s Sink) bool { return s.Name() == name })
		})
		o.stop()
	}
}

// Put has a message sent. It returns an error if the message could not be saved; it is sent all the same.
func (o *Outbox) Put(m Message) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	var left error
	for i, s := range o.Sinks {
		all := append(o.waiting[s.Name()], m)
		if len(all) > mostKept {
			all = all[len(all)-mostKept:]
			left = fmt.Errorf("alert: more than %d alarms wait for %s: the oldest are left out", mostKept, s.Name())
		}
		o.waiting[s.Name()] = all
		select {
		case o.wake[i] <- struct{}{}:
		default: // it will look anyway
		}
	}
	return errors.Join(left, o.save())
}

// save saves what waits.
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

// Waiting returns how many messages wait for a sink.
func (o *Outbox) Waiting(s Sink) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.waiting[s.Name()])
}

// Repeat sends alarms that go on to Alertmanager, if it has none waiting: it ends alerts that are not repeated.
func (o *Outbox) Repeat(ctx context.Context, alarms []Message) {
	o.mu.Lock()
	sinks := o.Sinks
	o.mu.Unlock()
	for _, s := range sinks {
		a, is := s.(Alertmanager)
		if !is || o.Waiting(s) > 0 {
			continue
		}
		for _, m := range alarms {
			ctx, cancel := context.WithTimeout(ctx, sendTime)
			err := a.Send(ctx, m)
			cancel()
			if err != nil {
				break // the next repetition comes soon, and the alert lasts longer
			}
		}
	}
}

// Run sends until the context ends. What was not sent waits for the next run.
func (o *Outbox) Run(ctx context.Context) {
	for ctx.Err() == nil {
		var wg sync.WaitGroup
		o.mu.Lock()
		some, stop := context.WithCancel(ctx)
		o.stop = stop
		for i, s := range o.Sinks {
			wake := o.wake[i]
			wg.Go(func() { o.serve(some, s, wake) })
		}
		o.mu.Unlock()
		<-some.Done()
		wg.Wait()
	}
}

// serve sends to one sink: another that hangs does not delay it.
func (o *Outbox) serve(ctx context.Context, s Sink, wake <-chan struct{}) {
	pause, failing := firstPause, false
	for ctx.Err() == nil {
		m, any := o.next(s)
		if !any {
			select {
			case <-wake:
			case <-ctx.Done():
			}
			continue
		}
		sctx, cancel := context.WithTimeout(ctx, sendTime)
		err := s.Send(sctx, m)
		cancel()
		if err == nil {
			o.sent(s, m)
			if failing && o.Done != nil {
				o.Done(s)
			}
			pause, failing = firstPause, false
			continue
		}
		if ctx.Err() != nil {
			return
		}
		if !failing {
			failing = true
			o.Warn(fmt.Errorf("alert: an alarm waits for %s: %w", s.Name(), err))
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, longestPause)
		case <-ctx.Done():
		}
	}
}

// next returns the oldest message that waits.
func (o *Outbox) next(s Sink) (Message, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if all := o.waiting[s.Name()]; len(all) > 0 {
		return all[0], true
	}
	return Message{}, false
}

// sent removes a message. While it was sent, older ones may have been left out.
func (o *Outbox) sent(s Sink, m Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.waiting[s.Name()]
	if i := slices.IndexFunc(all, func(x Message) bool { return x.At.Equal(m.At) && x.Alarm.ID == m.Alarm.ID }); i >= 0 {
		o.waiting[s.Name()] = slices.Delete(all, i, i+1)
	}
	if err := o.save(); err != nil {
		o.Warn(err)
	}
}
