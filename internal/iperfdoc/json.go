package iperfdoc

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"

	"thru/internal/unit"
)

// The document as iperf3 prints it. The order of the fields is the order of its keys. A pointer is a key that iperf3 prints only for some tests.

type jsonDoc struct {
	Start      any             `json:"start"`
	Intervals  []jsonInterval  `json:"intervals"`
	End        any             `json:"end"`
	ServerText string          `json:"server_output_text,omitempty"`
	ServerJSON json.RawMessage `json:"server_output_json,omitempty"`
	Title      string          `json:"title,omitempty"`
	Extra      string          `json:"extra_data,omitempty"`
	Error      string          `json:"error,omitempty"`
}

// jsonHead is `start` without a connection.
type jsonHead struct {
	Connected []Conn `json:"connected"`
	Version   string `json:"version"`
	System    string `json:"system_info"`
}

type jsonStart struct {
	jsonHead
	Time       jsonTime      `json:"timestamp"`
	Connecting *jsonHost     `json:"connecting_to,omitempty"`
	Accepted   *jsonHost     `json:"accepted_connection,omitempty"`
	Cookie     string        `json:"cookie"`
	AskedMSS   int64         `json:"tcp_mss,omitempty"`
	MSS        *int64        `json:"tcp_mss_default,omitempty"`
	Rate       int64         `json:"target_bitrate"`
	FQRate     int64         `json:"fq_rate"`
	Window     int64         `json:"sock_bufsize"`
	SendBuffer int64         `json:"sndbuf_actual"`
	RecvBuffer int64         `json:"rcvbuf_actual"`
	Test       jsonTestStart `json:"test_start"`
}

type jsonTime struct {
	Text   string `json:"time"`
	Secs   int64  `json:"timesecs"`
	Millis int64  `json:"timemillisecs"`
}

type jsonHost struct {
	Host string `json:"host"`
	Port int    `json:"port"`
}

type jsonTestStart struct {
	Protocol  string  `json:"protocol"`
	Streams   int     `json:"num_streams"`
	BlockSize int64   `json:"blksize"`
	Omit      seconds `json:"omit"`
	Duration  seconds `json:"duration"`
	Bytes     int64   `json:"bytes"`
	Blocks    int64   `json:"blocks"`
	Reverse   int     `json:"reverse"`
	TOS       int     `json:"tos"`
	Rate      int64   `json:"target_bitrate"`
	Bidir     int     `json:"bidir"`
	FQRate    int64   `json:"fqrate"`
	Interval  seconds `json:"interval"`
	GSO       int     `json:"gso"`
	GRO       int     `json:"gro"`
}

type jsonInterval struct {
	Streams []jsonPart `json:"streams"`
	Sum     *jsonPart  `json:"sum,omitempty"`
	Back    *jsonPart  `json:"sum_bidir_reverse,omitempty"`
}

// jsonPart is a stream or the sum in an interval.
type jsonPart struct {
	Socket *int `json:"socket,omitempty"`
	jsonSpan
	Retransmits *int64   `json:"retransmits,omitempty"`
	Cwnd        *int64   `json:"snd_cwnd,omitempty"`
	SendWindow  *int64   `json:"snd_wnd,omitempty"`
	RTT         *int64   `json:"rtt,omitempty"`
	RTTVar      *int64   `json:"rttvar,omitempty"`
	PathMTU     *int64   `json:"pmtu,omitempty"`
	Reordering  *int64   `json:"reorder,omitempty"`
	JitterMs    *float64 `json:"jitter_ms,omitempty"`
	Lost        *int64   `json:"lost_packets,omitempty"`
	Packets     *int64   `json:"packets,omitempty"`
	LostPct     *float64 `json:"lost_percent,omitempty"`
	Omitted     bool     `json:"omitted"`
	Sender      bool     `json:"sender"`
}

// jsonSpan holds the first keys of every row of figures.
type jsonSpan struct {
	Start   seconds `json:"start"`
	End     seconds `json:"end"`
	Seconds seconds `json:"seconds"`
	Bytes   int64   `json:"bytes"`
	Rate    float64 `json:"bits_per_second"`
}

type jsonEnd struct {
	Streams      []jsonEndStream `json:"streams"`
	Sum          *jsonTotal      `json:"sum,omitempty"`
	Sent         *jsonTotal      `json:"sum_sent,omitempty"`
	Received     *jsonTotal      `json:"sum_received,omitempty"`
	BackSum      *jsonTotal      `json:"sum_bidir_reverse,omitempty"`
	BackSent     *jsonTotal      `json:"sum_sent_bidir_reverse,omitempty"`
	BackReceived *jsonTotal      `json:"sum_received_bidir_reverse,omitempty"`
	CPU          *jsonCPU        `json:"cpu_utilization_percent,omitempty"`
	SenderCC     string          `json:"sender_tcp_congestion,omitempty"`
	ReceiverCC   string          `json:"receiver_tcp_congestion,omitempty"`
}

