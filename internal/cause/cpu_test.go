package cause

import (
	"testing"

	"thru/internal/cause/diagnose"
	"thru/internal/measure"
)

func TestSenderCPU(t *testing.T) {
	judgeHosts(t, "sender-cpu", []hostsRow{
		{"idle", nil, "no", "79% of the time"},
		{"thread full", []hostsEdit{sending(97, 1)}, "certain", "its thread ran 97%"},
		{"on a CPU of its own", []hostsEdit{sending(97, 1), onCore(2, 3)}, "certain", "CPU 2 is full"},
		{"just below the bar", []hostsEdit{sending(86, 1)}, "no", "blocked 13% of the time"},
		{"just above the bar", []hostsEdit{sending(87, 2)}, "certain", ""},
		{"beside loss", []hostsEdit{sending(97, 1), sentAgain(5000)}, "likely", ""},
		{"beside the receiver's window", []hostsEdit{sending(97, 1), func(h *hosts) { h.sender.Streams[0].TCP.RwndLimitedUs = new(uint64(1_600_000)) }}, "likely", ""},
		{"link full", []hostsEdit{sending(97, 1), linkShare(96)}, "no", "link is full"},
		{"link not full", []hostsEdit{sending(97, 1), linkShare(94)}, "certain", ""},
		{"rate asked for", []hostsEdit{sending(97, 1), func(h *hosts) { h.cell.Spec.Rate = 4e9 }}, "no", "requested rate"},
		{"other programs", []hostsEdit{sending(48, 50), onCore(0, 1), func(h *hosts) { h.sender.Base.CPUs[0].User = 99 }}, "certain", "other programs take the sender's CPU 0"},
		{"other programs anywhere", []hostsEdit{sending(48, 50), func(h *hosts) { coresOf(h.sender, measure.CPU{User: 60, System: 40}); h.sender.Base.CPUs[2].User = 99 }}, "certain", "other programs take the sender's CPUs"},
		{"both ends on one CPU", []hostsEdit{sending(54, 44), reading(44, 46), onCore(1, 1), sameMachine}, "certain", "both ends share it"},
		{"the reader ran more", []hostsEdit{sending(44, 54), reading(54, 44), onCore(1, 1), sameMachine}, "no", "the receiver uses more"},
		{"all CPUs full", []hostsEdit{inStreams(8), sending(40, 40), func(h *hosts) { coresOf(h.sender, measure.CPU{System: 99, Idle: 1}) }}, "certain", "all 4 CPUs"},
		{"all CPUs full, and it waits", []hostsEdit{sending(30, 10), func(h *hosts) { coresOf(h.sender, measure.CPU{System: 99, Idle: 1}) }}, "no", ""},
		{"one CPU has time", []hostsEdit{inStreams(8), sending(40, 40)}, "no", ""},
		{"what the hypervisor took", []hostsEdit{sending(75, 3), func(h *hosts) { coresOf(h.sender, measure.CPU{System: 60, Steal: 16, Idle: 24}) }}, "certain", ""},
		{"no copies carry more in a single run", []hostsEdit{sending(97, 1), sentAgain(5000), alsoLean(9e9)}, "likely", ""},
		{"no copies carry more", []hostsEdit{sending(97, 1), sentAgain(5000), alsoLean(9e9), turns}, "certain", ""},
		{"other CPUs carry more in a single run", []hostsEdit{sending(97, 1), sentAgain(5000), alsoElsewhere(9e9)}, "likely", ""},
		{"other CPUs carry more", []hostsEdit{sending(97, 1), sentAgain(5000), alsoElsewhere(9e9), turns}, "certain", ""},
		{"other CPUs carry the same", []hostsEdit{sending(97, 1), sentAgain(5000), alsoElsewhere(4.1e9)}, "likely", ""},
		{"the control paces", []hostsEdit{sending(97, 1), pacing}, "likely", ""},
		{"the control paces, and another carries the same", []hostsEdit{sending(97, 1), pacing, also(diagnose.OtherControl, 4.1e9, func(s *measure.Spec) { s.Congestion = "cubic" })}, "certain", ""},
		{"no evidence", []hostsEdit{unseenHosts}, "missing", "no evidence"},
		{"iperf3 full", []hostsEdit{reported(1.98e9)}, "likely", "99% of the time"},
		{"iperf3 with time left", []hostsEdit{reported(1e9)}, "no", ""},
		{"nothing measured", []hostsEdit{sending(97, 1), func(h *hosts) { h.cell.Runs[0].Goodput, h.cell.Goodput = nil, nil }}, "missing", "nothing was measured"},
		{"UDP", []hostsEdit{sending(97, 1), overUDP(0)}, "certain", ""},
		{"UDP, and much is lost", []hostsEdit{sending(97, 1), overUDP(200_000)}, "no", "20% is lost"},
	})
}

