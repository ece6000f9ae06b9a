package nfs

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"

	"thru/internal/transfer"
)

// Operations of NFS version 4.1 (RFC 8881, section 18).
const (
	opClose           = 4
	opCommit          = 5
	opGetAttr         = 9
	opGetHandle       = 10
	opLookup          = 15
	opOpen            = 18
	opPutHandle       = 22
	opPutRoot         = 24
	opRead            = 25
	opRemove          = 28
	opRename          = 29
	opSaveHandle      = 32
	opWrite           = 38
	opExchangeID      = 42
	opCreateSession   = 43
	opDestroySession  = 44
	opSequence        = 53
	opDestroyClient   = 57
	opReclaimComplete = 58
)

const (
	fourVersion, fourMinor = 4, 1
	maxFourHandle          = 128
	maxText                = 1024 // of a server's name
	sessionLength          = 16
	sequenceLength         = sessionLength + 20 // of the result of SEQUENCE

	// overhead is the most that a READ or WRITE has besides its data, in
	// bytes.
	overhead = 1024
	// mostSlots is the most calls in flight: the depth of pump.Fit.
	mostSlots = 64
)

// v4 is NFS version 4.1: a session on one connection. It requests no
// delegation and no layout, so the server never calls back.
type v4 struct {
	*link
	client  uint64
	session []byte    // nil: there is none yet
	slots   chan slot // free ones
	most    limits    // size of a reply and a request of the session
	server  string    // its own name
}

// slot is a place in the session for one call at a time (section 2.10.6).
type slot struct{ id, sequence uint32 }

// compound is a list of operations in one call.
type compound struct {
	name string // of the main operation
	ops  []uint32
	args []byte
}

// then adds an operation with its arguments.
func (c compound) then(op uint32, args []byte) compound {
	c.ops, c.args = append(c.ops, op), append(appendUint32(c.args, op), args...)
	return c
}

// at starts a compound on a file or folder.
func at(handle []byte, name string) compound {
	return compound{name: name}.then(opPutHandle, appendOpaque(nil, handle))
}

// FourAgreed is the detail of a session by version 4.1
// (transfer.Info.Details).
const FourAgreed = "NFS 4.1 over TCP"

func (v *v4) describe(info *transfer.Info) (calls int) {
	info.Client, info.Server, info.Details = "thru's own NFSv4.1 client", v.server, []string{FourAgreed}
	return cap(v.slots)
}

// begin creates a client and a session (sections 18.35, 18.36).
func (v *v4) begin(ctx context.Context) error {
	port := cmp.Or(v.cfg.Port, nfsPort)
	if err := v.connect(ctx, port); err != nil {
		return err
	}
	const nonPNFS, noProtection = 0x10000, 0 // EXCHGID4_FLAG_USE_NON_PNFS, SP4_NONE
	owner := rand.Text()
	args := appendOpaque([]byte(owner[:8]), "thru "+owner)
	r, err := v.alone(ctx, compound{name: "EXCHANGE_ID"}.then(opExchangeID, appendUint32(args, nonPNFS, noProtection, 0)))
	if err != nil {
		return err
	}
	sequence, err := v.parseExchange(r)
	if err != nil {
		return err
	}
	const callbacks = 0x40000000 // a program number of our own (RFC 5531, section 8.2); nobody calls it
	args = appendUint32(appendUint64(nil, v.client), sequence, 0)
	args = appendUint32(args, 0, largest+overhead, largest+overhead, 4096, 16, mostSlots, 0)
	args = appendUint32(args, 0, 4096, 4096, 0, 2, 1, 0) // of the backchannel, which servers check
	args = appendUint32(args, callbacks, 1, authNone)
	if r, err = v.alone(ctx, compound{name: "CREATE_SESSION"}.then(opCreateSession, args)); err != nil {
		return err
	}
	if err = v.parseSession(r); err != nil {
		return err
	}
	_, err = v.do(ctx, compound{name: "RECLAIM_COMPLETE"}.then(opReclaimComplete, appendUint32(nil, 0)), bulk{})
	return err
}

