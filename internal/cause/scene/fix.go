package scene

import (
	"fmt"
	"strconv"

	"thru/internal/cause/knob"
	"thru/internal/measure"
	"thru/internal/unit"
)

// HostOf is an end of a result of which these facts are known, for what is to be done there.
// Where its system is not known it is taken for Linux.
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

// Fix is a remedy as a finding has it.
func (h *Host) Fix(r Fix) *measure.Fix {
	r = h.Sparing(r)
	fix := &measure.Fix{EndPoint: h.Name, Commands: r.Lines, Advice: r.Advice, Risk: r.Risk}
	if len(r.Lines) > 0 {
		fix.Platform = h.System
	}
	return fix
}

// FaceOf that name; where the facts have none, one of which only the name is known.
func (h *Host) FaceOf(name string) *Face {
	i := h.Interface(name)
	if i == nil {
		i = &measure.Interface{Name: name}
	}
	return &Face{Interface: i, Host: h}
}

// Offload is a work that the adapter does for the kernel.
type Offload struct {
	Knob  string
	Words string // for people
	Soft  bool   // the kernel's own: any interface can have it
}

// Offloads that a test wants, in the order in which they are shown.
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

// Window lets one connection have so many bytes under way, as sender or as
// receiver. Where the host's limit allows them already it says so.
func Window(h *Host, bytes int64, sends bool) Fix {
	bytes = min(max(bytes, 1), mostWindow)
	l := h.Limits()
	has, of := l.Window, l.WindowOf
	if sends {
		has, of = l.Send, l.SendOf
	}
	if has >= bytes {
		return Advise(fmt.Sprintf("%s allows %s a connection already: see whether the program sets a buffer of its own (SO_SNDBUF, SO_RCVBUF, -w), or the kernel is short of memory", of, unit.Size(has)))
	}
	return SetBuffers(h, bytes, sends).Or("raise the buffers so that a connection can have " + unit.Size(bytes) + " under way")
}

// SetBuffers lets one connection have the window under way. Only the buffer of one
// side is set, and never to less than it has.
func SetBuffers(h *Host, window int64, sends bool) Fix {
	if h.System == "windows" { // which has levels: half of a buffer is the window
		if h.Limits().Window >= window {
			return Fix{}
		}
		return h.Set(knob.TCPRmem, "", knob.Sizes(knob.TCPRmem, "", 2*window))
	}
	return SetBuffer(h, sends, max(knob.BufferFor(window), h.Limits().greatest(h, sends)))
}

// SetBuffer gives the buffer of one side that greatest size.
func SetBuffer(h *Host, sends bool, bytes int64) Fix {
	id := knob.TCPRmem
	if sends {
		id = knob.TCPWmem
	}
	return h.Set(id, "", knob.Sizes(id, h.Sysctls[knob.Sysctl(id)], bytes))
}

// SpreadInterrupts gives each interrupt a CPU of its own, of the adapter's node first.
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
		r.Advice = fmt.Sprintf("the other %d interrupts likewise", rest)
	}
	return r
}

// Interrupts gives each interrupt of an interface a CPU of its own; where it
// has one only, software spreads its packets.
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

// PacketSteering spreads the packets of a queue over all CPUs by software.
func PacketSteering(f *Face) Fix {
	if f.Host.CPUs() <= 0 {
		return Fix{}
	}
	return f.Set(knob.RPS, "rx-0 "+knob.Mask(firstCPUs(f.Host.CPUs())))
}

// firstCPUs are the numbers of so many CPUs.
func firstCPUs(n int) (cpus []int) {
	for c := range n {
		cpus = append(cpus, c)
	}
	return cpus
}
