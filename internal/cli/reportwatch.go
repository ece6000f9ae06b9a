package cli

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"thru/internal/fault"
	"thru/internal/library"
	"thru/internal/report"
	"thru/internal/store"
	"thru/internal/unit"
	"thru/internal/watch/record"
)

// period prints what watches found out in a time.
func (c *reportCmd) period(ctx context.Context, e *env) error {
	var p record.Period
	files := []formFile{
		{"--html", c.HTML, func(w io.Writer, s *report.Signature) error {
			return report.PeriodHTML(w, p, report.HTMLOptions{Signed: s})
		}, true},
		{"--markdown", c.Markdown, func(w io.Writer, s *report.Signature) error {
			return report.PeriodMarkdown(w, p, report.MarkdownOptions{Signed: s})
		}, true},
	}
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
		return report.PeriodJSON(e.Out, p)
	case c.Markdown == "-":
		return nil
	case !c.filesAsked():
		return report.PeriodText(e.Out, p, e.text())
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
