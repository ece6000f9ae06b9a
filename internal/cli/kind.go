package cli

import (
	"fmt"
	"strconv"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/unit"
)

// kindFlags choose what kind of traffic a test is made of, and how much.
type kindFlags struct {
	UDP           bool   `group:"Traffic" short:"u" name:"udp" help:"Datagrams: loss and where, reordering, jitter; 1 Mb/s a stream unless -b says otherwise."`
	Bitrate       string `group:"How much" short:"b" name:"bitrate" aliases:"bandwidth" placeholder:"RATE" help:"Payload rate of each stream, such as 500M; 0 is as fast as it goes (default: 1M with -u, else 0)."`
	TotalBitrate  string `group:"How much" name:"total-bitrate" placeholder:"RATE" help:"Payload rate of all streams together."`
	Bytes         string `group:"How much" short:"n" name:"bytes" aliases:"num" placeholder:"SIZE" help:"End after so many bytes instead of a time."`
	Blocks        string `group:"How much" short:"k" name:"blockcount" placeholder:"N" help:"End after so many calls or datagrams of -l bytes."`
	RR            bool   `group:"Traffic" name:"rr" help:"Requests and responses: latency. -l REQUEST/RESPONSE in bytes (default 1/1); with -u by datagrams."`
	CRR           bool   `group:"Traffic" name:"crr" help:"Connect, request, response, close, again and again."`
	Rate          string `group:"How much" name:"rate" placeholder:"N" help:"Requests a second of each stream (default: back to back). A late one counts from when it was due."`
	Latency       bool   `group:"Traffic" name:"latency" help:"Also measure latency, on the idle path and beside the traffic."`
	RRUL          bool   `group:"Traffic" name:"rrul" help:"As flent's RRUL: four streams up and four down at once, each in a class of its own (DSCP 0, CS1, CS5, EF), and the latency beside them, graded."`
	Search        bool   `group:"Traffic" name:"search" help:"With -u: find the capacity (RFC 9097), then the highest rate without loss."`
	Verify        bool   `group:"Traffic" name:"verify" help:"Compare every byte at the receiver with what was sent."`
	OneConnection bool   `group:"Ends and directions" name:"one-connection" help:"With --bidir: both directions on the same connections."`
	DontFragment  bool   `group:"Sockets" name:"dont-fragment" help:"With -u: refuse datagrams above the path's MTU."`
}

// kind turns the flags into plan's terms.
func (f *kindFlags) kind(r *plan.Request, timed bool) error {
	r.RRUL = f.RRUL
	r.Latency, r.Search, r.Verify, r.OneConnection, r.DontFragment = f.Latency || f.RRUL, f.Search, f.Verify, f.OneConnection, f.DontFragment
	switch {
	case f.RR && f.CRR:
		return fault.Usagef("take one of --rr and --crr", "two kinds of requests are asked for")
	case f.RR:
		r.Traffic = measure.RR
	case f.CRR:
		r.Traffic = measure.CRR
	}
	r.Protocol = measure.TCP
	if f.UDP {
		r.Protocol = measure.UDP
	}
	r.RateSet = f.Bitrate != ""
	err := readAll([]reading{
		{"-b", f.Bitrate, "500M, 2.5G or 0", func(s string) (err error) { r.Rate, err = unit.ParseRate(s); return }},
		{"--total-bitrate", f.TotalBitrate, "500M or 2.5G", func(s string) (err error) { r.TotalRate, err = unit.ParseRate(s); return }},
		{"-n", f.Bytes, "1G or 64M", func(s string) (err error) { r.Amount, err = positive(unit.ParseSize(s)); return }},
		{"-k", f.Blocks, "1000", func(s string) (err error) { r.Blocks, err = positive(strconv.ParseInt(s, 10, 48)); return }},
		{"--rate", f.Rate, "1000", func(s string) (err error) { r.PerSecond, err = perSecond(s); return }},
	})
	if err != nil {
		return err
	}
	if timed && (r.Amount > 0 || r.Blocks > 0) {
		return fault.Usagef("take one of -t, -n and -k", "a time and an amount are asked for")
	}
	return nil
}

// positive refuses zero, which an unset variable of a script gives.
func positive(n int64, err error) (int64, error) {
	if err == nil && n <= 0 {
		err = fmt.Errorf("nothing would pass")
	}
	return n, err
}

func perSecond(s string) (float64, error) {
	n, err := strconv.ParseFloat(s, 64)
	if err == nil && !(n > 0 && n <= measure.MaxPerSecond) {
		err = fmt.Errorf("it is not above 0 and up to %d", measure.MaxPerSecond)
	}
	return n, err
}
