package gate

import (
	"fmt"
	"slices"

	"thru/internal/measure"
)

// Mending is what to do on a host, for a result that shows that it is needed.
type Mending struct {
	Platform string   // system that the commands are of: "linux"
	Commands []string // in order, each as a shell takes it; none where no command does it
	Advice   string   // in words, where no command does it, or before one
	Risk     string   // what it may cost, and how long it lasts
}

// Mender words what to do on one host, by commands of its system and with the
// values that its facts have.
type Mender struct{ host *Host }

// Mend is the Mender of a host. Where its system is not known, the commands
// are those of Linux, and Mending.Platform says so.
func Mend(facts *measure.Facts) Mender {
	var own measure.Facts
	if facts != nil {
		own = *facts
	}
	if own.OS == nil || *own.OS == "" {
		own.OS = new("linux")
	}
	sc := NewScene(Subject{Ends: []End{{Facts: &own}}})
	return Mender{sc.hosts[0]}
}

// mending gives a remedy to a reader outside of this package.
func (m Mender) mending(r Remedy) Mending {
	r = m.host.sparing(r)
	w := Mending{Commands: r.Lines, Advice: r.Advice, Risk: r.Risk}
	if len(r.Lines) > 0 {
		w.Platform = m.host.System
	}
	return w
}

// face of that name; where the facts have none, one of which only the name is known.
func (m Mender) face(name string) *Face {
	i := m.host.Interface(name)
	if i == nil {
		i = &measure.Interface{Name: name}
	}
	return &Face{Interface: i, Host: m.host}
}

// Window lets one connection have so many bytes under way, as sender or as
// receiver. Where the host's limit allows them already it says so.
func (m Mender) Window(bytes int64, sends bool) Mending {
	bytes = min(max(bytes, 1), mostWindow)
	l := m.host.Limits()
	has, of := l.Window, l.WindowOf
	if sends {
		has, of = l.Send, l.SendOf
	}
	if has >= bytes {
		return m.mending(Advise(fmt.Sprintf("%s allows %s a connection already: see whether the program sets a buffer of its own (SO_SNDBUF, SO_RCVBUF, -w), or the kernel is short of memory", of, Size(has))))
	}
	r := SetBuffers(m.host, bytes, sends)
	if len(r.Lines) == 0 {
		r.Advice = "raise the buffers so that a connection can have " + Size(bytes) + " under way"
	}
	return m.mending(r)
}

// SwitchOn turns a switch of TCP on, by the name that it has on Linux:
// "net.ipv4.tcp_sack". Other systems have the same under other names.
func (m Mender) SwitchOn(name string) Mending {
	for _, s := range []Setting{WindowScaling(), SackSetting(), TimestampsSetting()} {
		if !slices.Contains(s.Names["linux"], name) {
			continue
		}
		r := SwitchOn(m.host, s)
		if len(r.Lines) == 0 {
			r = Advise("switch " + s.What + " on")
		}
		return m.mending(r)
	}
	return m.mending(Advise("switch " + Command("%s", name) + " on"))
}

// Control has connections use another congestion control.
func (m Mender) Control(name string) Mending {
	r := CongestionControl(m.host, name)
	if m.host.System == "linux" {
		r.Risk += "; where it is refused (in a container) name it by the route: " +
			Command("`ip route replace ... congctl %s`, with the rest of the route as `ip route get` shows it", name)
	}
	if len(r.Lines) == 0 {
		r.Advice = Command("have connections use %s", name)
	}
	return m.mending(r)
}

// MTUProbing has TCP find the packet size that passes by itself (RFC 4821).
func (m Mender) MTUProbing() Mending { return m.mending(MtuProbing(m.host)) }

// MTU sets that of an interface, in bytes.
func (m Mender) MTU(name string, bytes int) Mending {
	return m.mending(SetMTU(m.face(name), max(bytes, 68)))
}

// SegmentationOff has the kernel, not the adapter, split what is longer than
// a packet: for an adapter that does it wrongly.
func (m Mender) SegmentationOff(name string) Mending { return m.mending(segmentationOff(m.face(name))) }

// Ring gives the receive queues of an interface as many descriptors as they can have.
func (m Mender) Ring(name string) Mending {
	f := m.face(name)
	switch {
	case f.Rings != nil && f.Rings.RXMax > f.Rings.RX:
		return m.mending(SetRing(f, f.Rings.RXMax))
	case f.Rings != nil:
		return m.mending(Advise("the ring has all its descriptors: more queues, or a faster CPU, must take packets off it"))
	}
	return m.mending(Advise("give the receive ring more descriptors (ethtool -G), or take packets off it by more queues"))
}

// Backlog doubles what may wait between an interface and the stack.
func (m Mender) Backlog() Mending {
	if m.host.System != "linux" {
		return m.mending(Advise("let more received packets wait for the stack"))
	}
	return m.mending(Sysctls(m.host, "net.core.netdev_max_backlog="+Doubled(m.host)))
}

// Interrupts gives each interrupt of an interface a CPU of its own; where it
// has one only, software spreads its packets.
func (m Mender) Interrupts(name string) Mending {
	f := m.face(name)
	r := Remedy{}
	if len(f.IRQs) > 1 {
		r = SpreadInterrupts(f)
	}
	if len(r.Lines) == 0 {
		r = PacketSteering(f)
	}
	if len(r.Lines) == 0 {
		r = Advise("spread the interface's interrupts, or its packets (RPS), over several CPUs")
	}
	return m.mending(r)
}

// Queues gives an interface as many queues as it can have, but no more than CPUs.
func (m Mender) Queues(name string) Mending {
	f := m.face(name)
	kind, most := "combined", 0
	if c := f.Channels; c != nil {
		if most = c.CombinedMax; most <= 1 {
			kind, most = "rx", c.RXMax
		}
	}
	r := Remedy{}
	if n := min(most, max(1, m.host.CPUs())); n > 1 || m.host.System == "esxi" {
		r = SetQueues(f, kind, n)
	}
	if len(r.Lines) == 0 {
		r = Advise("give the interface as many queues as the host has CPUs")
	}
	return m.mending(r)
}

// Spread has an interface spread flows over all its receive queues.
func (m Mender) Spread(name string) Mending {
	f := m.face(name)
	r := Remedy{}
	if n := f.RxQueues(); n > 1 {
		r = Spread(f, n)
	}
	if len(r.Lines) == 0 {
		r = Advise("have the interface spread flows over all its receive queues (RSS), by ports as well as addresses")
	}
	return m.mending(r)
}

// Moderation has the driver choose how long an interface waits before it interrupts.
func (m Mender) Moderation(name string) Mending {
	r := Adaptive(m.face(name))
	if len(r.Lines) == 0 {
		r = Advise("have the adapter choose its interrupt moderation itself")
	}
	return m.mending(r)
}

// Quota lifts the CPU quota of the control groups.
func (m Mender) Quota() Mending {
	if m.host.Cgroup == nil {
		m.host.Cgroup = &measure.Cgroup{}
	}
	return m.mending(m.host.LiftQuota())
}

// Tracking makes room for more tracked connections.
func (m Mender) Tracking() Mending {
	if w := m.host.Firewall; w != nil && w.TrackedMax != nil && *w.TrackedMax > 0 {
		return m.mending(MoreTracked(m.host))
	}
	return m.mending(Advise("make room for more tracked connections, or do not track the test's ports"))
}
