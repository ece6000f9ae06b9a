package bus

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"thru/internal/fault"
)

// Last tokens of the subjects of a run: thru.run.RUN.head, .plan, .end, .step.N, and .part.N.LEASE.I of a step
// that does not fit one message.
const (
	wordHead = "head"
	wordPlan = "plan"
	wordEnd  = "end"
	wordStep = "step"
	wordPart = "part"

	headerLease = "Thru-Lease" // of the owner that recorded a step
	headerParts = "Thru-Parts" // number of the parts that hold it; absent: the entry holds it
)

// unpackedBytes bounds what a record unpacks to.
const unpackedBytes = 256 << 20

// ErrOwned is the error of a run that another process owns.
var ErrOwned = errors.New("another process has taken over the run")

// ErrUnshared is the error of a fleet without shared runs: one of a single controller, or of
// a NATS cluster without JetStream.
var ErrUnshared = errors.New("the fleet shares no runs")

// Ledger holds the runs that the operators of a NATS cluster share: each has one owner at a
// time, by a lease that expires, and each finished step is recorded once.
type Ledger struct{ js jetStream }

// Ledger returns the shared runs of the fleet, or ErrUnshared. Hosts must have been called.
func (f *Fleet) Ledger() (*Ledger, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.shares {
		return nil, fmt.Errorf("bus: %s: %w", f.uplink.where, ErrUnshared)
	}
	return &Ledger{jetStream{f.nc}}, nil
}

// SharedRun is a run that this process owns.
type SharedRun struct {
	js    jetStream
	id    string // of the run
	lease string // random; identifies this owner

	ctx    context.Context // ends with the ownership; its cause is the reason
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	seq     uint64    // of the lease's entry
	renewed time.Time // when it was last confirmed
}

// Owner is what a lease says about the owner of a run.
type Owner struct {
	Lease string    `json:"lease"`
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
}

// Begin shares a new run, with what another process needs to continue it. id is a token of
// letters, digits, - and _.
func (l *Ledger) Begin(ctx context.Context, id string, head, plan []byte) (*SharedRun, error) {
	s, err := l.own(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, x := range []struct {
		word string
		body []byte
	}{{wordPlan, plan}, {wordHead, head}} { // the head last: it makes the run known
		packed := pack(x.body)
		if int64(len(packed)) > s.js.nc.MaxPayload()-headerRoom {
			err = fmt.Errorf("bus: its %s has %d bytes, more than fit a message", x.word, len(packed))
		} else {
			_, err = s.js.put(ctx, s.subject(x.word), nil, packed, 0)
		}
		if err != nil {
			s.Release()
			return nil, fmt.Errorf("bus: sharing the run %s: %w", id, err)
		}
	}
	return s, nil
}

// headerRoom is what headers and subject of a message may need of its size, in bytes.
const headerRoom = 4 << 10

// Lost lists the runs that have not ended and have no owner.
func (l *Ledger) Lost(ctx context.Context) ([]string, error) {
	begun, err := l.js.subjects(ctx, streamRuns, runSubject, "."+wordHead)
	if err != nil || len(begun) == 0 {
		return nil, err
	}
	ended, err := l.js.subjects(ctx, streamRuns, runSubject, "."+wordEnd)
	if err != nil {
		return nil, err
	}
	owned, err := l.js.subjects(ctx, streamLeases, leaseSubject, "")
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(begun, func(id string) bool { return slices.Contains(ended, id) || slices.Contains(owned, id) }), nil
}

// TakeOver makes this process the owner of a run that has none, and returns what Begin was
// given and the finished steps by their number.
func (l *Ledger) TakeOver(ctx context.Context, id string) (s *SharedRun, head, plan []byte, steps map[int][]byte, err error) {
	if s, err = l.own(ctx, id); err != nil {
		return nil, nil, nil, nil, err
	}
	head, err = s.read(ctx, s.subject(wordHead))
	if err == nil {
		plan, err = s.read(ctx, s.subject(wordPlan))
	}
	var numbers []string
	if err == nil {
		numbers, err = l.js.subjects(ctx, streamRuns, s.subject(wordStep)+".", "")
	}
	steps = map[int][]byte{}
	for _, n := range numbers {
		number, nerr := strconv.Atoi(n)
		if err == nil && nerr == nil {
			steps[number], err = s.read(ctx, s.subject(wordStep+"."+n))
		}
	}
	if err != nil {
		s.Release()
		return nil, nil, nil, nil, fmt.Errorf("bus: taking over the run %s: %w", id, err)
	}
	return s, head, plan, steps, nil
}

// own takes the lease of a run that has no owner.
func (l *Ledger) own(ctx context.Context, id string) (*SharedRun, error) {
	s := &SharedRun{js: l.js, id: id, lease: newID()}
	if tokens(id, 1) == nil || !validName(id) {
		return nil, fmt.Errorf("bus: %q cannot name a run", id)
	}
	var err error
	s.renewed = time.Now()
	if s.seq, err = l.js.put(ctx, leaseSubject+id, nil, s.owner(), 0); errors.Is(err, errChanged) {
		err = ErrOwned
	}
	if err != nil {
		return nil, fmt.Errorf("bus: owning the run %s: %w", id, err)
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.wg.Go(s.renew)
	return s, nil
}

func (s *SharedRun) owner() []byte {
	host, _ := os.Hostname()
	return jsonOf(Owner{s.lease, host, os.Getpid(), time.Now()})
}

func (s *SharedRun) subject(rest string) string { return runSubject + s.id + "." + rest }

// renew keeps the lease. It ends the ownership before the lease can expire.
func (s *SharedRun) renew() {
	tick := time.NewTicker(leaseRenew)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.Confirm(s.ctx)
		case <-s.ctx.Done():
			return
		}
	}
}

