// Package pcapfile reads and writes files of captured packets: pcap
// (draft-ietf-opsawg-pcap) and pcapng (draft-ietf-opsawg-pcapng), in all byte
// orders, in memory that does not grow with the file.
package pcapfile

import (
	"errors"
	"fmt"
	"io"

	"thru/internal/capture/frame"
	"thru/internal/fault"
)

// Interface describes one interface of a file.
type Interface struct {
	Name        string // empty where the file has none
	Description string
	Link        frame.LinkType
	Snap        int    // bytes kept of a packet; 0: all
	Dropped     *int64 // packets dropped since a buffer was full (isb_ifdrop, isb_osdrop), where the file has them
}

// Record is one packet of a file. Data is valid until the next packet is
// read.
type Record struct {
	Number    int64 // from 1
	TimeNs    int64 // since 1970; for a packet without a time, that of the packet before
	Interface int   // index into Reader.Interfaces
	WireBytes int   // length on the wire
	Data      []byte
}

// Limits for a file.
const (
	mostData       = 256<<10 - 64 // bytes kept of a packet: a larger one is cut, as if by a snap length
	mostRecord     = 16 << 20     // captured bytes of a packet; more means damage
	mostWire       = 1 << 30      // bytes of a packet on the wire, to fit in an int of 32 bits
	mostInterfaces = 16 << 10     // over all sections: a packet of a later interface ends the reading
	mostText       = 256          // of a name or description
)

// Errors of reading, for errors.Is. The packets read before stay valid.
var (
	ErrTruncated = errors.New("the file is truncated") // within a packet or a block
	ErrDamaged   = errors.New("the file is damaged")   // it has impossible values
	ErrLimit     = errors.New("the file has more interfaces than thru reads")
	ErrFormat    = errors.New("neither pcap nor pcapng")
)

// Reader streams the packets of a file.
type Reader struct {
	in         *source
	format     format
	interfaces []Interface
	last       Record // last one read; its number is 0 before the first
	err        error  // that ended the reading
}

// format reads the packets of one file format.
type format interface {
	// next fills in all of a record but its number, and leaves the time of
	// the record before where a packet has none. It returns io.EOF where the
	// file ends between two packets.
	next(r *Reader, record *Record) error
}

// NewReader starts reading a file of any format, uncompressed or compressed
// by gzip or zstd. It returns ErrFormat for anything else.
func NewReader(in io.Reader) (*Reader, error) {
	s, err := unpacked(in)
	if err != nil {
		return nil, err
	}
	r := &Reader{in: s}
	magic, err := s.peek(4)
	if errors.Is(err, io.EOF) && len(magic) == 0 {
		return nil, fmt.Errorf("pcapfile: the file is empty: %w", ErrFormat)
	}
	if err != nil {
		return nil, r.located(err)
	}
	switch {
	case string(magic) == sectionMagic:
		r.format = &pcapng{}
	default:
		r.format, err = newPcap(r, magic)
	}
	if err != nil {
		return nil, r.located(err)
	}
	return r, nil
}

// Next returns the next packet, io.EOF at the end of the file. Any other
// error ends the reading too, and has the position: ErrTruncated, ErrDamaged,
// ErrLimit, or the error of the underlying reader.
func (r *Reader) Next() (Record, error) {
	if r.err != nil {
		return Record{}, r.err
	}
	if err := r.format.next(r, &r.last); err != nil {
		r.err = r.located(err)
		return Record{}, r.err
	}
	r.last.Number++
	return r.last, nil
}

// Interfaces returns the interfaces described so far, over all sections. Drop
// counts come at the end of a section.
func (r *Reader) Interfaces() []Interface { return r.interfaces }

// located adds to an error where reading ended. A clean end stays io.EOF.
func (r *Reader) located(err error) error {
	switch {
	case err == io.EOF, errors.Is(err, ErrFormat):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = fmt.Errorf("%w, cut", ErrTruncated)
	}
	return fmt.Errorf("pcapfile: %w after packet %d, at byte %d%s", err, r.last.Number, r.in.at, r.in.packed)
}

// sized sets a packet's length on the wire. Some programs leave it 0, or
// count the frame's check sequence in one length only.
func (record *Record) sized(captured, wire uint32) error {
	if captured > mostRecord || captured > wire && captured > mostData {
		return fmt.Errorf("%w: %d bytes captured of a packet of %d", ErrDamaged, captured, wire)
	}
	record.WireBytes = int(min(max(captured, wire), mostWire))
	return nil
}

// others lists the magic bytes of other files that people mistake for
// captures.
var others = []struct{ magic, name string }{
	{"snoop\x00\x00\x00", "a capture of snoop"},
	{"GMBU", "a capture of Microsoft's Network Monitor"},
	{"RTSS", "a capture of an old Network Monitor"},
	{"\x04\x22\x4d\x18", "compressed by lz4"},
	{"\xfd7zXZ", "compressed by xz"},
	{"BZh", "compressed by bzip2"},
	{"PK\x03\x04", "a ZIP archive"},
}

// unknown returns the error for a file of another format.
func unknown(begin []byte) error {
	for _, o := range others {
		if len(begin) >= len(o.magic) && string(begin[:len(o.magic)]) == o.magic {
			return fault.Usagef("unpack it, or convert it with editcap -F pcapng", "pcapfile: %w: it is %s", ErrFormat, o.name)
		}
	}
	return fault.Usagef("give a file of tcpdump -w, dumpcap or Wireshark", "pcapfile: %w: it begins with %q", ErrFormat, begin[:min(len(begin), 16)])
}
