package knob

import (
	"cmp"
	"strconv"
)

// sun words knobs of Solaris 11 and illumos, whose commands differ in few names.
func sun() map[string]func(*wording) {
	return map[string]func(*wording){
		TCPRmem: sunBuffer("recv_buf"), TCPWmem: sunBuffer("send_buf"), RmemMax: sunBuffer(""), WmemMax: sunBuffer(""),
		WindowScaling: sunTCP("_wscale_always", nil), Timestamps: sunTCP("_tstamp_always", map[string]string{"0": "0", "1": "1", "2": "1"}),
		SACK: sunTCP("sack", map[string]string{"0": "never", "1": "active"}), Congestion: sunCongestion,
		MTU: sunMTU, TSO: sunLSO, Channels: sunQueues, Pause: sunPause, Governor: sunPower,
	}
}

// ipadm words a property of a protocol.
func (w *wording) ipadm(protocol, name, value, old string) {
	w.lasts = ipadmKeeps
	w.change(func(v string) string { return "ipadm set-prop -p " + name + "=" + v + " " + protocol }, value, old, "ipadm show-prop -p "+name+" "+protocol)
}

// sunTCP words a switch of TCP, whose values may have other names.
func sunTCP(name string, words map[string]string) func(*wording) {
	return func(w *wording) {
		value, old := w.value(), w.before
		if words != nil {
			value, old = words[w.set.Value], words[w.before]
		}
		value = cmp.Or(value, unknownValue)
		if known := w.known("tcp." + name); known != "" {
			old = known
		}
		w.ipadm("tcp", name, value, w.wordOr(old))
	}
}

// sunBuffer words the ceiling of all buffers, which is raised first, and the buffer of one side.
func sunBuffer(name string) func(*wording) {
	return func(w *wording) {
		text := cmp.Or(third(w.set.Value), w.set.Value)
		bytes, err := strconv.ParseInt(text, 10, 64)
		if err != nil || bytes <= 0 {
			w.add("raise max_buf, then recv_buf or send_buf, to the required buffer size")
			return
		}
		if has, err := strconv.ParseInt(w.fact("tcp.max_buf"), 10, 64); err != nil || has < bytes {
			w.ipadm("tcp", "max_buf", strconv.FormatInt(bytes, 10), w.known("tcp.max_buf"))
		}
		if name != "" {
			old := cmp.Or(w.known("tcp."+name), third(w.before))
			w.ipadm("tcp", name, strconv.FormatInt(bytes, 10), w.wordOr(old))
		} else if len(w.out.Set) == 0 {
			w.add("max_buf already allows it")
		}
	}
}

func sunCongestion(w *wording) {
	if w.set.Value == "bbr" {
		w.add("bbr is not available: ipadm show-prop lists the choices")
		return
	}
	name := "cong_default"
	if w.os == "illumos" {
		name = "congestion_control"
	}
	w.ipadm("tcp", name, w.value(), w.now("tcp."+name))
}

// sunMTU removes IP from the link while its MTU changes, which the link requires.
func sunMTU(w *wording) {
	w.lasts = dladmKeeps
	n := w.nic()
	w.cuts = "the interface must be disabled for the change: do not make it over the only connection to the host"
	w.do("ipadm disable-if -t "+n, "ipadm enable-if -t "+n, "")
	w.change(func(v string) string { return "dladm set-linkprop -p mtu=" + v + " " + n }, w.value(), w.old(), "dladm show-linkprop -p mtu "+n)
	w.do("ipadm enable-if -t "+n, "ipadm disable-if -t "+n, "")
	if mtu, err := strconv.Atoi(w.set.Value); err == nil && mtu > 28 {
		w.verify("ping -s PEER " + strconv.Itoa(mtu-28) + " 4")
	}
}

func sunLSO(w *wording) {
	if w.os == "illumos" {
		w.lasts = ipadmKeeps
		w.toggle("ipadm set-prop -p _lso_outbound=1 ip", "ipadm set-prop -p _lso_outbound=0 ip", "ipadm show-prop -p _lso_outbound ip")
		return
	}
	w.lasts = untilBoot
	w.toggle("ndd -set /dev/ip ip_lso_outbound 1", "ndd -set /dev/ip ip_lso_outbound 0", "ndd -get /dev/ip ip_lso_outbound")
}

// dladm words a property of a link.
func (w *wording) dladm(name, value, old string) {
	w.lasts = dladmKeeps
	n := w.nic()
	w.change(func(v string) string { return "dladm set-linkprop -p " + name + "=" + v + " " + n }, value, old, "dladm show-linkprop -p "+name+" "+n)
}

func sunQueues(w *wording) {
	n := queues(w.set.Value)
	if n == "" {
		w.add("set rxrings of the link (dladm)")
		return
	}
	w.dladm("rxrings", n, queues(w.before))
}

func sunPause(w *wording) {
	words := map[string]string{"0": "no", "1": "rx", "2": "tx", "3": "bi"}
	old := ""
	if w.before != "" {
		old = words[flowControl(w.before, "0123")]
	}
	w.dladm("flowctrl", words[flowControl(w.set.Value, "0123")], old)
}

// sunPower: only Solaris has poweradm; illumos reads a file.
func sunPower(w *wording) {
	if w.os == "illumos" {
		line := map[bool]string{true: "cpupm disable", false: "cpupm enable"}[w.set.Value == "performance"]
		w.add("put the line `" + line + "` into /etc/power.conf instead of the line that begins with cpupm, then run pmconfig; undo it the same way")
		w.verify("grep cpupm /etc/power.conf")
		return
	}
	w.lasts = "persistent (poweradm)"
	authority := map[bool]string{true: "none", false: "platform"}
	fast := w.set.Value == "performance"
	w.do("poweradm set administrative-authority="+authority[fast], "poweradm set administrative-authority="+authority[!fast], "poweradm list")
}
