package knob

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// A cluster of FreeBSD's mbufs, and with the mbuf that holds it (MCLBYTES, MSIZE): of maxsockbuf a buffer can use
// 2048 bytes of 2304.
const (
	clusterBytes      = 2048
	clusterWithHeader = 2304
)

// MaxSockBuf returns the kern.ipc.maxsockbuf with which FreeBSD grants a buffer of so many bytes (sb_max_adj in
// uipc_sockbuf.c): 4718592 for 4 MiB.
func MaxSockBuf(buffer int64) int64 {
	return (buffer + clusterBytes - 1) / clusterBytes * clusterWithHeader
}

// UsableSockBuf returns how many bytes a buffer can hold under a kern.ipc.maxsockbuf.
func UsableSockBuf(ceiling int64) int64 { return ceiling / clusterWithHeader * clusterBytes }

func freebsd() map[string]func(*wording) {
	return map[string]func(*wording){
		TCPRmem: bsdBuffer("net.inet.tcp.recvbuf_max"), TCPWmem: bsdBuffer("net.inet.tcp.sendbuf_max"),
		RmemMax: bsdBuffer(""), WmemMax: bsdBuffer(""),
		WindowScaling: bsdSysctl("net.inet.tcp.rfc1323"), Timestamps: bsdSysctl("net.inet.tcp.rfc1323"),
		SACK: bsdSysctl("net.inet.tcp.sack.enable"), MTUProbing: bsdSysctl("net.inet.tcp.pmtud_blackhole_detection"),
		Congestion: bsdCongestion, NoMetricsSave: bsdHostCache, MTU: bsdMTU,
		TSO: bsdFlag("tso"), LRO: bsdFlag("lro"), GRO: bsdFlag("lro"), TXChecksum: bsdFlag("txcsum"), RXChecksum: bsdFlag("rxcsum"),
		RXRing: bsdLoader("override_nrxds"), TXRing: bsdLoader("override_ntxds"), Channels: bsdLoader("override_nrxqs"),
		Pause: bsdPause, IRQAffinity: bsdInterrupts, Governor: bsdGovernor,
	}
}

// darwin words what macOS has in common with FreeBSD, under its own names.
func darwin() map[string]func(*wording) {
	return map[string]func(*wording){
		TCPRmem: bsdBuffer("net.inet.tcp.autorcvbufmax"), TCPWmem: bsdBuffer("net.inet.tcp.autosndbufmax"), RmemMax: bsdBuffer(""), WmemMax: bsdBuffer(""),
		WindowScaling: bsdSysctl("net.inet.tcp.rfc1323"), Timestamps: bsdSysctl("net.inet.tcp.rfc1323"),
		SACK: bsdSysctl("net.inet.tcp.sack"), MTUProbing: bsdSysctl("net.inet.tcp.pmtud_blackhole_detection"), MTU: bsdMTU,
		TSO: bsdFlag("tso"), LRO: bsdFlag("lro"), GRO: bsdFlag("lro"), TXChecksum: bsdFlag("txcsum"), RXChecksum: bsdFlag("rxcsum"),
	}
}

// sysctl words a setting of the kernel, for which macOS needs -w.
func (w *wording) sysctl(name, value, old string) {
	w.lasts = untilBoot
	set := "sysctl "
	if w.os == "darwin" {
		set = "sysctl -w "
	}
	w.change(func(v string) string { return set + name + "=" + v }, value, old, "sysctl "+name)
}

// bsdSysctl words a switch under FreeBSD's name.
func bsdSysctl(name string) func(*wording) {
	return func(w *wording) {
		w.lasts = untilBoot
		value, old := w.value(), w.now(name)
		if name == "net.inet.tcp.pmtud_blackhole_detection" && value == "2" {
			value = "1"
		}
		if name == "net.inet.tcp.rfc1323" {
			if value == "2" { // Linux's value for timestamps without a random offset
				value = "1"
			}
			if old == "2" {
				old = "1"
			}
			w.add("one setting switches both window scaling and timestamps")
		}
		w.sysctl(name, value, old)
	}
}

// bsdBuffer words the ceiling of all buffers, which is raised first, and the maximum of one side.
func bsdBuffer(name string) func(*wording) {
	return func(w *wording) {
		w.lasts = untilBoot
		text := cmp.Or(third(w.set.Value), w.set.Value)
		bytes, err := strconv.ParseInt(text, 10, 64)
		if err != nil || bytes <= 0 {
			w.add("raise kern.ipc.maxsockbuf, then " + strings.TrimPrefix(name+", ", ", ") + "to the required buffer size")
			return
		}
		const ceiling = "kern.ipc.maxsockbuf"
		most := min(bytes, 1<<40)
		if has, err := strconv.ParseInt(w.fact(ceiling), 10, 64); err != nil || has < MaxSockBuf(most) {
			w.sysctl(ceiling, strconv.FormatInt(MaxSockBuf(most), 10), w.known(ceiling))
		}
		if name == "" {
			if len(w.out.Set) == 0 {
				w.add("kern.ipc.maxsockbuf already allows it")
			}
			return
		}
		old := cmp.Or(w.known(name), third(w.before))
		w.sysctl(name, strconv.FormatInt(most, 10), w.wordOr(old))
	}
}