func fullCores(h *hosts) {
	coresOf(h.sender, measure.CPU{System: 99, Idle: 1})
	coresOf(h.receiver, measure.CPU{System: 99, Idle: 1})
}

// alsoLean adds the experiment without copies.
func alsoLean(bps float64) hostsEdit {
	return also(diagnose.LeanPath, bps, func(s *measure.Spec) { s.IO = measure.IOLean })
}

// alsoElsewhere adds the experiment on CPUs chosen by the scheduler.
func alsoElsewhere(bps float64) hostsEdit {
	return also(diagnose.FreeCPU, bps, func(s *measure.Spec) { s.Unplaced = true })
}

// also adds an experiment that carried bps.
func also(id string, bps float64, vary func(*measure.Spec)) hostsEdit {
	return func(h *hosts) {
		s := h.cell.Spec
		vary(&s)
		h.doc.Cells = append(h.doc.Cells, measure.Cell{From: "a", To: "b", Spec: s, Experiment: id, Goodput: &measure.Figure{Value: bps}, Runs: []measure.Run{{Goodput: &bps}}})
		h.cell = &h.doc.Cells[0]
	}
}

// turns makes the experiments alternate with the base.
func turns(h *hosts) {
	takeTurns(h.doc)
	h.cell = &h.doc.Cells[0]
}

// pacing gives the sender a pacing congestion control, a tenth of a millisecond from the receiver.
func pacing(h *hosts) {
	for i := range h.sender.Streams {
		h.sender.Streams[i].Congestion = "bbr"
		h.sender.Streams[i].TCP.MinRTT = new(int64(100_000))
	}
}

// reported makes the sender a program that reports only its CPU time, in ns.
func reported(cpu int64) hostsEdit {
	return func(h *hosts) {
		*h.sender = measure.Evidence{EndPoint: "a", Reported: "iperf3 3.12", MeasuredNs: hostsTime, Worker: &measure.Process{SystemNs: cpu}, Streams: []measure.Stream{{}}}
	}
}

// unknownReader is a receiver with known CPUs and unknown threads.
func unknownReader(h *hosts) {
	h.receiver.Worker = nil
	for i := range h.receiver.Streams {
		h.receiver.Streams[i].RunNs = nil
	}
}

func TestReceiverCPU(t *testing.T) {
	packets := measure.CPU{SoftIRQ: 93, System: 6, Idle: 1}
	squeezed := func(h *hosts) { h.receiver.Host.Softnet[1].TimeSqueeze = 40 }
	judgeHosts(t, "receiver-cpu", []hostsRow{
		{"idle", nil, "no", "waited for data"},
		{"reader full, and behind", []hostsEdit{reading(96, 1), waitsUnread(8 << 20)}, "certain", "its thread ran 96%"},
		{"reader full, and not behind", []hostsEdit{reading(96, 1)}, "likely", ""},
		{"just below the bar", []hostsEdit{reading(87, 0), waitsUnread(8 << 20)}, "no", ""},
		{"the sender is full too", []hostsEdit{reading(96, 1), sending(96, 1)}, "no", "the sender is not blocked"},
		{"full of packets", []hostsEdit{core(1, packets), squeezed}, "certain", "CPU 1 is full: received packets take 93%"},
		{"full of packets, no squeeze", []hostsEdit{core(1, packets)}, "likely", ""},
		{"full, of little packets", []hostsEdit{core(1, measure.CPU{SoftIRQ: 55, System: 44, Idle: 1}), squeezed}, "no", ""},
		{"packets with time left", []hostsEdit{core(1, measure.CPU{SoftIRQ: 90, System: 3, Idle: 7}), squeezed}, "no", ""},
		{"packets of one kernel for both", []hostsEdit{core(1, packets), squeezed, sameMachine, func(h *hosts) { h.receiver.Host.CPUs[1] = packets }}, "no", ""},
		{"both on one CPU", []hostsEdit{sending(36, 2), reading(64, 36), onCore(1, 1), sameMachine, waitsUnread(8 << 20)}, "certain", "the receiver uses more"},
		{"both on one CPU, the sender more", []hostsEdit{sending(60, 38), reading(40, 58), onCore(1, 1), sameMachine}, "no", "the sender uses more"},
		{"link full", []hostsEdit{reading(96, 1), linkShare(95)}, "no", ""},
		{"no evidence", []hostsEdit{unseenHosts}, "missing", ""},
		{"its threads are not known", []hostsEdit{unknownReader}, "missing", "time of its threads"},
		{"its threads are not known, a CPU is full of packets", []hostsEdit{unknownReader, core(1, packets)}, "likely", "CPU 1 is full: received packets take 93%"},
		{"UDP", []hostsEdit{reading(96, 1), overUDP(20_000), func(h *hosts) {
			h.cell.LossPlaces = []measure.LossPlace{{Place: measure.LossSocket, Packets: 20_000}}
		}}, "certain", ""},
		{"UDP on the CPUs of both, and much is lost", []hostsEdit{sending(66, 34), reading(41, 28), sameMachine, overUDP(290_000), fullCores}, "likely", "all 4 CPUs of the receiver"},
		{"UDP on the CPUs of both", []hostsEdit{sending(66, 34), reading(41, 28), sameMachine, overUDP(1000), fullCores}, "no", ""},
		{"UDP lost elsewhere", []hostsEdit{reading(96, 1), overUDP(20_000)}, "likely", ""},
	})
}

