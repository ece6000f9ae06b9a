package agent

import "thru/internal/bus"

// Answers implements bus.Handler.
func (a *Agent) Answers() []bus.Answerer {
	return []bus.Answerer{
		bus.On(bus.Hello, a.Hello), bus.On(bus.Clock, a.Clock), bus.On(bus.Facts, a.Facts),
		bus.On(bus.Answer, a.Answer), bus.On(bus.Probe, a.Probe),
		bus.On(bus.Reserve, a.Reserve), bus.On(bus.Prepare, a.Prepare), bus.On(bus.Start, a.Start),
		bus.On(bus.Collect, a.Collect), bus.On(bus.CapturePart, a.CapturePart), bus.On(bus.Release, a.Release),
		bus.On(bus.Knobs, a.Knobs), bus.On(bus.Tune, a.Tune), bus.On(bus.Alter, a.Alter),
		bus.On(bus.Revert, a.Revert), bus.On(bus.Rollback, a.Rollback), bus.On(bus.TuneEnd, a.TuneEnd),
		bus.On(bus.Disk.Begin, a.BeginDisk), bus.On(bus.Disk.End, a.EndDisk),
		bus.On(bus.Observe.Begin, a.BeginObserve), bus.On(bus.Observe.End, a.EndObserve),
		bus.On(bus.File.Begin, a.BeginFile), bus.On(bus.File.End, a.EndFile),
		bus.On(bus.FileSize, a.FileSize), bus.On(bus.FileRemove, a.FileRemove),
		bus.On(bus.Guests, a.Guests), bus.On(bus.Watch.Begin, a.BeginWatch), bus.On(bus.Watch.End, a.EndWatch),
		bus.On(bus.Reflect, a.Reflect), bus.On(bus.Pairs, a.Pairs), bus.On(bus.Samples, a.Samples),
	}
}
