package worker

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"thru/internal/fault"
	"thru/internal/host"
	"thru/internal/measure"
)

// A frame on the pipes between agent and worker is a big-endian u32 length, a type byte and a payload: JSON for rare frames, binary for samples, so that a
// sample allocates nothing in the worker.
const (
	frameOpen    = 'O' // to the worker: openCommand
	frameStart   = 'S' // to the worker: startCommand
	frameTake    = 'A' // to the worker: takeCommand
	frameEnough  = 'E' // to the worker: the test is over at the far end too
	frameReady   = 'R' // from the worker: readyReply
	frameJoined  = 'C' // from a listening worker: all streams are connected
	frameSample  = 'T' // from the worker: sample
	frameStopped = 'Q' // from an adopting worker that leads: it has stopped sending
	frameDone    = 'D' // from the worker: doneReply; nothing follows
)

// maxFrame bounds a frame: 128 two-way streams with TCP_INFO are about 120 KB.
const maxFrame = 1 << 20

type openCommand struct {
	Spec    measure.Spec `json:"spec"`
	Sends   bool         `json:"sends"`
	Dials   bool         `json:"dials"`
	Targets []string     `json:"targets,omitempty"`
	Token   string       `json:"token"`
	Addrs   []string     `json:"addrs,omitempty"`
	Device  string       `json:"device,omitempty"`
	First   int          `json:"first_port"`
	Last    int          `json:"last_port"`
	Offset  int          `json:"port_offset"` // where in the range to start
	// The peer's range, where this end dials: for the error when nothing answers.
	PeerFirst int   `json:"peer_first_port"`
	PeerLast  int   `json:"peer_last_port"`
	RateBps   int64 `json:"rate_bps,omitempty"` // goodput that this end allows
	Deadline  int64 `json:"deadline_ns"`        // for the connection setup
	// Adopt is set where an engine makes the connections.
	Adopt *adoption `json:"adopt,omitempty"`
	// Features that a test disables, as if the kernel did not have them.
	Without []string `json:"without,omitempty"`
}

type startCommand struct {
	RampNs int64                `json:"ramp_ns"`
	Since  int64                `json:"since_ns,omitzero"` // Session.DataSince
	Near   *host.PlacementFacts `json:"near,omitempty"`
}

// wireError carries an error with its hint over the pipe.
type wireError struct {
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Code    int    `json:"code"`

	Reason fault.Reason `json:"reason,omitempty"`
}

type readyReply struct {
	Port    int                 `json:"port,omitempty"`
	Local   string              `json:"local,omitempty"`
	Peer    string              `json:"peer,omitempty"`
	Conns   []measure.Addresses `json:"conns,omitempty"` // of the streams
	RTT     *measure.RTT        `json:"rtt,omitempty"`
	Skipped []string            `json:"skipped,omitempty"`
	Error   *wireError          `json:"error,omitempty"`
}

// doneReply ends the worker's life: what the kernel granted each socket, and why it ended early if it did.
type doneReply struct {
	Streams []measure.Stream     `json:"streams"`
	Missing []measure.NotChecked `json:"not_checked,omitempty"`
	Latency *measure.Latency     `json:"latency,omitempty"`
	Delays  string               `json:"delays,omitempty"` // Evidence.DelayHistogram
	IO      string               `json:"io"`
	CPUs    string               `json:"cpus,omitempty"` // CPUs that the process was confined to
	Error   *wireError           `json:"error,omitempty"`
}

// frameWriter writes whole frames from several goroutines.
type frameWriter struct {
	mu  sync.Mutex
	w   io.Writer
	buf []byte
}

func (f *frameWriter) json(kind byte, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("worker: encoding frame %c: %w", kind, err)
	}
	return f.raw(kind, b)
}

func (f *frameWriter) raw(kind byte, payload []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.buf = binary.BigEndian.AppendUint32(f.buf[:0], uint32(len(payload)))
	f.buf = append(f.buf, kind)
	f.buf = append(f.buf, payload...)
	if _, err := f.w.Write(f.buf); err != nil {
		return fmt.Errorf("worker: writing frame %c: %w", kind, err)
	}
	return nil
}

// readFrame reads one frame; io.EOF means that the other side has closed.
func readFrame(r io.Reader) (kind byte, payload []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return 0, nil, io.EOF
		}
		return 0, nil, fmt.Errorf("worker: reading frame: %w", err)
	}
	n := binary.BigEndian.Uint32(head[:4])
	if n > maxFrame {
		return 0, nil, fmt.Errorf("worker: reading frame: %d bytes exceed the limit of %d", n, maxFrame)
	}
	payload = make([]byte, n)
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, nil, fmt.Errorf("worker: reading frame: %w", err)
	}
	return head[4], payload, nil
}

