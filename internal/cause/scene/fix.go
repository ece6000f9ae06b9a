package scene

import (
	"fmt"
	"strconv"

	"thru/internal/cause/knob"
	"thru/internal/measure"
	"thru/internal/unit"
)

// HostOf returns an end of a result with these facts, to word fixes for it. An unknown system counts as Linux.
func HostOf(name string, facts *measure.Facts) *Host {
	var own measure.Facts
	if facts != nil {
		own = *facts
	}
	if own.OS == nil || *own.OS == "" {
		own.OS = new("linux")
	}
	return Of(&measure.EndPoint{Name: name, Facts: &own})
}

// Fix converts a fix to the form of a finding.
func (h *Host) Fix(r Fix) *measure.Fix {
	r = h.Sparing(r)
	fix := &measure.Fix{EndPoint: h.Name, Commands: r.Lines, Advice: r.Advice, Risk: r.Risk}
	if len(r.Lines) > 0 {
		fix.Platform = h.System
	}
	return fix
}

// FaceOf returns the interface of that name; if the facts lack it, one with only the name.
func (h *Host) FaceOf(name string) *Face {
	i := h.Interface(name)
	if i == nil {
		i = &measure.Interface{Name: name}
	}
	return &Face{Interface: i, Host: h}
}

// Offload is work that the adapter does for the kernel.
type Offload struct {
	Knob  string
	Words string // for people
	Soft  bool   // the kernel's own: any interface can have it
}

// Offloads returns the offloads that a test needs, in the order in which they are shown.
func Offloads() []Offload {
	return []Offload{
		{knob.TSO, "TSO", false},
		{knob.GSO, "GSO", true},
		{knob.GRO, "GRO", true},
		{knob.ScatterGather, "scatter-gather", false},
		{knob.TXChecksum, "TX checksum", false},
		{knob.RXChecksum, "RX checksum", false},
	}
}

// SetMTU changes the MTU of an interface.
func SetMTU(f *Face, mtu int) Fix {
	return f.Set(knob.MTU, strconv.Itoa(mtu)).Or(fmt.Sprintf("set the MTU to %d", mtu))
}

// Window lets one connection have this many bytes in flight, as sender or receiver. If the host's limit already
// allows them, the text says so.
func Window(h *Host, bytes int64, sends bool) Fix {
	bytes = min(max(bytes, 1), measure.MaxWindow)
	l := h.Limits()
	has, of := l.Window, l.WindowOf
	if sends {
		has, of = l.Send, l.SendOf
	}
	if has >= bytes {
		return Advise(fmt.Sprintf("%s already allows %s per connection: check whether the program sets its own buffer (SO_SNDBUF, SO_RCVBUF, -w), or the kernel is short of memory", of, unit.Size(has)))
	}
	return SetBuffers(h, bytes, sends).Or("raise the buffers so that a connection can have " + unit.Size(bytes) + " in flight")
}

// SetBuffers lets one connection have the window in flight. It sets the buffer of one side only, and never reduces
// it.
func SetBuffers(h *Host, window int64, sends bool) Fix {
	if beyond := Beyond(window); beyond != "" {
		return SetBuffers(h, measure.MaxWindow, sends).WithAdvice(beyond)
	}
	if h.System == "windows" { // which has levels: half of a buffer is the window
		if h.Limits().Window >= window {
			return Fix{}
		}
		return h.Set(knob.TCPRmem, "", knob.Sizes(knob.TCPRmem, "", 2*window))
	}
	return SetBuffer(h, sends, max(knob.BufferFor(window), h.Limits().greatest(h, sends)))
}

// SetBuffer sets the buffer maximum of one side.
func SetBuffer(h *Host, sends bool, bytes int64) Fix {
	id := knob.TCPRmem
	if sends {
		id = knob.TCPWmem
	}
	return h.Set(id, "", knob.Sizes(id, h.Sysctls[knob.Sysctl(id)], bytes))
}

// SpreadInterrupts pins each interrupt to a CPU of its own, those of the adapter's NUMA node first.
func SpreadInterrupts(f *Face) Fix {
	const most = 16 // commands
	cpus := f.Near()
	value := ""
	for i, q := range f.IRQs[:min(most, len(f.IRQs))] {
		if len(cpus) > 0 {
			value += fmt.Sprintf("%d %d ", q.Number, cpus[i%len(cpus)])
		}
	}
	r := f.Set(knob.IRQAffinity, value)
	if rest := len(f.IRQs) - most; rest > 0 && len(r.Lines) > 0 {
		r.Advice = fmt.Sprintf("set the other %d interrupts in the same way", rest)
	}
	return r
}

// Interrupts pins each interrupt of an interface to a CPU of its own; with a single interrupt, software spreads
// its packets (RPS).
func Interrupts(f *Face) Fix {
	r := Fix{}
	if len(f.IRQs) > 1 {
		r = SpreadInterrupts(f)
	}
	if len(r.Lines) == 0 {
		r = PacketSteering(f)
	}
	return r.Or("spread the interface's interrupts, or its packets (RPS), over several CPUs")
}

// PacketSteering spreads the packets of a queue over all CPUs in software (RPS).
func PacketSteering(f *Face) Fix {
	if f.Host.CPUs() <= 0 {
		return Fix{}
	}
	return f.Set(knob.RPS, "rx-0 "+knob.Mask(firstCPUs(f.Host.CPUs())))
}

// firstCPUs returns the numbers of the first n CPUs.
func firstCPUs(n int) (cpus []int) {
	for c := range n {
		cpus = append(cpus, c)
	}
	return cpus
}
