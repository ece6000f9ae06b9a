package session

import (
	"context"
	"fmt"
	"time"

	"thru/internal/measure"
	"thru/internal/stat"
	"thru/internal/unit"
)

// Sizes of trials, and limits of the suggested size, in bytes of all clients.
const (
	firstTrial = 1 << 20
	trialGrows = 64 // largest growth from one trial to the next
	mostTrials = 3
	leastSize  = 4 << 20
	mostSize   = 16 << 30
)

// Lengths of trials and of the suggested transfer. A window that grows during
// the transfer takes some ten round trips; among a hundred that costs little.
const (
	trialTime  = time.Second
	trialTrips = 20
	wholeTime  = 10 * time.Second
	wholeTrips = 100
)

// suggest returns a size for each client that lasts 10 s and 100 round trips,
// by the rate of uploads that grow until they last a second; why explains it.
func (m *Transfer) suggest(ctx context.Context) (size int64, why string, err error) {
	clients := int64(m.Many)
	trial := max(firstTrial/clients, 64<<10)
	for n := range mostTrials {
		run, err := m.put(ctx, upload{name: m.name(".thru-trial"), from: m.generated, size: trial, files: 1, clients: m.Many, overwrite: true})
		if err != nil {
			return 0, "", err
		}
		rate, rtt := reached(&run), time.Duration(stat.TransferRTT(&run))
		enough := max(trialTime, trialTrips*rtt)
		if run.ElapsedNs < int64(enough) && n+1 < mostTrials && rate > 0 {
			trial = min(max(int64(rate/8*enough.Seconds())/clients, 2*trial), trialGrows*trial)
			continue
		}
		size, why = suggested(rate/float64(clients), rtt, clients)
		return size, why + ", the rate of " + unit.Plural(m.Many, "trial upload") + " of " + unit.Size(trial), nil
	}
	return 0, "", nil // not reached: the last trial is always enough
}

// reached returns the rate at the end of a trial, since its beginning was
// slower.
func reached(run *measure.TransferRun) float64 {
	if run.Bps == nil {
		return 0
	}
	if n := len(run.Seconds); n > 0 {
		return max(run.Bps.Value, run.Seconds[n-1])
	}
	return run.Bps.Value
}

// suggested returns how much a client moves at a rate in bit/s in 10 s or 100
// round trips.
func suggested(bps float64, rtt time.Duration, clients int64) (size int64, why string) {
	length, why := wholeTime, "10 s"
	if trips := wholeTrips * rtt; trips > length {
		length, why = trips, fmt.Sprintf("%d round trips of %s", wholeTrips, unit.Duration(int64(rtt)))
	}
	why = fmt.Sprintf("%s at %s", why, unit.Rate(bps))
	wanted := roundMiB(int64(min(bps/8*length.Seconds(), mostSize)))
	if size = min(max(wanted, leastSize), mostSize/clients); size != wanted {
		why += ", within 4 MiB for each and 16 GiB for all"
	}
	return size, why
}

func roundMiB(n int64) int64 { return (n + 1<<20 - 1) >> 20 << 20 }
