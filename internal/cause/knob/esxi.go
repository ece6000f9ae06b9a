package knob

import (
	"cmp"
	"fmt"
	"strings"
)

func esxi() map[string]func(*wording) {
	return map[string]func(*wording){
		MTU: esxMTU, TSO: esxTSO, ScatterGather: esxNIC("sg"), TXChecksum: esxNIC("cso"), LRO: esxLRO(), GRO: esxLRO(),
		RXRing: esxRing("-r"), TXRing: esxRing("-t"), Coalescing: esxCoalescing, Pause: esxPause, Channels: esxQueues,
		TxQueueLen: esxAdvanced("/Net/MaxNetifTxQueueLen", "-i"), Congestion: esxCongestion, Governor: esxPower,
	}
}

// setting words an advanced setting of the host; kind is "-i" or "-s".
func (w *wording) setting(name, kind, value, old string) {
	w.lasts = esxcliKeeps
	w.change(func(v string) string { return "esxcli system settings advanced set -o " + name + " " + kind + " " + v }, value, old,
		"esxcli system settings advanced list -o "+name)
}

func esxAdvanced(name, kind string) func(*wording) {
	return func(w *wording) { w.setting(name, kind, w.value(), w.old()) }
}

// esxMTU words the MTU: first of the vSwitch, then of the VMkernel port on it.
func esxMTU(w *wording) {
	w.lasts = esxcliKeeps
	vswitch, port := "VSWITCH", strings.HasPrefix(w.set.Interface, "vmk")
	if i := w.facts.Interface(w.set.Interface); i != nil && i.Master != nil {
		vswitch = Interface(w.os, *i.Master)
	}
	w.change(func(v string) string { return "esxcli network vswitch standard set -m " + v + " -v " + vswitch }, w.value(), w.old(), "esxcli network vswitch standard list")
	if port {
		w.change(func(v string) string { return "esxcli network ip interface set -m " + v + " -i " + w.nic() }, w.value(), w.old(), "esxcli network ip interface list")
	}
	w.verifyPath("vmkping -d -s %d PEER")
}

// esxNIC words an offload of a physical adapter.
func esxNIC(what string) func(*wording) {
	command := "esxcli network nic " + what + " set -n {nic} -e "
	return toggles(esxcliKeeps, command+"1", command+"0", "esxcli network nic "+what+" get")
}

// esxTSO words one setting for each version of IP, of all adapters.
func esxTSO(w *wording) {
	w.lasts = esxcliKeeps
	for _, name := range []string{"/Net/UseHwTSO", "/Net/UseHwTSO6"} {
		command := "esxcli system settings advanced set -o " + name + " -i "
		w.toggle(command+"1", command+"0", "esxcli system settings advanced list -o "+name)
	}
	w.add("adapters apply it when their driver is loaded again: reboot the host, or reload the module (esxcli system module), which interrupts its links")
}

func esxLRO() func(*wording) {
	const command = "esxcli system settings advanced set -o /Net/Vmxnet3HwLRO -i "
	return toggles(esxcliKeeps, command+"1", command+"0", "esxcli system settings advanced list -o /Net/Vmxnet3HwLRO")
}

func esxRing(option string) func(*wording) {
	return sets(untilBoot, "esxcli network nic ring current set -n {nic} "+option+" {value}", "esxcli network nic ring current get -n {nic}")
}

func esxCoalescing(w *wording) {
	w.lasts = untilBoot
	show := "esxcli network nic coalesce get -n " + w.nic()
	// A fixed time takes effect only if the adapter does not choose one itself.
	command := func(value string) string {
		p, options := pairs(value), ""
		switch named(p, "adaptive-rx") {
		case "on":
			options = " -a true"
		case "off":
			options = " -a false"
		}
		if n := named(p, "rx-usecs"); n != unknownValue {
			options += " -r " + n
		}
		if options == "" {
			return ""
		}
		return "esxcli network nic coalesce set -n " + w.nic() + options
	}
	set := command(w.set.Value)
	if set == "" {
		w.add("set the interrupt delay of the adapter (esxcli network nic coalesce set)")
		return
	}
	undo := command(w.before)
	if undo == "" {
		undo = "esxcli network nic coalesce set -n " + w.nic() + " -r " + unknownValue
		w.readFirst(show)
	}
	w.do(set, undo, show)
}

func esxPause(w *wording) {
	w.lasts = untilBoot
	show := "esxcli network nic pauseParams list"
	state := func(p []pair, name string) string {
		switch named(p, name) {
		case "on":
			return "true"
		case "off":
			return "false"
		}
		return unknownValue
	}
	command := func(value string) string {
		p := pairs(value)
		return fmt.Sprintf("esxcli network nic pauseParams set -n %s -r %s -t %s", w.nic(), state(p, "rx"), state(p, "tx"))
	}
	if w.before == "" {
		w.readFirst(show)
	}
	w.do(command(w.set.Value), command(w.before), show)
}

func esxQueues(w *wording) {
	w.lasts = afterBoot + "; " + esxcliKeeps
	const command = "esxcli system settings kernel set -s netNetqueueEnabled -v "
	w.do(command+"TRUE", command+"FALSE", "esxcli system settings kernel list -o netNetqueueEnabled")
}

func esxCongestion(w *wording) {
	if w.set.Value == "bbr" {
		w.add("bbr is not available: choose newreno or cubic")
		return
	}
	w.lasts = esxcliKeeps
	w.change(format("esxcli network ip netstack set -N defaultTcpipStack -c %s"), w.value(), w.old(), "esxcli network ip netstack get -N defaultTcpipStack")
}

func esxPower(w *wording) {
	policy := map[string]string{"performance": "'High Performance'", "powersave": "'Low Power'"}
	value := cmp.Or(policy[w.set.Value], "Balanced")
	w.setting("/Power/CpuPolicy", "-s", value, policy[w.before])
}
