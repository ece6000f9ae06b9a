package plan

import (
	"fmt"
	"strconv"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/unit"
)

// LadderStreams returns the numbers of streams of a rung's cells (B-10, B-11). A rung measures each with the
// default window and with LadderWindow.
func LadderStreams() []int { return []int{1, 2, 4, 8} }

// LadderWindow is the second window of a rung, in bytes.
const LadderWindow = 800 << 10

// Names of the rungs, the lowest first (B-03 to B-06).
const (
	RungLocalhost    = "localhost"
	RungSwitch       = "virtual switch"
	RungLAN          = "LAN"
	RungInterconnect = "interconnect"
)

// Rung is one path of a ladder.
type Rung struct {
	Name string
	Pair
	Link Link // nominal rate of this path; a rate of 0: unknown
}

// Ladder returns the plan of `thru ladder`: the eight cells of one rung, which is this machine against itself
// or the path to a peer.
func Ladder(r Request) (Plan, error) {
	return Rungs([]Rung{{Pair: Pair{From: r.Local, To: r.Peer, Engine: r.Engine}}}, r)
}

// Rungs returns the plan of a ladder of several rungs, the lowest first: the eight cells of each, in one
// direction.
func Rungs(rungs []Rung, r Request) (Plan, error) {
	if r.Bidir {
		return Plan{}, fault.Usagef("take forward or reverse: a ladder has one direction", "a rung is not measured in both directions at once")
	}
	r.OneWay, r.Streams = !r.Reverse, 1
	p := Plan{Command: "ladder", Repeat: r.Repeats()}
	for _, x := range rungs {
		for _, window := range []int64{0, LadderWindow} {
			for _, streams := range LadderStreams() {
				c := r
				c.Streams, c.Window = streams, measure.Pair{Send: window, Recv: window}
				steps, err := x.Steps(c)
				if err != nil {
					return Plan{}, err
				}
				for _, s := range steps {
					s.Label, s.Rung, s.Link = cellLabel(streams, window), x.Name, x.Link
					if x.Name != "" {
						s.Axes = []measure.Axis{{Name: "streams", Value: strconv.Itoa(streams)}, {Name: "window", Value: windowValue(window)}}
					}
					p.Steps = append(p.Steps, s)
				}
			}
		}
	}
	return p, nil
}

// windowValue formats a window as in a plan file.
func windowValue(window int64) string {
	if window == 0 {
		return "default"
	}
	return fmt.Sprintf("%dK", window>>10)
}

// VCPUs returns the plan that shows how throughput grows with the CPUs (B-16). It limits both ends to 1, 2, 4
// and 8 CPUs, as far as both have them, with the default streams for each number (B-15). If the request sets
// the streams, every cell uses that number.
func VCPUs(r Request) (Plan, error) {
	r.OneWay = !r.Reverse
	p := Plan{Command: "ladder", Repeat: r.Repeats()}
	for cpus := 1; cpus <= min(8, r.LocalCPUs, r.PeerCPUs); cpus *= 2 {
		c := r
		c.CPUs = cpus
		steps, err := Pair{From: r.Local, To: r.Peer, Engine: r.Engine}.Steps(c)
		if err != nil {
			return Plan{}, err
		}
		for _, s := range steps {
			streams := s.Specs[0].Streams
			s.Label = unit.Plural(cpus, "CPU") + ", " + unit.Plural(streams, "stream")
			s.Axes = []measure.Axis{{Name: "cpus", Value: strconv.Itoa(cpus)}, {Name: "streams", Value: strconv.Itoa(streams)}}
			p.Steps = append(p.Steps, s)
		}
	}
	if len(p.Steps) == 0 {
		return Plan{}, fault.Usagef("the study confines each end to 1, 2, 4 and 8 of its CPUs", "how many CPUs the ends have is not known")
	}
	return p, nil
}

func cellLabel(streams int, window int64) string {
	name := "default window"
	if window > 0 {
		name = unit.Size(window) + " window"
	}
	return unit.Plural(streams, "stream") + ", " + name
}
