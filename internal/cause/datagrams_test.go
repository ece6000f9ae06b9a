package cause

import (
	"testing"

	"thru/internal/measure"
)

// astray makes the flow one of datagrams with that loss at that place, sent at twice the received rate, with that
// mean waiting time.
func astray(lossPct float64, place string, waitedNs int64) func(*measure.Document) {
	return func(d *measure.Document) {
		rate(193e6)(d)
		udp(1472, lossPct)(d)
		c := &d.Cells[0]
		c.Ceiling, c.Spec.Rate = nil, 400e6
		c.Datagrams.DelayMeanNs, c.Datagrams.OfferedBps = &waitedNs, new(400e6)
		if place != "" {
			c.LossPlaces = []measure.LossPlace{{Place: place, Packets: 1000, Counter: "counter", Fix: "do this"}, {Place: measure.LossBacklog, Packets: 10}}
		}
	}
}

// slower adds the same datagrams at a lower rate, with that loss.
func slower(bps int64, lossPct float64) func(*measure.Document) {
	return func(d *measure.Document) {
		c := d.Cells[0]
		c.Spec.Rate = bps
		c.Datagrams = &measure.DatagramFigures{Bytes: 1472, LossPct: lossPct, Sent: 100_000, Lost: int64(1000 * lossPct)}
		d.Cells = append(d.Cells, c)
	}
}

func TestDatagrams(t *testing.T) {
	path, socket := measure.LossPath, measure.LossSocket
	queued, random := astray(47, path, 40e6), astray(5, path, 50e3)
	search := func(d *measure.Document) { d.Cells[0].Spec.Search = true }
	full := func(d *measure.Document) {
		d.Cells[0].Ceiling = &measure.Ceiling{Bps: 200e6, LinkBps: 210e6, MTU: 1500, SharePct: 96}
	}
	drifting := func(d *measure.Document) {
		d.Cells[0].Spec.Duration = 120e9
		d.Cells[0].Datagrams.DelayMaxNs = new(int64(6e6))
	}
	uncounted := func(d *measure.Document) { d.Cells[0].Datagrams = nil }
	asked := func(bps int64) func(*measure.Document) {
		return func(d *measure.Document) { d.Cells[0].Spec.Rate = bps }
	}
	for cause, rows := range map[string][]row{
		"loss": {
			{"none", "no", "", edits{astray(0, "", 0)}},
			{"more than passes", "no", "had waited in a queue", edits{queued}},
			{"of those that did not wait", "likely", "5% of the datagrams are lost on the path", edits{random}},
			{"as many at a lower rate", "certain", "", edits{random, slower(100e6, 5)}},
			{"a few at a lower rate", "likely", "", edits{random, slower(100e6, 5), func(d *measure.Document) { d.Cells[1].Datagrams.Lost = 9 }}},
			{"as many at a lower rate, out of a full queue", "no", "full queue", edits{random, slower(100e6, 5), func(d *measure.Document) { d.Cells[1].Datagrams.DelayMeanNs = new(int64(40e6)) }}},
			{"half of all", "possible", "", edits{astray(50, path, 50e3)}},
			{"none at a lower rate", "no", "the path drops what exceeds its rate", edits{random, slower(100e6, 0)}},
			{"in the receiver", "no", "receiver socket", edits{astray(5, socket, 50e3)}},
			{"nobody knows where", "possible", "not known", edits{astray(5, measure.LossPathOrReceiver, 50e3)}},
			{"no place", "possible", "not known", edits{astray(5, "", 50e3)}},
			{"link full", "no", "link itself is full", edits{random, full}},
			{"a search", "no", "on purpose", edits{random, search}},
			{"not counted", "missing", "", edits{random, uncounted}},
		},
		"policer": {
			{"not delayed", "possible", "may let 193 Mb/s pass", edits{random}},
			{"half of all", "likely", "", edits{astray(50, path, 50e3)}},
			{"delayed by what clocks or a host may make", "possible", "", edits{astray(5, path, 3e6), drifting}},
			{"the same, and passes whole at a lower rate", "likely", "", edits{astray(5, path, 3e6), drifting, slower(150e6, 0)}},
			{"passes whole at a lower rate", "certain", "a policer lets 193 Mb/s pass", edits{random, slower(150e6, 0)}},
			{"lost at a lower rate too", "no", "", edits{random, slower(150e6, 4)}},
			{"delayed", "no", "queue", edits{queued}},
			{"little", "no", "no rate limit was exceeded", edits{astray(2.9, path, 50e3)}},
			{"no delays", "missing", "delay", edits{random, func(d *measure.Document) { d.Cells[0].Datagrams.DelayMeanNs = nil }}},
			{"no place", "missing", "place", edits{astray(5, "", 50e3)}},
		},
		"shaper": {
			{"delayed", "certain", "a queue on the path lets only 193 Mb/s pass", edits{queued}},
			{"delayed, not flat", "likely", "", edits{queued, seconds(0.1, 0.3, 0.15, 0.26, 0.12, 0.28, 0.2, 0.1)}},
			{"not delayed", "no", "no queue is full", edits{random}},
			{"delayed by what clocks or a host may make", "missing", "clock drift or a busy host", edits{astray(5, path, 3e6), drifting}},
			{"little", "no", "", edits{astray(2.9, path, 40e6)}},
			{"at the sender", "likely", "sender qdisc drops 20%", edits{astray(20, measure.LossQdisc, 50e3)}},
			{"in the receiver", "no", "", edits{astray(20, socket, 40e6)}},
			{"not counted", "missing", "", edits{queued, uncounted}},
		},
		"slow-reader": {
			{"none", "no", "", edits{astray(0, "", 0)}},
			{"its socket", "certain", "drops 12% of the datagrams", edits{astray(12, socket, 50e3)}},
			{"its socket, a few times", "likely", "", edits{astray(12, socket, 50e3), func(d *measure.Document) { d.Cells[0].LossPlaces = []measure.LossPlace{{Place: socket, Packets: 9}} }}},
			{"the path", "no", "", edits{random}},
			{"no place", "missing", "place", edits{astray(12, "", 50e3)}},
		},
		"app-limited": {
			{"as asked", "certain well", "the requested rate (-b 198 Mb/s)", edits{astray(0, "", 0), asked(198e6)}},
			{"less than asked", "no", "not reached", edits{astray(0, "", 0), asked(210e6)}},
			{"lost", "no", "", edits{random, asked(199e6)}},
			{"nothing asked", "no", "", edits{astray(0, "", 0), asked(0)}},
		},
	} {
		t.Run(cause, func(t *testing.T) { judgeRows(t, cause, rows) })
	}
}
