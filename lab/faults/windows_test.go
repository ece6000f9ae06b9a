package faults

import (
	"context"
	"testing"
	"time"

	"thru/internal/measure"
	"thru/lab"
	"thru/lab/wire"
)

// The path of most faults: fast enough that a small window limits, slow enough that no CPU does.
const (
	usualRate = 200_000_000
	usualRTT  = 20 * time.Millisecond
)

// usual has a queue that no pause of a busy machine fills.
func usual() lab.WiredOptions {
	return both(symmetric(usualRate, usualRTT), func(w *wire.Impairment) { w.Queue = usualRate / 8 / 20 })
}

// windowFaults: windows and buffers that are too small for the round trip.
func windowFaults() []Fault {
	const rmem, wmem = "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"
	receiver, sender, tool, path := measure.AtReceiver, measure.AtSender, measure.AtTool, measure.AtPath
	stripped := func(w *wire.Impairment) { w.StripWScale = true }
	return []Fault{
		{Name: "receive-window", About: "the receiver may buffer 128 KB", Forward: is("receive-window", receiver),
			Build: overWire(usual(), server(rmem, "4096 65536 131072"))},
		{Name: "receive-window-back", About: "the client may buffer 256 KB: data to it is slow, from it is not", Forward: well(), Back: is("receive-window", receiver),
			Args: flags("--link-rate %dM/l2", usualRate/1_000_000), Build: overWire(usual(), client(rmem, "4096 65536 262144"))},
		{Name: "receive-window-1g", About: "1 MB for 1 Gb/s over 40 ms", Forward: is("receive-window", receiver),
			Args: flags("--link-rate 1G/l2"), Build: overWire(symmetric(1e9, 40*time.Millisecond), server(rmem, "4096 131072 1048576"))},
		{Name: "fixed-window", About: "-w 64K", Forward: is("fixed-window", tool),
			Args: flags("-w 64K"), Build: overWire(usual())},
		{Name: "fixed-window-receiver", About: "-w 4M/128K over 80 ms", Forward: is("fixed-window", tool),
			Args: flags("-w 4M/128K"), Build: overWire(symmetric(usualRate, 80*time.Millisecond))},
		{Name: "send-buffer", About: "the sender may buffer 128 KB", Forward: is("send-buffer", sender),
			Build: overWire(usual(), client(wmem, "4096 16384 131072"))},
		{Name: "send-buffer-back", About: "the server may buffer 256 KB of what it sends", Forward: well(), Back: is("send-buffer", sender),
			Args: flags("--link-rate %dM/l2", usualRate/1_000_000), Build: overWire(usual(), server(wmem, "4096 16384 262144"))},
		{Name: "slow-reader", About: "the receiver's program reads four times a second", Forward: is("slow-reader", receiver),
			Build: slowReader},
		{Name: "window-scaling-off", About: "the client does not scale windows", Forward: is("window-scaling-off", sender),
			Build: overWire(usual(), client("net.ipv4.tcp_window_scaling", "0"))},
		{Name: "window-scaling-stripped", About: "a box takes the option out of the SYN", Forward: is("window-scaling-off", path),
			Build: overWire(both(usual(), stripped))},
	}
}

// slowReader lets the threads of the server's worker read only in short intervals.
func slowReader(t testing.TB) *Scene {
	s := overWire(usual(), server("net.ipv4.tcp_rmem", "4096 131072 1048576"))(t)
	f := newFreezer(t)
	s.During = func(ctx context.Context) { f.hold(ctx, s.Server, 245*time.Millisecond, 5*time.Millisecond) }
	return s
}