func TestNumberOfStreams(t *testing.T) {
	judgeHosts(t, "single-flow", []hostsRow{
		{"no CPU full", nil, "no", "no CPU is full"},
		{"not tried", []hostsEdit{sending(97, 1)}, "missing", diagnose.EightStreams},
		{"scales in a single run", []hostsEdit{sending(97, 1), alsoTried(8, 9e9)}, "likely", "8 streams carry 9.00 Gb/s"},
		{"scales", []hostsEdit{sending(97, 1), alsoTried(8, 9e9), turns}, "certain", "8 streams carry 9.00 Gb/s"},
		{"scales a little", []hostsEdit{sending(97, 1), alsoTried(8, 5.3e9)}, "likely", ""},
		{"does not scale", []hostsEdit{sending(97, 1), alsoTried(8, 5.1e9)}, "no", "no more"},
		{"scales, and loses", []hostsEdit{sending(97, 1), alsoTried(8, 9e9), turns, sentAgain(5000)}, "likely", ""},
		{"scales with no CPU full", []hostsEdit{alsoTried(8, 9e9)}, "no", "no CPU is full"},
		{"several streams", []hostsEdit{inStreams(2), sending(97, 1)}, "no", "2 streams"},
		{"the reader's threads are not known", []hostsEdit{unknownReader, alsoTried(8, 9e9)}, "missing", "of the receiver"},
		{"the reader's threads are not known, the sender is full", []hostsEdit{unknownReader, sending(97, 1), alsoTried(8, 9e9), turns}, "certain", ""},
		{"another program's CPU", []hostsEdit{sending(48, 50), onCore(0, 1), alsoTried(8, 9e9), func(h *hosts) { h.sender.Base.CPUs[0].User = 99 }}, "no", "other programs"},
		{"the reader's CPU", []hostsEdit{reading(97, 1), alsoTried(8, 9e9), turns}, "certain", ""},
		{"link full", []hostsEdit{sending(97, 1), linkShare(97), alsoTried(8, 9e9)}, "no", ""},
		{"no evidence", []hostsEdit{unseenHosts}, "missing", ""},
	})
	many := func(h *hosts) { h.sender.Worker.Involuntary = new(int64(9000)) }
	judgeHosts(t, "too-many-streams", []hostsRow{
		{"one", nil, "no", "one stream"},
		{"not tried", []hostsEdit{inStreams(8)}, "missing", diagnose.OneStream},
		{"fewer carry less", []hostsEdit{inStreams(8), alsoTried(4, 4.3e9)}, "no", ""},
		{"fewer carry a little more", []hostsEdit{inStreams(8), alsoTried(4, 4.5e9), many}, "possible", "4 streams carry 4.50 Gb/s"},
		{"fewer carry more", []hostsEdit{inStreams(8), alsoTried(4, 5e9), many}, "likely", ""},
		{"fewer carry far more in a single run, and switch less", []hostsEdit{inStreams(8), alsoTried(4, 9e9), many}, "likely", ""},
		{"fewer carry far more, and switch less", []hostsEdit{inStreams(8), alsoTried(4, 9e9), turns, many}, "certain", ""},
		{"fewer carry far more", []hostsEdit{inStreams(8), alsoTried(4, 9e9), turns}, "likely", ""},
		{"more carry more", []hostsEdit{inStreams(8), alsoTried(16, 9e9)}, "missing", ""},
	})
}

// TestOneOfBothEnds: a CPU that both ends share is attributed to one of them.
func TestOneOfBothEnds(t *testing.T) {
	for _, runs := range [][2]float64{{60, 38}, {38, 60}, {49, 49}} {
		h := twoHosts(sending(runs[0], 98-runs[0]), reading(runs[1], 98-runs[1]), onCore(1, 1), sameMachine)
		Diagnose(h.doc)
		n := 0
		for _, x := range h.cell.Findings {
			if x.Cause == "sender-cpu" || x.Cause == "receiver-cpu" {
				n++
			}
		}
		if n != 1 {
			t.Errorf("sender %v%%, receiver %v%%: %d findings of CPUs: %+v", runs[0], runs[1], n, h.cell.Findings)
		}
	}
}
