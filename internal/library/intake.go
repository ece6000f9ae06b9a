package library

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/report"
	"thru/internal/unit"
)

// notifier receives the events of a serving command. console.EventLog is one.
type notifier interface {
	Notify(kind, text string, more map[string]any)
	Once(topic, kind, text string, more map[string]any)
	Forget(topic string)
	Warn(text string)
}

// Intake stores the results that hosts deliver: in Into, or where that is nil, in a folder for each host, so that none can crowd out another.
type Intake struct {
	Dir  string
	Into interface { // a store, or a *Sender
		Put(ctx context.Context, doc *measure.Document, title string) (id string, err error)
	}
	Notify notifier
	mu     sync.Mutex // one result is written at a time
	stored atomic.Int64
}

// bytesOfHost bounds the stored results of one host; the oldest are removed.
const bytesOfHost = 256 << 20

// Stored returns how many results were stored since the start.
func (i *Intake) Stored() int64 { return i.stored.Load() }

// Take stores a result. It returns nil when the result is on the disk, or unusable.
func (i *Intake) Take(s bus.Spooled) error {
	who := cmp.Or(s.Name, s.Agent)
	doc, err := headOf(s.Body)
	if err != nil { // on an error the agent would deliver it again without end
		i.Notify.Warn(fmt.Sprintf("dropped a delivery from %s that is not a result: %v", who, err))
		return nil
	}
	path, err := i.put(who, s)
	if waits := (*Waits)(nil); errors.As(err, &waits) {
		i.Notify.Once("archive", "warning", waits.Error(), nil)
		path, err = waits.File, nil
	}
	if err != nil {
		i.Notify.Once("intake", "warning", fmt.Sprintf("cannot store the results of hosts; they stay on the hosts: %v", err), nil)
		return fault.Failf("free space on the controller's disk", "library: keeping a result: %w", err)
	}
	i.stored.Add(1)
	i.Notify.Forget("intake")
	i.Notify.Notify("result", fmt.Sprintf("received a late result from %s: %s; stored in %s", who, about(doc), path),
		map[string]any{"host": s.Name, "agent": s.Agent, "kept_in": path})
	return nil
}

// put stores a result and returns where. One of a newer thru is kept in the folder, for a thru that reads it.
func (i *Intake) put(who string, s bus.Spooled) (string, error) {
	i.mu.Lock() // one after the other: a large one takes several times its length in memory
	defer i.mu.Unlock()
	if i.Into != nil {
		if doc, err := measure.Decode(s.Body); err == nil {
			ctx, cancel := context.WithTimeout(context.Background(), putTime)
			defer cancel()
			return i.Into.Put(ctx, doc, report.Answer(doc))
		}
	}
	return put(filepath.Join(i.Dir, safeName(who)), safeName(s.ID), s.Body, bytesOfHost)
}

// sendEvery is how often a controller sends on what waits.
const sendEvery = 15 * time.Second

// Follow sends on what waits, until the context ends.
func (i *Intake) Follow(ctx context.Context, s *Sender) {
	for {
		sent, err := s.Send(ctx)
		if sent > 0 {
			i.Notify.Forget("archive")
			i.Notify.Notify("sent", fmt.Sprintf("%s that waited in %s: sent to the database", unit.Plural(sent, "result"), s.file), map[string]any{"results": sent})
		}
		if err != nil && ctx.Err() == nil {
			i.Notify.Once("archive", "warning", fmt.Sprintf("results wait in %s until the database takes them: %v", s.file, err), nil)
		}
		select {
		case <-time.After(sendEvery):
		case <-ctx.Done():
			return
		}
	}
}

// head is the part of a delivered result that is decoded. The whole may take a
// thousand times its length in memory.
type head struct {
	Schema    string    `json:"schema"`
	Command   string    `json:"command"`
	StartedAt time.Time `json:"started_at"`
	Cells     firstCell `json:"cells"`
}

// firstCell holds the ends of the first cell of an array.
type firstCell struct{ From, To string }

// UnmarshalJSON implements json.Unmarshaler: it decodes only the first element.
func (f *firstCell) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if open, err := d.Token(); err != nil || open != json.Delim('[') || !d.More() {
		return err
	}
	var first struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
	err := d.Decode(&first)
	*f = firstCell(first)
	return err
}

// headOf rejects what no thru can have written. It accepts another version of the
// schema: a newer thru reads it.
func headOf(text []byte) (h head, err error) {
	if err := json.Unmarshal(text, &h); err != nil {
		return h, err
	}
	if name, _, _ := strings.Cut(measure.Schema, "/"); !strings.HasPrefix(h.Schema, name+"/") {
		return h, errors.New("it has no schema of a result")
	}
	return h, nil
}

// about describes a result in a line.
func about(h head) string {
	if h.Cells == (firstCell{}) {
		return fault.Short(h.Command)
	}
	return fmt.Sprintf("%s, %s -> %s", h.StartedAt.Local().Format("2006-01-02 15:04:05"), fault.Short(h.Cells.From), fault.Short(h.Cells.To))
}
