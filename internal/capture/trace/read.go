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
		if errors.Is(err, pcapfile.ErrTruncated) || errors.Is(err, pcapfile.ErrDamaged) {
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
	if damage != nil {
		c.Damage = damage.Error()
	}
	b.describe(c, r.Interfaces())
	return c, nil
}

// AddRecord decodes a record of a file into p and adds it.
func (b *Builder) AddRecord(r *pcapfile.Reader, record *pcapfile.Record, p *frame.Packet) {
	if n := len(record.Data); n < record.WireBytes {
		b.snap = max(b.snap, n)
	}
	*p = frame.Packet{Number: record.Number, TimeNs: record.TimeNs, Interface: record.Interface, WireBytes: record.WireBytes}
	v := frame.Decode(r.Interfaces()[record.Interface].Link, record.Data, p)
	b.Add(p, v)
}

// describe says of the interfaces what the file knows. The snap length is that of
// the packets that were cut: a program that cuts the packets of a file may leave
// the one of old in its header.
func (b *Builder) describe(c *measure.Capture, faces []pcapfile.Interface) {
	if len(faces) == 1 {
		c.Interface, c.Snap = faces[0].Name, faces[0].Snap
	}
	if b.face >= 0 {
		c.Interface = faces[b.face].Name
	}
	if b.snap > 0 && (c.Snap == 0 || b.snap < c.Snap) {
		c.Snap = b.snap
	}
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
