package trace

import (
	"errors"
	"io"

	"thru/internal/capture/frame"
	"thru/internal/capture/pcapfile"
	"thru/internal/measure"
)

// Progress is told of the packets read so far. Reading ends where it returns an
// error, and returns that.
type Progress func(packets int64) error

// progressPackets is how often Progress is called.
const progressPackets = 1 << 16

// ErrMerged says that two captures are mixed in a file as if they were of one
// interface, so that nothing tells which packet was captured where.
var ErrMerged = errors.New("trace: the packets of two places are mixed in the file")

// Read makes a Capture of all packets of a file. Where the file is damaged or
// cut, what was read is told, and the damage with it.
func Read(r *pcapfile.Reader, o Options, progress Progress) (*measure.Capture, error) {
	b := New(o)
	var p frame.Packet
	var damage error
	for {
		record, err := r.Next()
		if err == io.EOF {
			break
		}
		if isEnd(err) {
			damage = err
			break
		}
		if err != nil {
			return nil, err
		}
		b.AddRecord(r, &record, &p)
		if progress != nil && record.Number%progressPackets == 0 {
			if err := progress(record.Number); err != nil {
				return nil, err
			}
		}
	}
	c := b.Capture()
	if b.merged {
		return nil, ErrMerged
	}
	if damage != nil {
		c.Damage = damage.Error()
	}
	if c.Packets == 0 && errors.Is(damage, pcapfile.ErrLimit) {
		return nil, damage
	}
	b.describe(c, r.Interfaces())
	return c, nil
}

// isEnd reports whether an error ends the file before its end, so that what was
// read before is to be used.
func isEnd(err error) bool {
	return errors.Is(err, pcapfile.ErrTruncated) || errors.Is(err, pcapfile.ErrDamaged) || errors.Is(err, pcapfile.ErrLimit)
}

// AddRecord decodes a record of a file into p and adds it.
func (b *Builder) AddRecord(r *pcapfile.Reader, record *pcapfile.Record, p *frame.Packet) {
	if n := len(record.Data); n < record.WireBytes {
		b.snap = max(b.snap, n)
	}
	p.Number, p.TimeNs, p.Interface, p.WireBytes = record.Number, record.TimeNs, record.Interface, record.WireBytes // Decode sets the rest
	v := frame.Decode(r.Interfaces()[record.Interface].Link, record.Data, p)
	b.Add(p, v)
}

// describe says of the interfaces what the file knows. The snap length is that of
// the packets that were cut, whatever stands in the header: a program that cuts
// the packets of a file may leave the one of old, and most cut none at 64 KiB.
func (b *Builder) describe(c *measure.Capture, faces []pcapfile.Interface) {
	if len(faces) == 1 {
		c.Interface = faces[0].Name
	}
	if b.face >= 0 {
		c.Interface = faces[b.face].Name
	}
	c.Snap = b.snap
	for _, f := range faces {
		if f.Dropped == nil {
			continue
		}
		if c.Dropped == nil {
			c.Dropped = new(int64)
		}
		*c.Dropped += *f.Dropped
	}
}