// parseExchange reads the result of EXCHANGE_ID: the client's number, and the
// server's name.
func (v *v4) parseExchange(r *reader) (sequence uint32, err error) {
	v.client, sequence = r.uint64(), r.uint32()
	r.uint32() // flags
	if r.uint32() != 0 || r.bad {
		return 0, errReply // protection that was not requested
	}
	r.uint64()
	r.opaque(maxText) // the server's owner
	r.opaque(maxText) // and scope
	if r.uint32() > 0 {
		r.opaque(maxText)
		v.server = string(r.opaque(maxText))
	}
	if r.bad {
		return 0, errReply
	}
	return sequence, nil
}

// parseSession reads the result of CREATE_SESSION.
func (v *v4) parseSession(r *reader) error {
	session := append([]byte(nil), r.bytes(sessionLength)...)
	r.bytes(12) // sequence, flags, padding of heads
	v.most = limits{writes: r.uint32(), reads: r.uint32()}
	r.bytes(8) // cached replies, operations
	slots := min(r.uint32(), mostSlots)
	if r.bad || slots == 0 || min(v.most.reads, v.most.writes) <= overhead {
		return errReply
	}
	v.session, v.slots = session, make(chan slot, slots)
	for id := range slots {
		v.slots <- slot{id, 1}
	}
	return nil
}

// leave ends the session, and the server's state for the client.
func (v *v4) leave(ctx context.Context) {
	if _, err := v.alone(ctx, compound{name: "DESTROY_SESSION"}.then(opDestroySession, v.session)); err == nil {
		_, _ = v.alone(ctx, compound{name: "DESTROY_CLIENTID"}.then(opDestroyClient, appendUint64(nil, v.client)))
	}
}

// alone executes operations outside of a session.
func (v *v4) alone(ctx context.Context, c compound) (*reader, error) {
	return patient(ctx, v.cfg.Timeout, func() (*reader, error) { return v.call(ctx, c, bulk{}, nil) })
}

// do executes operations in a slot of the session. The data is the last
// argument. The returned reader is at the first result with
// contents.
func (v *v4) do(ctx context.Context, c compound, data bulk) (*reader, error) {
	return patient(ctx, v.cfg.Timeout, func() (*reader, error) {
		select {
		case s := <-v.slots:
			return v.call(ctx, v.sequenced(c, s), data, func(reply reader) { v.free(s, &reply) })
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-v.rpc.over:
			return nil, fmt.Errorf("%s: %w", c.name, errBroken)
		}
	})
}

// sequenced returns a compound in a slot. The server need not keep its reply,
// since there is only one connection.
func (v *v4) sequenced(c compound, s slot) compound {
	args := appendUint32(append([]byte(nil), v.session...), s.sequence, s.id, uint32(cap(v.slots)-1), 0)
	all := compound{name: c.name}.then(opSequence, args)
	all.ops, all.args = append(all.ops, c.ops...), append(all.args, c.args...)
	return all
}

// free releases a slot when its reply has come. Its number advances where the
// server has accepted it.
func (v *v4) free(s slot, r *reader) {
	if accepted(r) == nil && results(r, []uint32{opSequence}) == nil {
		s.sequence++
	}
	v.slots <- s
}

func (v *v4) call(ctx context.Context, c compound, data bulk, arrived func(reader)) (*reader, error) {
	args := append(appendUint32(nil, 0, fourMinor, uint32(len(c.ops))), c.args...) // without a tag
	r, err := v.rpc.call(ctx, procedure{nfsProgram, fourVersion, 1, c.name}, args, data, arrived)
	if err != nil {
		return nil, err
	}
	if err := results(r, c.ops); err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	return r, nil
}

// results reads up to the first result with contents.
func results(r *reader, ops []uint32) error {
	whole := r.uint32()
	r.opaque(maxText) // the tag
	if r.uint32() == 0 && whole != 0 && !r.bad {
		return status{whole, true} // none of the operations was executed
	}
	for _, op := range ops {
		if err := take(r, op); err != nil {
			return err
		}
		switch op {
		case opSequence:
			r.bytes(sequenceLength)
		case opPutHandle, opPutRoot, opSaveHandle, opLookup, opReclaimComplete, opDestroySession, opDestroyClient:
		default:
			return nil
		}
	}
	if r.bad {
		return errReply
	}
	return nil
}

// take reads the header of the next result.
func take(r *reader, op uint32) error {
	got, code := r.uint32(), r.uint32()
	switch {
	case r.bad || got != op:
		return errReply
	case code != 0:
		return status{code, true}
	}
	return nil
}
