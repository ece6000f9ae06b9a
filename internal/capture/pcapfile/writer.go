package pcapfile

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Writer writes packets as pcapng, with times in nanoseconds, with one call
// of the underlying io.Writer for each packet.
type Writer struct {
	to         io.Writer
	interfaces int
	packets    int64
	lastNs     int64
	block      []byte // block in progress
}

// application is the program name in the file.
const application = "thru"

// NewWriter starts a file of packets of these interfaces.
func NewWriter(to io.Writer, interfaces []Interface) (*Writer, error) {
	w := &Writer{to: to, interfaces: len(interfaces)}
	w.begin(sectionBlock)
	w.u32(orderMagic)
	w.u16(1, 0)                      // version
	w.u32(1<<32-1, 1<<32-1)          // section length: not known
	w.option(4, []byte(application)) // shb_userappl
	w.endOptions()
	err := w.end()
	for _, i := range interfaces {
		if err == nil {
			err = w.describe(i)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("pcapfile: beginning a file: %w", err)
	}
	return w, nil
}

// describe writes an interface.
func (w *Writer) describe(i Interface) error {
	w.begin(interfaceBlock)
	w.u16(uint16(i.Link), 0)
	w.u32(uint32(i.Snap))
	if i.Name != "" {
		w.option(optionName, []byte(i.Name[:min(len(i.Name), mostText)]))
	}
	if i.Description != "" {
		w.option(optionDescription, []byte(i.Description[:min(len(i.Description), mostText)]))
	}
	w.option(optionResolution, []byte{nanoseconds})
	w.endOptions()
	return w.end()
}

// Write writes a packet. It does not write the number: packets count in
// order.
func (w *Writer) Write(r Record) error {
	if r.Interface < 0 || r.Interface >= w.interfaces {
		return fmt.Errorf("pcapfile: writing packet %d: interface %d of %d", w.packets+1, r.Interface, w.interfaces)
	}
	w.begin(packetBlock)
	w.u32(uint32(r.Interface))
	w.time(r.TimeNs)
	w.u32(uint32(len(r.Data)), uint32(max(r.WireBytes, len(r.Data))))
	w.bytes(r.Data)
	if err := w.end(); err != nil {
		return fmt.Errorf("pcapfile: writing packet %d: %w", w.packets+1, err)
	}
	w.packets, w.lastNs = w.packets+1, r.TimeNs
	return nil
}

// Close writes the drop counts of the interfaces, where they are known. It
// does not close the io.Writer.
func (w *Writer) Close(interfaces []Interface) error {
	for number, i := range interfaces[:min(len(interfaces), w.interfaces)] {
		if i.Dropped == nil {
			continue
		}
		w.begin(statisticsBlock)
		w.u32(uint32(number))
		w.time(w.lastNs)
		w.option(optionLost, binary.LittleEndian.AppendUint64(nil, uint64(*i.Dropped)))
		w.endOptions()
		if err := w.end(); err != nil {
			return fmt.Errorf("pcapfile: ending a file: %w", err)
		}
	}
	return nil
}

// begin starts a block; end fills in its length.
func (w *Writer) begin(kind uint32) {
	w.block = w.block[:0]
	w.u32(kind, 0)
}

// end fills in the length and writes the block.
func (w *Writer) end() error {
	length := uint32(len(w.block) + 4)
	binary.LittleEndian.PutUint32(w.block[4:], length)
	w.u32(length)
	_, err := w.to.Write(w.block)
	return err
}

func (w *Writer) u16(numbers ...uint16) {
	for _, n := range numbers {
		w.block = binary.LittleEndian.AppendUint16(w.block, n)
	}
}

func (w *Writer) u32(numbers ...uint32) {
	for _, n := range numbers {
		w.block = binary.LittleEndian.AppendUint32(w.block, n)
	}
}

// bytes writes bytes, padded to a multiple of four.
func (w *Writer) bytes(b []byte) {
	w.block = append(w.block, b...)
	for range -len(b) & 3 {
		w.block = append(w.block, 0)
	}
}

// time writes a time: its upper half, then its lower one. A time before 1970
// becomes 0.
func (w *Writer) time(ns int64) {
	ns = max(ns, 0)
	w.u32(uint32(ns>>32), uint32(ns))
}

func (w *Writer) option(code uint16, value []byte) {
	w.u16(code, uint16(len(value)))
	w.bytes(value)
}

func (w *Writer) endOptions() { w.u16(0, 0) }
