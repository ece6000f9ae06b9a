package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"thru/internal/capture/pcapfile"
	"thru/internal/capture/trace"
	"thru/internal/fault"
	"thru/internal/measure"
)

// File is one capture that was read.
type File struct {
	Name     string
	Capture  *measure.Capture
	Recorder *trace.Recorder // to compare it with another one
}

// Load reads a capture to its end and follows its connections. progress may
// be nil; it gets the number of packets so far. Load uses the readable part
// of a damaged file, and Capture.Damage says where that ends; a file without
// a readable packet is an error, and so is one without TCP.
func Load(ctx context.Context, name string, r io.Reader, o trace.Options, progress func(packets int64)) (File, error) {
	in, err := pcapfile.NewReader(r)
	if err != nil {
		return File{}, fault.Usagef(cmp.Or(fault.Hint(err), "give a file of tcpdump -w, dumpcap or Wireshark"), "%s: %w", name, err)
	}
	o.Record = trace.NewRecorder()
	c, err := trace.Read(in, o, func(packets int64) error {
		if progress != nil {
			progress(packets)
		}
		return ctx.Err()
	})
	switch {
	case ctx.Err() != nil:
		return File{}, fault.Failf("", "%s: interrupted", name)
	case errors.Is(err, trace.ErrMerged):
		return File{}, fault.Usagef("give each of the two captures as a separate file, or capture at one interface instead of any",
			"%s: the file contains each packet twice, as captured at two points, and does not identify the points", name)
	case errors.Is(err, pcapfile.ErrLimit):
		return File{}, fault.Failf("write its packets to a file of fewer interfaces", "%s: %w", name, err)
	case err != nil:
		return File{}, fmt.Errorf("%s: %w", name, err)
	}
	c.File = name
	switch {
	case c.Packets == 0 && c.Damage != "":
		return File{}, fault.Failf("capture again: the file has no complete packet", "%s: %s", name, c.Damage)
	case c.Packets == 0:
		return File{}, fault.Failf("check the filter and the interface of the capture", "%s: the capture has no packets", name)
	case len(c.Conns) == 0 && c.TCP > 0:
		return File{}, fault.Failf("", "%s: none of its %d packets belongs to the connections of the test", name, c.Packets)
	case len(c.Conns) == 0:
		return File{}, noTCP(name, c)
	}
	trace.Place(c)
	return File{Name: name, Capture: c, Recorder: o.Record}, nil
}

// noTCP reports what a capture holds instead.
func noTCP(name string, c *measure.Capture) error {
	var others []string
	for _, t := range c.Others {
		others = append(others, fmt.Sprintf("%s: %d", t.What, t.Packets))
	}
	return fault.Failf("capture TCP: with -i of the connection's interface, and a filter that includes TCP",
		"%s: none of its %d packets is TCP (%s)", name, c.Packets, strings.Join(others, ", "))
}
