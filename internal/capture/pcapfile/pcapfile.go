// Package pcapfile reads and writes files of captured packets: pcap
// (draft-ietf-opsawg-pcap) and pcapng (draft-ietf-opsawg-pcapng), in all byte
// orders, in memory that does not grow with the file.
package pcapfile

import "thru/internal/capture/frame"

// Interface is what a file says of one interface that packets were captured at.
type Interface struct {
	Name        string // empty where the file does not say
	Description string
	Link        frame.LinkType
	Snap        int    // bytes kept of a packet; 0: all
	Dropped     *int64 // packets that were lost for want of room (isb_ifdrop, isb_osdrop), where the file says
}

// Record is one packet of a file. Data is valid until the next one is read.
type Record struct {
	Number    int64 // from 1
	TimeNs    int64 // since 1970
	Interface int   // index into Reader.Interfaces
	WireBytes int   // as it passed
	Data      []byte
}
