package knob

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// ethernetHeader is what Windows' *JumboPacket counts in addition to the MTU.
const ethernetHeader = 14

func windows() map[string]func(*wording) {
	const offloadOf = "-NetAdapter"
	return map[string]func(*wording){
		TCPRmem: winAutotuning, WindowScaling: winAutotuning, Timestamps: winTimestamps, Congestion: winCongestion,
		MTU: winMTU, TSO: winToggle(offloadOf + "Lso"), LRO: winToggle(offloadOf + "Rsc"), GRO: winToggle(offloadOf + "Rsc"),
		TXChecksum: winToggle(offloadOf + "ChecksumOffload"), RXChecksum: winToggle(offloadOf + "ChecksumOffload"),
		RXRing: winProperty("*ReceiveBuffers"), TXRing: winProperty("*TransmitBuffers"),
		Coalescing: winModeration, Pause: winPause, Channels: winQueues, RSSTable: winRSS, IRQAffinity: winNUMA, Governor: winPower,
	}
}

// autotuningLevel returns the level of netsh for a value of TCPRmem; each level has a largest window in bytes (C-31).
func autotuningLevel(value string) string {
	if value == "0" {
		return "disabled"
	}
	if bytes, err := strconv.ParseInt(third(value), 10, 64); err == nil && bytes/2 > 16<<20 {
		return "experimental"
	}
	return "normal"
}

func winAutotuning(w *wording) {
	w.lasts = netshKeeps
	old := strings.ToLower(w.known("Internet.AutoTuningLevelLocal"))
	w.change(format("netsh int tcp set global autotuninglevel=%s"), autotuningLevel(w.set.Value), old, "netsh int tcp show global")
}

func winTimestamps(w *wording) {
	w.lasts = netshKeeps
	words := map[string]string{"0": "disabled", "1": "enabled", "2": "enabled"}
	value := cmp.Or(words[w.set.Value], unknownValue)
	w.change(format("netsh int tcp set global timestamps=%s"), value, words[w.before], "netsh int tcp show global")
}

func winCongestion(w *wording) {
	w.lasts = netshKeeps
	value := w.value()
	if value == "bbr" { // on Windows 11 and its servers
		value = "bbr2"
	}
	w.change(format("netsh int tcp set supplemental template=internet congestionprovider=%s"), value, w.old(), "netsh int tcp show supplemental")
}

func winMTU(w *wording) {
	w.lasts = adapterKeep
	mtu, err := strconv.Atoi(w.set.Value)
	if err != nil {
		w.add("set the MTU of the adapter (*JumboPacket), then of IP (NlMtuBytes)")
		return
	}
	old, _ := strconv.Atoi(w.before)
	if mtu > 1500 || old > 1500 { // the adapter is set first, and counts the Ethernet header too
		jumbo := ""
		if old > 0 {
			jumbo = strconv.Itoa(old + ethernetHeader)
		}
		w.adapter("*JumboPacket", strconv.Itoa(mtu+ethernetHeader), jumbo)
	}
	w.change(format("Set-NetIPInterface -InterfaceAlias %s -NlMtuBytes %s", w.nic()), strconv.Itoa(mtu), w.old(), "Get-NetIPInterface -InterfaceAlias "+w.nic())
	w.verifyPath("ping -f -l %d PEER")
}

// adapter words an advanced property of the adapter.
func (w *wording) adapter(keyword, value, old string) {
	w.lasts = adapterKeep
	w.change(format("Set-NetAdapterAdvancedProperty -Name %s -RegistryKeyword '%s' -RegistryValue %s", w.nic(), keyword), value, old,
		fmt.Sprintf("Get-NetAdapterAdvancedProperty -Name %s -RegistryKeyword '%s'", w.nic(), keyword))
}

func winProperty(keyword string) func(*wording) {
	return func(w *wording) { w.adapter(keyword, w.value(), w.old()) }
}

// winToggle words an offload: what is the noun of the cmdlets' names.
func winToggle(what string) func(*wording) {
	return toggles(adapterKeep, "Enable"+what+" -Name {nic}", "Disable"+what+" -Name {nic}", "Get"+what+" -Name {nic}")
}

// winModeration: the adapter has moderation (1) or not (0); its driver chooses the delay.
func winModeration(w *wording) {
	wait := func(value string) string {
		p := pairs(value)
		switch {
		case len(p) == 0:
			return ""
		case named(p, "adaptive-rx") != "on" && named(p, "rx-usecs") == "0":
			return "0"
		}
		return "1"
	}
	value := wait(w.set.Value)
	if value == "" {
		w.add("set *InterruptModeration of the adapter")
		return
	}
	w.adapter("*InterruptModeration", value, wait(w.before))
}

// winPause words flow control: 0 none, 1 send, 2 receive, 3 both.
func winPause(w *wording) {
	old := ""
	if w.before != "" {
		old = flowControl(w.before, "0213")
	}
	w.adapter("*FlowControl", flowControl(w.set.Value, "0213"), old)
}

func winQueues(w *wording) {
	w.lasts = adapterKeep
	show := "Get-NetAdapterRss -Name " + w.nic()
	n := queues(w.set.Value)
	if n == "" {
		w.add("set the receive queues of the adapter (Set-NetAdapterRss)")
		return
	}
	w.do("netsh int tcp set global rss=enabled", "", "")
	w.change(format("Set-NetAdapterRss -Name %s -NumberOfReceiveQueues %s", w.nic()), n, queues(w.before), show)
}

func winRSS(w *wording) {
	w.lasts = adapterKeep
	w.add("Windows balances the table itself if RSS is on")
	w.do("Enable-NetAdapterRss -Name "+w.nic(), "Disable-NetAdapterRss -Name "+w.nic(), "Get-NetAdapterRss -Name "+w.nic())
}

func winNUMA(w *wording) {
	w.lasts = adapterKeep
	show := "Get-NetAdapterRss -Name " + w.nic()
	w.change(format("Set-NetAdapterRss -Name %s -Profile %s", w.nic()), "NUMAStatic", "", show)
}

func winPower(w *wording) {
	w.lasts = netshKeeps
	plan := map[bool]string{true: "SCHEME_MIN", false: "SCHEME_BALANCED"}
	w.do("powercfg /setactive "+plan[w.set.Value == "performance"], "powercfg /setactive "+plan[w.set.Value != "performance"], "powercfg /getactivescheme")
	w.add("the undo command assumes the plan Balanced or High performance: check with powercfg /getactivescheme before")
}