// Reasons for a sample; several can hold at once.
const (
	atInterval = 1 << iota // an interval of live figures is over
	atMark                 // the measured time begins
	atBin                  // a statistical second is over
	atFinish               // the measured time is over
	atClose                // the connections are about to close
)

// notKnown marks a counter that this system does not provide.
const notKnown = int64(-1)

// sample is a reading of all streams. Counters are cumulative since the connect.
type sample struct {
	Why     byte
	At      time.Duration // since the mark; negative before it
	Mark    int64         // start of the measured time by the wall clock, which agent and worker share: ns since 1970
	Usage   usage
	Streams []streamSample
}

// usage is the worker's resource use since it began (getrusage(2)). UserNs is notKnown where the system does not report it.
type usage struct {
	UserNs, SystemNs       int64
	Voluntary, Involuntary int64 // context switches
	PeakBytes              int64 // resident
}

// CPUTime returns the time on a CPU of this process since it began; 0: the system does not report it.
func CPUTime() time.Duration {
	var u usage
	if u.read(); u.UserNs == notKnown {
		return 0
	}
	return time.Duration(u.UserNs + u.SystemNs)
}

func (u *usage) fields() [5]*int64 {
	return [5]*int64{&u.UserNs, &u.SystemNs, &u.Voluntary, &u.Involuntary, &u.PeakBytes}
}

type streamSample struct {
	Bytes, Calls        int64
	WallNs, RunNs, Wait int64 // of the thread since it started; RunNs and Wait may be notKnown
	More                [cCounters]int64
	Info                []byte // struct tcp_info as the kernel returned it
}

// streamHead is the size of an encoded streamSample without Info.
const streamHead = 8*(5+cCounters) + 2

// append appends the encoded s to b.
func (s *sample) append(b []byte) []byte {
	b = append(b, s.Why)
	b = binary.BigEndian.AppendUint64(b, uint64(s.At))
	b = binary.BigEndian.AppendUint64(b, uint64(s.Mark))
	for _, v := range s.Usage.fields() {
		b = binary.BigEndian.AppendUint64(b, uint64(*v))
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(s.Streams)))
	for i := range s.Streams {
		x := &s.Streams[i]
		for _, v := range [...]int64{x.Bytes, x.Calls, x.WallNs, x.RunNs, x.Wait} {
			b = binary.BigEndian.AppendUint64(b, uint64(v))
		}
		for _, v := range x.More {
			b = binary.BigEndian.AppendUint64(b, uint64(v))
		}
		b = binary.BigEndian.AppendUint16(b, uint16(len(x.Info)))
		b = append(b, x.Info...)
	}
	return b
}

var errShortSample = errors.New("worker: reading sample: it is truncated")

// parseSample decodes the output of append.
func parseSample(b []byte) (sample, error) {
	const head = 1 + 2*8 + 5*8 + 2
	if len(b) < head {
		return sample{}, errShortSample
	}
	s := sample{Why: b[0], At: time.Duration(binary.BigEndian.Uint64(b[1:])), Mark: int64(binary.BigEndian.Uint64(b[9:]))}
	for i, v := range s.Usage.fields() {
		*v = int64(binary.BigEndian.Uint64(b[17+8*i:]))
	}
	n := int(binary.BigEndian.Uint16(b[head-2:]))
	if n > 2*measure.MaxStreams { // two-way streams count twice
		return sample{}, fmt.Errorf("worker: reading sample: %d streams exceed the limit of %d", n, 2*measure.MaxStreams)
	}
	b = b[head:]
	for range n {
		if len(b) < streamHead {
			return sample{}, errShortSample
		}
		var x streamSample
		for i, p := range [...]*int64{&x.Bytes, &x.Calls, &x.WallNs, &x.RunNs, &x.Wait} {
			*p = int64(binary.BigEndian.Uint64(b[8*i:]))
		}
		for i := range x.More {
			x.More[i] = int64(binary.BigEndian.Uint64(b[8*(5+i):]))
		}
		l := int(binary.BigEndian.Uint16(b[streamHead-2:]))
		if len(b) < streamHead+l {
			return sample{}, errShortSample
		}
		x.Info = b[streamHead : streamHead+l : streamHead+l]
		b = b[streamHead+l:]
		s.Streams = append(s.Streams, x)
	}
	if len(b) != 0 {
		return sample{}, fmt.Errorf("worker: reading sample: it has %d excess bytes", len(b))
	}
	return s, nil
}
