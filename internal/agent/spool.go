package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/stat"
)

// Bounds of a spool: above them the oldest file is removed.
const (
	spoolFiles = 256
	spoolBytes = 64 << 20
)

// File names in the spool folder: a complete document, and one being written.
const (
	spoolEnding = ".thru.json"
	spoolPart   = ".part-"
)

// Delays between delivery attempts while they fail.
const (
	spoolRetry   = time.Second
	spoolLongest = time.Minute
)

// Spool keeps the evidence of sessions in a folder until the client that measured
// or the controller has it. Each file is a document (docs/result.md) with the view
// of this end, which `thru report` can read. A full disk causes a warning and
// disturbs no measurement.
type Spool struct {
	dir    string
	warn   func(text string)
	most   int
	room   int64
	wake   chan struct{} // capacity 1: there may be something to deliver
	change func()        // called when Trouble or Waiting changes; nil: none

	mu      sync.Mutex
	files   []spooled // oldest first
	trouble string
}

// spooled is one file.
type spooled struct {
	id    string // file name without the ending
	bytes int64
	held  bool // its client may still fetch it
}

// OpenSpool takes over what an earlier process left in the folder. It calls warn for
// each lost document, and once when documents cannot be kept.
func OpenSpool(dir string, warn func(text string)) *Spool {
	s := &Spool{dir: dir, warn: warn, most: spoolFiles, room: spoolBytes, wake: make(chan struct{}, 1)}
	entries, err := os.ReadDir(dir) // sorted by name, and so by time
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.failed(err)
	}
	for _, e := range entries {
		id, ours := strings.CutSuffix(e.Name(), spoolEnding)
		info, err := e.Info()
		switch {
		case strings.HasPrefix(e.Name(), spoolPart): // incomplete after a crash
			os.Remove(filepath.Join(dir, e.Name()))
		case ours && err == nil && info.Mode().IsRegular() && validSpoolName(id):
			s.files = append(s.files, spooled{id: id, bytes: info.Size()})
		}
	}
	s.makeRoom(0)
	return s
}

// validSpoolName reports whether a name is one of this package: a controller
// accepts no other.
func validSpoolName(id string) bool {
	odd := func(r rune) bool { return !(r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r == '.' || r == '-') }
	return id != "" && len(id) <= 64 && !strings.ContainsFunc(id, odd)
}

// OnChange sets the function to call when Waiting or Trouble changes.
func (s *Spool) OnChange(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change = f
}

// Waiting returns the number of documents that wait for the controller.
func (s *Spool) Waiting() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		if !f.held {
			n++
		}
	}
	return n
}

// Trouble returns why the last document could not be kept; empty: it was.
func (s *Spool) Trouble() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trouble
}

// hold keeps a document that its client may still fetch, and returns its id;
// empty where it could not be kept.
func (s *Spool) hold(doc *measure.Document) string {
	defer s.changed()
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := json.Marshal(doc)
	if err == nil && int64(len(text)) > s.room {
		err = fmt.Errorf("a document of %d bytes is larger than the whole spool", len(text))
	}
	if err != nil {
		s.failed(err)
		return ""
	}
	s.makeRoom(int64(len(text)))
	id := doc.StartedAt.UTC().Format("20060102T150405.000000000Z") + "-" + newID()[:8]
	if err := s.write(id, text); err != nil {
		s.failed(err)
		return ""
	}
	s.trouble = ""
	s.files = append(s.files, spooled{id: id, bytes: int64(len(text)), held: true})
	return id
}

// write writes a file completely and to the disk before it gets its name.
func (s *Spool) write(id string, text []byte) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(s.dir, spoolPart+"*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = cmp.Or(err, f.Sync())
	if err = cmp.Or(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), s.path(id))
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// failed records that a document could not be kept, and warns of a new reason.
func (s *Spool) failed(err error) {
	news := s.trouble == ""
	var path *fs.PathError
	if errors.As(err, &path) { // the file name differs each time
		err = path.Err
	}
	s.trouble = fmt.Sprintf("evidence cannot be stored in %s: %v", s.dir, err)
	if news {
		s.warn(s.trouble + "; results that a lost client has not fetched will be lost")
	}
}

// makeRoom removes the oldest until that many bytes fit.
func (s *Spool) makeRoom(bytes int64) {
	count := len(s.files)
	if bytes > 0 {
		count++
	}
	for _, f := range s.files {
		bytes += f.bytes
	}
	gone := 0
	for ; gone < len(s.files) && (count > s.most || bytes > s.room); gone++ {
		count--
		bytes -= s.files[gone].bytes
		os.Remove(s.path(s.files[gone].id))
	}
	s.files = slices.Delete(s.files, 0, gone)
	if gone > 0 {
		s.warn(fmt.Sprintf("the spool in %s is full: thru dropped its %d oldest documents", s.dir, gone))
	}
}

func (s *Spool) path(id string) string { return filepath.Join(s.dir, id+spoolEnding) }

// drop removes a document that its client or the controller has.
func (s *Spool) drop(id string) {
	defer s.changed()
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.index(id); i >= 0 {
		s.files = slices.Delete(s.files, i, i+1)
		os.Remove(s.path(id)) // on failure the next start finds it, and it is delivered again
	}
}

// release marks a document for delivery to the controller: its client has not fetched it.
func (s *Spool) release(id string) {
	s.mu.Lock()
	if i := s.index(id); i >= 0 {
		s.files[i].held = false
	}
	s.mu.Unlock()
	s.changed()
	s.Wake()
}

