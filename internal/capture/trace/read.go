package trace

import (
	"errors"
	"io"

	"thru/internal/capture/frame"
	"thru/internal/capture/pcapfile"
	"thru/internal/measure"
)

// Progress gets the number of packets read so far. Reading ends where it
// returns an error, and returns that error.
type Progress func(packets int64) error

// progressPackets is how often Progress is called.
const progressPackets = 1 << 16

// ErrMerged means that a file mixes two captures as if they were of one
// interface, so that it is not known which packet was captured where.
var ErrMerged = errors.New("trace: the file mixes the packets of two capture points")

// Read makes a Capture of all packets of a file. For a damaged or cut file it
// returns the readable part, and the damage.
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

// isEnd reports whether an error ends the file early, so that the packets
// before it are used.
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

// describe sets the file's facts about the interfaces. The snap length is
// that of the packets that were cut, not that of the header: a program that
// cuts the packets of a file may keep the old one, and most cut none at 64
// KiB.
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