// Confirm renews the lease now: it returns nil if this process owns the run.
func (s *SharedRun) Confirm(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	begun := time.Now()
	seq, err := s.js.put(ctx, leaseSubject+s.id, nil, s.owner(), s.seq)
	if errors.Is(err, errChanged) {
		seq, err = s.mine(ctx) // the reply to an earlier renewal may be lost
	}
	switch {
	case err == nil:
		s.seq, s.renewed = seq, begun
	case errors.Is(err, ErrOwned):
		s.cancel(fault.Failf("the process that owns it now finishes it", "bus: the run %s: %w", s.id, ErrOwned))
	case time.Since(s.renewed) > leaseTrust:
		s.cancel(fault.Failf("check the NATS cluster; a `thru run --stand-by` that reaches it finishes the run, without the recorded steps",
			"bus: the cluster has not confirmed for %v that this process owns the run %s: %w: %w", leaseTrust, s.id, ErrLost, err))
	}
	return err
}

// Owned waits until the cluster confirms that this process owns the run, or until it is lost.
func (s *SharedRun) Owned(ctx context.Context) error {
	return s.until(ctx, func(ctx context.Context) error { return s.Confirm(ctx) })
}

// until repeats a request until it succeeds, or the ownership ends.
func (s *SharedRun) until(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.ctx, func() { cancel(s.Err()) })()
	for {
		if do(ctx) == nil {
			return nil
		}
		select {
		case <-time.After(askNobody):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// mine returns the sequence number of the lease if this process still has it.
func (s *SharedRun) mine(ctx context.Context) (uint64, error) {
	e, err := s.js.last(ctx, streamLeases, leaseSubject+s.id)
	if errors.Is(err, errNoEntry) {
		return 0, ErrOwned // it has expired: another may have begun
	}
	var owner Owner
	if err == nil && (json.Unmarshal(e.Data, &owner) != nil || owner.Lease != s.lease) {
		err = ErrOwned
	}
	return e.Seq, err
}

// Lost is closed when this process does not own the run any more; Err has the reason.
func (s *SharedRun) Lost() <-chan struct{} { return s.ctx.Done() }

// Err returns why this process does not own the run any more; nil while it does.
func (s *SharedRun) Err() error { return context.Cause(s.ctx) }

// Record stores the result of a step, and returns the one that counts: that of an earlier owner
// if it has recorded the step meanwhile. It tries until the ownership ends.
func (s *SharedRun) Record(ctx context.Context, step int, body []byte) ([]byte, error) {
	subject, packed := s.subject(fmt.Sprintf("%s.%d", wordStep, step)), pack(body)
	err := s.until(ctx, func(ctx context.Context) error {
		err := s.record(ctx, subject, step, packed)
		if errors.Is(err, errChanged) {
			var other []byte
			if other, err = s.read(ctx, subject); err == nil {
				body = other
			}
		}
		return err
	})
	return body, err
}

// record stores a packed step: its parts, then the entry that names them.
func (s *SharedRun) record(ctx context.Context, subject string, step int, packed []byte) error {
	header := nats.Header{headerLease: {s.lease}}
	if len(packed) > partBytes {
		n := 0
		for part := range slices.Chunk(packed, partBytes) {
			_, err := s.js.put(ctx, s.part(step, s.lease, n), nil, part, 0)
			if err != nil && !errors.Is(err, errChanged) { // it is there from the attempt before
				return err
			}
			n++
		}
		header.Set(headerParts, strconv.Itoa(n))
		packed = nil
	}
	_, err := s.js.put(ctx, subject, header, packed, 0)
	return err
}

func (s *SharedRun) part(step int, lease string, n int) string {
	return s.subject(fmt.Sprintf("%s.%d.%s.%d", wordPart, step, lease, n))
}

// read returns an entry of the run, unpacked.
func (s *SharedRun) read(ctx context.Context, subject string) ([]byte, error) {
	e, err := s.js.last(ctx, streamRuns, subject)
	if err != nil {
		return nil, err
	}
	packed := e.Data
	if n, _ := strconv.Atoi(e.header(headerParts)); n > 0 {
		step, _ := strconv.Atoi(subject[strings.LastIndexByte(subject, '.')+1:])
		for i := range n {
			part, err := s.js.last(ctx, streamRuns, s.part(step, e.header(headerLease), i))
			if err != nil {
				return nil, err
			}
			packed = append(packed, part.Data...)
		}
	}
	return unpack(packed)
}

// End records that the run has ended, so that nobody takes it over, and gives the ownership up.
func (s *SharedRun) End(ctx context.Context) error {
	defer s.Release()
	if s.ctx.Err() != nil {
		return s.Err()
	}
	return s.until(ctx, func(ctx context.Context) error {
		_, err := s.js.put(ctx, s.subject(wordEnd), nil, s.owner(), 0)
		if errors.Is(err, errChanged) { // it is there from an attempt before
			return nil
		}
		return err
	})
}

// Release gives the ownership up. Another process may take the run over when the lease has
// expired.
func (s *SharedRun) Release() {
	s.cancel(fmt.Errorf("bus: the run %s: %w", s.id, ErrClosed))
	s.wg.Wait()
}

// pack compresses a record.
func pack(body []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(body) // a buffer does not fail
	w.Close()
	return out.Bytes()
}

// unpack is the inverse of pack, for untrusted bytes.
func unpack(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("bus: unpacking a record: %w", err)
	}
	body, err := io.ReadAll(io.LimitReader(r, unpackedBytes))
	if err != nil {
		return nil, fmt.Errorf("bus: unpacking a record: %w", err)
	}
	return body, nil
}