func (s *Spool) index(id string) int {
	return slices.IndexFunc(s.files, func(f spooled) bool { return f.id == id })
}

func (s *Spool) changed() {
	s.mu.Lock()
	report := s.change
	s.mu.Unlock()
	if report != nil {
		report()
	}
}

// Wake makes Deliver try at once: the controller is reachable again.
func (s *Spool) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Deliver sends documents to the controller, oldest first, until the context ends.
// Send returns nil when the controller has stored the document; else it is sent
// again later.
func (s *Spool) Deliver(ctx context.Context, send func(context.Context, bus.Spooled) error) {
	wait := spoolRetry
	for ctx.Err() == nil {
		again := (<-chan time.Time)(nil)
		if id := s.next(); id != "" {
			if s.deliver(ctx, id, send) == nil {
				wait = spoolRetry
				continue
			}
			again = time.After(wait)
			wait = min(2*wait, spoolLongest)
		}
		select {
		case <-ctx.Done():
		case <-again:
		case <-s.wake:
		}
	}
}

// next returns the id of the oldest document that no client may fetch any more; "" for none.
func (s *Spool) next() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		if !f.held {
			return f.id
		}
	}
	return ""
}

func (s *Spool) deliver(ctx context.Context, id string, send func(context.Context, bus.Spooled) error) error {
	text, err := os.ReadFile(s.path(id))
	if err != nil || len(text) == 0 { // it can never be delivered
		s.warn(fmt.Sprintf("the spooled document %s is empty or unreadable and is dropped: %v", id, err))
		s.drop(id)
		return nil
	}
	if err := send(ctx, bus.Spooled{ID: id, Body: text}); err != nil {
		return err
	}
	s.drop(id)
	return nil
}

// keep writes the evidence of an ended session to the spool, unless it is empty.
func (s *session) keep() {
	spool := s.agent.conf.Spool
	if spool == nil || s.unwanted.Load() {
		return
	}
	r := s.seen(s.inner.Evidence(), nil)
	if r.Evidence.TotalBytes == 0 && len(r.Evidence.Bins) == 0 {
		return
	}
	s.spooled = spool.hold(s.document(r))
}

// settle drops the kept document where its client has it, else releases it to the controller.
func (s *session) settle() {
	switch spool := s.agent.conf.Spool; {
	case spool == nil || s.spooled == "":
	case s.unwanted.Load():
		spool.drop(s.spooled)
	default:
		spool.release(s.spooled)
	}
}

// document returns a result with the view of this end alone.
func (s *session) document(r bus.CollectReply) *measure.Document {
	own, far := s.spec.To, s.spec.From
	if s.sends {
		own, far = far, own
	}
	facts := s.agent.facts.read(s.agent.conf.Host, longestAge)
	doc := &measure.Document{
		Schema: measure.Schema, Thru: s.agent.conf.Version, Command: "serve", StartedAt: s.opened, ElapsedNs: int64(time.Since(s.opened)),
		EndPoints: []measure.EndPoint{{Name: own, Thru: s.agent.conf.Version, Facts: &facts, Labels: s.agent.conf.Labels}},
		Error: &measure.Error{
			Message:  "agent: the client did not fetch this result: it has the evidence of " + s.agent.conf.Name + " only, one end of two",
			Hint:     "use the client's result, if it exists: it has both ends",
			ExitCode: fault.Failed,
		},
		Missing: []measure.NotChecked{{Fact: "evidence", Why: "of " + far + ": only " + own + " stored its evidence"}},
	}
	if far != own {
		doc.EndPoints = append(doc.EndPoints, measure.EndPoint{Name: far, Addr: r.Evidence.PeerAddr})
	}
	known := map[string]*measure.Facts{own: &facts}
	r.Evidence.EndPoint = own
	doc.Cells = append(doc.Cells, s.cell(s.spec.From, s.spec.To, known, &r.Evidence, r.Far))
	if r.Back != nil {
		r.Back.EndPoint = own
		doc.Cells = append(doc.Cells, s.cell(s.spec.To, s.spec.From, known, r.Back, r.FarBack))
	}
	return doc
}

// cell returns one direction: what this end saw of it, and what a foreign program
// reported of the other end.
func (s *session) cell(from, to string, facts map[string]*measure.Facts, seen, reported *measure.Evidence) measure.Cell {
	flow := measure.Flow{From: from, To: to, Sender: reported, Receiver: seen}
	if seen.Sends {
		flow.Sender, flow.Receiver = seen, reported
	}
	run := measure.Run{StartedAt: s.opened, Partial: seen.MeasuredNs < s.spec.Duration, Flows: []measure.Flow{flow}}
	if e := flow.Receiver; e != nil && e.MeasuredNs > 0 && s.spec.Traffic == measure.Bulk {
		run.Goodput = new(float64(e.Bytes) * 8e9 / float64(e.MeasuredNs))
	}
	spec := s.spec
	spec.From, spec.To = from, to
	c := measure.Cell{
		From: from, To: to, Protocol: spec.Protocol, Streams: spec.Streams, Window: spec.Window, Length: spec.Length,
		Spec: spec, AtOnce: 1, Runs: []measure.Run{run},
	}
	stat.Summarise(&c, facts, stat.Link{})
	return c
}