func bsdCongestion(w *wording) {
	w.lasts = untilBoot
	const name = "net.inet.tcp.cc.algorithm"
	if w.set.Value == "bbr" { // a separate TCP stack there (tcp_bbr(4))
		const stack = "net.inet.tcp.functions_default"
		w.do("kldload -n tcp_bbr", "kldunload tcp_bbr", "")
		w.sysctl(stack, "bbr", w.known(stack))
		return
	}
	w.add(fmt.Sprintf("if sysctl net.inet.tcp.cc.available does not list it: kldload cc_%s", w.value()))
	w.sysctl(name, w.value(), w.now(name))
}

// bsdHostCache words Linux's no-metrics-save: a host cache that is off.
func bsdHostCache(w *wording) {
	w.lasts = untilBoot
	const name = "net.inet.tcp.hostcache.enable"
	turned := map[string]string{"0": "1", "1": "0"}
	value, old := turned[w.set.Value], turned[w.before]
	value = cmp.Or(value, unknownValue)
	old = cmp.Or(old, w.known(name))
	w.sysctl(name, value, old)
}

func bsdMTU(w *wording) {
	w.lasts = untilBoot
	w.change(format("ifconfig %s mtu %s", w.nic()), w.value(), w.old(), "ifconfig "+w.nic())
	w.verifyPath("ping -D -c 3 -s %d PEER")
}

// bsdFlag words an option of ifconfig: "tso", and "-tso" for off.
func bsdFlag(flag string) func(*wording) {
	return toggles(untilBoot, "ifconfig {nic} "+flag, "ifconfig {nic} -"+flag, "ifconfig {nic}")
}

// bsdDevice returns the name of an interface's device in settings: "dev.vmx.0" for vmx0.
func (w *wording) bsdDevice() string {
	name := w.set.Interface
	driver := strings.TrimRight(name, "0123456789")
	if !Plain(name, "") || driver == "" || driver == name {
		return "dev.DRIVER.UNIT"
	}
	return "dev." + driver + "." + name[len(driver):]
}

// bsdLoader words a setting that the network library reads when a driver is loaded (iflib(4), loader.conf(5)).
func bsdLoader(name string) func(*wording) {
	return func(w *wording) {
		value := w.set.Value
		if n := queues(value); n != "" {
			value = n
		}
		if n, err := strconv.Atoi(value); err != nil || n <= 0 {
			w.add("set " + w.bsdDevice() + ".iflib." + name + " in /boot/loader.conf")
			return
		}
		w.lasts = afterBoot
		key := w.bsdDevice() + ".iflib." + name
		line := fmt.Sprintf("%s=\"%s\"", key, value) // the last one counts, so that an earlier one takes effect again
		w.do("echo '"+line+"' >> /boot/loader.conf", "sed -i '' '/^"+strings.ReplaceAll(line, ".", `\.`)+"$/d' /boot/loader.conf", "sysctl "+key)
	}
}

// bsdPause words flow control of the drivers that have the setting (ix, ixl, igb): 0 none, 1 receive, 2 send, 3
// both.
func bsdPause(w *wording) {
	w.lasts = untilBoot
	key := w.bsdDevice() + ".fc"
	old := ""
	if w.before != "" {
		old = flowControl(w.before, "0123")
	}
	w.sysctl(key, flowControl(w.set.Value, "0123"), old)
}

func bsdInterrupts(w *wording) {
	w.lasts = untilBoot
	old := pairs(w.before)
	for _, p := range differing(w.set.Value, w.before) {
		show := "cpuset -g -x " + p.name
		before := named(old, p.name)
		if before == unknownValue {
			w.readFirst(show)
		}
		w.do("cpuset -l "+p.value+" -x "+p.name, "cpuset -l "+before+" -x "+p.name, show)
	}
}

func bsdGovernor(w *wording) {
	w.lasts = "to make it persistent: powerd_enable=NO in /etc/rc.conf"
	if w.set.Value != "performance" {
		w.do("service powerd start", "service powerd stop", "sysctl dev.cpu.0.freq")
		return
	}
	w.do("service powerd stop", "service powerd start", "sysctl dev.cpu.0.freq")
}