type jsonEndStream struct {
	Sender   *jsonTotal `json:"sender,omitempty"`
	Receiver *jsonTotal `json:"receiver,omitempty"`
	UDP      *jsonTotal `json:"udp,omitempty"`
}

// jsonTotal is a stream or a sum of the whole test.
type jsonTotal struct {
	Socket *int `json:"socket,omitempty"`
	jsonSpan
	Retransmits *int64 `json:"retransmits,omitempty"`
	*Timeline
	*jsonDatagrams
	OutOfOrder *int64 `json:"out_of_order,omitempty"`
	Sender     bool   `json:"sender"`
}

type jsonDatagrams struct {
	JitterMs float64 `json:"jitter_ms"`
	Lost     int64   `json:"lost_packets"`
	Packets  int64   `json:"packets"`
	LostPct  float64 `json:"lost_percent"`
}

type jsonCPU struct {
	HostTotal    float64 `json:"host_total"`
	HostUser     float64 `json:"host_user"`
	HostSystem   float64 `json:"host_system"`
	RemoteTotal  float64 `json:"remote_total"`
	RemoteUser   float64 `json:"remote_user"`
	RemoteSystem float64 `json:"remote_system"`
}

// seconds prints a time as iperf3 does: whole seconds as an integer, which scripts in typed languages rely on, others to the microsecond.
type seconds time.Duration

func (s seconds) MarshalJSON() ([]byte, error) {
	us := math.Round(float64(s) / float64(time.Microsecond))
	return strconv.AppendFloat(nil, us/1e6, 'f', -1, 64), nil
}

func span(start, end time.Duration, bytes int64) jsonSpan {
	return jsonSpan{Start: seconds(start), End: seconds(end), Seconds: seconds(end - start), Bytes: bytes, Rate: finite(rate(bytes, end-start))}
}

func milliseconds(ns int64) float64 { return float64(ns) / 1e6 }

func (t Test) head() jsonHead {
	return jsonHead{Connected: append([]Conn{}, t.Conns...), Version: t.Version, System: t.System}
}

func (t Test) json() jsonStart {
	s := jsonStart{
		jsonHead: t.head(),
		Time:     jsonTime{t.Time.UTC().Format(timeLayout), t.Time.Unix(), t.Time.UnixMilli()},
		Cookie:   t.Cookie, Rate: t.Rate, FQRate: t.FQRate, Window: t.Window, SendBuffer: t.SendBuffer, RecvBuffer: t.RecvBuffer,
		Test: jsonTestStart{
			Protocol: t.Protocol, Streams: t.Streams, BlockSize: t.BlockSize, Omit: seconds(t.Omit), Duration: seconds(t.Duration),
			Bytes: t.Bytes, Blocks: t.Blocks, Reverse: unit.Bit(t.Reverse), TOS: t.TOS, Rate: t.Rate, Bidir: unit.Bit(t.Bidir),
			FQRate: t.FQRate, Interval: seconds(t.Interval),
		},
	}
	if s.AskedMSS = t.AskedMSS; t.Protocol == protocolTCP && t.AskedMSS == 0 {
		s.MSS = &t.MSS
	}
	if h := (&jsonHost{t.Host, t.Port}); t.Server {
		s.Accepted = h
	} else {
		s.Connecting = h
	}
	return s
}

const (
	protocolTCP = "TCP"
	protocolUDP = "UDP"
	// timeLayout is RFC 7231's date format, which iperf3 prints.
	timeLayout = "Mon, 02 Jan 2006 15:04:05 GMT"
)

// json returns an interval for a test of that protocol.
func (i Interval) json(protocol string) jsonInterval {
	out := jsonInterval{Streams: []jsonPart{}}
	for n, w := range i.Directions {
		for _, p := range w.Streams {
			row := i.row(p, w.Sends, protocol)
			row.Socket = &p.Socket
			out.Streams = append(out.Streams, row)
		}
		sum := i.row(w.Sum, w.Sends, protocol)
		sum.Cwnd, sum.SendWindow, sum.RTT, sum.RTTVar, sum.PathMTU, sum.Reordering = nil, nil, nil, nil, nil, nil
		if n == 0 {
			out.Sum = &sum
		} else {
			out.Back = &sum
		}
	}
	return out
}

func (i Interval) row(p Part, sends bool, protocol string) jsonPart {
	row := jsonPart{jsonSpan: span(i.Start, i.End, p.Bytes), Omitted: i.Omitted, Sender: sends}
	switch {
	case protocol == protocolUDP && sends:
		row.Packets = &p.Packets
	case protocol == protocolUDP:
		packets := p.Packets
		row.JitterMs = new(0.0)
		if p.JitterNs != nil {
			*row.JitterMs = milliseconds(*p.JitterNs)
		}
		if p.Lost != nil {
			packets += *p.Lost
			row.Lost, row.LostPct = p.Lost, new(percent(*p.Lost, packets))
		}
		row.Packets = &packets
	case sends:
		row.Retransmits, row.Cwnd, row.SendWindow, row.RTT = p.Retransmits, p.Cwnd, p.SendWindow, p.RTTUs
		row.RTTVar, row.PathMTU, row.Reordering = p.RTTVarUs, p.PathMTU, p.Reordering
	}
	return row
}

