package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"thru/internal/doc"
	"thru/internal/fault"
	"thru/internal/library"
	"thru/internal/report"
	words "thru/internal/report/watch"
	"thru/internal/store"
	"thru/internal/unit"
	"thru/internal/watch/record"
)

// period prints what watches found out in a time.
func (c *reportCmd) period(ctx context.Context, e *env) error {
	var p record.Period
	files := pageFiles(c.HTML, c.Markdown, func() doc.Report { return words.Period(p) })
	for _, f := range files {
		if err := writable(f.flag, strings.TrimPrefix(f.file, "-")); err != nil {
			return err
		}
	}
	var err error
	if p, err = c.days(ctx, e, time.Now()); err != nil {
		return err
	}
	if err := e.writeForms(files); err != nil {
		return err
	}
	switch {
	case c.JSON:
		return report.PageJSON(e.Out, p)
	case c.Markdown == "-":
		return nil
	case !c.filesAsked():
		return report.PageText(e.Out, words.Period(p), e.text())
	}
	e.listFiles(files)
	return nil
}

// days reads the stored days of the pairs.
func (c *reportCmd) days(ctx context.Context, e *env, now time.Time) (p record.Period, err error) {
	when, err := library.ReadSpan(c.Watch, now)
	if err != nil {
		return p, err
	}
	s, err := archiveOf(keepFlags{storeFile: c.storeFile}).Open(store.Options{ReadOnly: true})
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	all, err := s.Days(ctx, store.SampleFilter{From: when.Since, To: when.Until})
	if errors.Is(err, store.ErrDamaged) {
		e.Line("warning: days are missing: " + fault.WithHint(err))
	} else if err != nil {
		return p, err
	}
	days := unit.Filtered(all, func(d record.Summary) bool {
		return len(c.Results) == 0 || slices.Contains(c.Results, d.From) || slices.Contains(c.Results, d.To)
	})
	if len(days) == 0 {
		return p, fault.Failf("a watch stores each day when it is over; thru report --watch this-month", "no stored day of a watch began in %s", fault.Short(c.Watch))
	}
	from, to := when.Since, when.Until
	if from.IsZero() {
		from = days[0].Begin.In(now.Location())
	}
	if to.IsZero() || to.After(now) {
		to = now
	}
	return record.PeriodOf(from, to, days), nil
}
