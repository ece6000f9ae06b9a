package bus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"thru/internal/fault"
)

// Bounds of the delivery of a result.
const (
	spoolBytes    = 64 << 20  // of a result
	spoolPart     = 256 << 10 // of a message
	spoolTries    = 6         // of a part, and of the offer
	offerPatience = 3 * time.Second
	spoolPatience = 10 * time.Second // for the ack of a part, and of the whole when it is written
)

// spoolMessage is a part of a result; the first one offers it.
type spoolMessage struct {
	Transfer string `json:"transfer"` // random for each attempt
	ID       string `json:"id"`
	Size     int    `json:"size_bytes"`
	SHA256   string `json:"sha256"` // of the whole, hexadecimal
	Offset   int    `json:"offset_bytes"`
	Part     []byte `json:"part,omitempty"` // empty in the offer
}

// Deliver sends a result to a controller. It returns nil only when the controller
// has it on its disk; else the result has to be delivered again. The receiver sets
// Agent and Name of the result. Concurrent calls run one after the other.
func (p *Post) Deliver(ctx context.Context, r Spooled) error {
	switch {
	case !validSpoolID(r.ID):
		return fmt.Errorf("bus: delivering a result: %q is not a valid id", r.ID)
	case len(r.Body) == 0 || len(r.Body) > spoolBytes:
		return fmt.Errorf("bus: delivering the result %s: %d bytes are not a valid size", r.ID, len(r.Body))
	}
	select {
	case p.delivers <- struct{}{}:
		defer func() { <-p.delivers }()
	case <-ctx.Done():
		return fmt.Errorf("bus: delivering the result %s: %w", r.ID, context.Cause(ctx))
	}
	sum := sha256.Sum256(r.Body)
	m := spoolMessage{Transfer: newID(), ID: r.ID, Size: len(r.Body), SHA256: hex.EncodeToString(sum[:])}
	acks := make(chan ackMessage, 4)
	p.mu.Lock()
	p.acks[m.Transfer] = acks
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.acks, m.Transfer)
	}()
	if err := p.deliver(ctx, m, r.Body, acks); err != nil {
		return fault.Failf("no action needed: thru stores it here and delivers it later", "bus: delivering the result %s to %s: %w", r.ID, p.uplink.where, err)
	}
	return nil
}

// deliver offers a result, and sends each part after the ack of the one before.
func (p *Post) deliver(ctx context.Context, m spoolMessage, body []byte, acks <-chan ackMessage) error {
	to, tries := tokenAny, 0
	for {
		a, err := p.deliverPart(ctx, spoolSubject(p.ID(), to), m, acks)
		if errors.Is(err, ErrTimeout) && tries < spoolTries {
			tries++
			continue // the part or its ack was lost
		}
		switch {
		case err != nil:
			return err
		case a.Error != "":
			return errors.New(printable(a.Error, maxSentence))
		case a.Done:
			return nil
		case !validKey(a.Controller) || a.Next < 0 || a.Next >= len(body):
			return errors.New("the controller's answer is not valid")
		}
		to, tries = a.Controller, 0
		m.Offset, m.Part = a.Next, body[a.Next:min(a.Next+spoolPart, len(body))]
	}
}

// deliverPart sends one message and waits for its ack.
func (p *Post) deliverPart(ctx context.Context, subject string, m spoolMessage, acks <-chan ackMessage) (ackMessage, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return ackMessage{}, err
	}
	if !p.nc.IsConnected() {
		return ackMessage{}, errNotConnected
	}
	if err := p.nc.PublishMsg(&nats.Msg{Subject: subject, Reply: ackSubject(p.ID(), m.Transfer), Data: body}); err != nil {
		return ackMessage{}, err
	}
	patience := spoolPatience
	if len(m.Part) == 0 {
		patience = offerPatience
	}
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		select {
		case a := <-acks:
			if a.Error == "" && !a.Done && a.Next == m.Offset && len(m.Part) > 0 {
				continue // a repeated ack of the part before
			}
			return a, nil
		case <-limit.C:
			return ackMessage{}, fmt.Errorf("%w from a controller within %v", ErrTimeout, patience)
		case <-p.ctx.Done():
			return ackMessage{}, ErrClosed
		case <-ctx.Done():
			return ackMessage{}, context.Cause(ctx)
		}
	}
}

// validSpoolID reports whether an id can name a result, and a file.
func validSpoolID(id string) bool {
	if id == "" || len(id) > 128 || id[0] == '.' {
		return false
	}
	for _, c := range []byte(id) {
		if c <= ' ' || c > '~' || c == '/' || c == '\\' {
			return false
		}
	}
	return true
}