// json returns the end for a test of that protocol. Of received data a server reports only what it knows by itself.
func (e End) json(protocol string, server bool) jsonEnd {
	out := jsonEnd{Streams: []jsonEndStream{}, CPU: &jsonCPU{
		HostTotal: finite(e.Local.total()), HostUser: finite(e.Local.User), HostSystem: finite(e.Local.System),
		RemoteTotal: finite(e.Remote.total()), RemoteUser: finite(e.Remote.User), RemoteSystem: finite(e.Remote.System),
	}}
	for n, w := range e.Directions {
		if server && !w.Sends {
			w = w.unknown()
		}
		row := w.tcpRow
		if protocol == protocolUDP {
			row = w.udpRow
		}
		for _, s := range w.Streams {
			out.Streams = append(out.Streams, row(s))
		}
		sum, sent, received := w.sumRows(protocol)
		if n == 0 {
			out.Sum, out.Sent, out.Received = sum, sent, received
			out.SenderCC, out.ReceiverCC = w.SenderCongestion, w.ReceiverCongestion
		} else {
			out.BackSum, out.BackSent, out.BackReceived = sum, sent, received
		}
	}
	if server {
		out.SenderCC, out.ReceiverCC = e.serverCongestion()
	}
	return out
}

// serverCongestion returns the congestion control of the server's own end: as the sender's where it sends.
func (e End) serverCongestion() (sender, receiver string) {
	for _, w := range e.Directions {
		if w.Sends {
			return w.SenderCongestion, ""
		}
		receiver = w.ReceiverCongestion
	}
	return "", receiver
}

// unknown removes the figures that only the sender's kernel knows.
func (w EndDirection) unknown() EndDirection {
	w.Streams = slices.Clone(w.Streams)
	for i := range w.Streams {
		w.Streams[i].Sent.Retransmits, w.Streams[i].Sent.Timeline = nil, Timeline{}
	}
	return w
}

func (w EndDirection) tcpRow(s EndStream) jsonEndStream {
	sent := &jsonTotal{Socket: &s.Socket, jsonSpan: span(0, w.Sent, s.Sent.Bytes), Retransmits: s.Sent.Retransmits, Sender: w.Sends}
	if c := s.Sent.Timeline; c.Known || s.Sent.Retransmits != nil {
		sent.Timeline = &c
	}
	return jsonEndStream{
		Sender:   sent,
		Receiver: &jsonTotal{Socket: &s.Socket, jsonSpan: span(0, w.Received, s.Received.Bytes), Sender: w.Sends},
	}
}

// datagrams returns the counts as iperf3 prints them: packets is the number that the receiver knows of, including lost ones.
func (t Total) datagrams(packets int64) *jsonDatagrams {
	return &jsonDatagrams{JitterMs: milliseconds(t.JitterNs), Lost: t.Lost, Packets: packets, LostPct: percent(t.Lost, packets)}
}

// counted returns how many datagrams a row covers: those sent, where that is known.
func (w EndDirection) counted(sent, received Total) int64 {
	if w.HasSent {
		return sent.Packets
	}
	return received.Packets + received.Lost
}

func (w EndDirection) udpRow(s EndStream) jsonEndStream {
	return jsonEndStream{UDP: &jsonTotal{
		Socket: &s.Socket, jsonSpan: span(0, w.Sent, s.Sent.Bytes), OutOfOrder: &s.Received.OutOfOrder,
		jsonDatagrams: s.Received.datagrams(w.counted(s.Sent, s.Received)), Sender: w.Sends,
	}}
}

func (w EndDirection) sumRows(protocol string) (sum, sent, received *jsonTotal) {
	s, r := w.sums()
	sent = &jsonTotal{jsonSpan: span(0, w.Sent, s.Bytes), Retransmits: s.Retransmits, Sender: w.Sends}
	received = &jsonTotal{jsonSpan: span(0, w.Received, r.Bytes), Sender: w.Sends}
	if protocol != protocolUDP {
		return nil, sent, received
	}
	sum = &jsonTotal{jsonSpan: span(0, w.Received, s.Bytes), jsonDatagrams: r.datagrams(w.counted(s, r)), Sender: w.Sends}
	sum.Rate = sent.Rate
	sent.jsonDatagrams, sent.Sender = Total{}.datagrams(s.Packets), true
	received.jsonDatagrams, received.Sender = r.datagrams(r.Packets+r.Lost), false
	return sum, sent, received
}
