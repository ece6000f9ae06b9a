package store

import (
	"context"
	"iter"
	"time"

	"thru/internal/watch/record"
)

// Watches stores what watches measure and find out.
//
// A sample counts once, by its pair, layer and begin: of several, the first that was stored. Begin and duration are stored to the millisecond,
// delays to the microsecond, rates to 1 kb/s, shares and CPU time to 1e-9; so a sample is the same from the day it was stored to its last. A value
// out of the range of its metric is absent. The id of a sample is made of its pair, layer and begin.
type Watches interface {
	// PutSamples stores samples. They are on disk when it returns, also with ErrPartly: all but those that no store accepts.
	PutSamples(ctx context.Context, samples []record.Sample) error
	// Samples returns samples in the order of their begin. It holds no lock while its caller works. After ErrDamaged the samples that can be read follow.
	Samples(ctx context.Context, f SampleFilter) iter.Seq2[record.Sample, error]
	// PruneSamples puts summaries of hours in place of samples that are older than raw, some at a time, and removes the summaries of hours and days that are
	// older than hours; 0 removes none.
	PruneSamples(ctx context.Context, now time.Time, raw, hours time.Duration) error
	// PutDay stores the final summary of a day of a pair. The same day again replaces it.
	PutDay(ctx context.Context, day record.Summary) error
	// Days returns summaries of days in order. With ErrDamaged it returns those that can be read.
	Days(ctx context.Context, f SampleFilter) ([]record.Summary, error)
}

// SampleFilter selects samples and days; a zero field is no condition. All conditions must hold.
type SampleFilter struct {
	Pair  record.Pair  // each of its ends that is not empty
	Layer record.Layer // days have none
	From  time.Time    // began then or later
	To    time.Time    // began before
}

// within reports whether a begin is in the filter's time.
func (f SampleFilter) within(begin time.Time) bool {
	return !begin.Before(f.From) && (f.To.IsZero() || begin.Before(f.To))
}
