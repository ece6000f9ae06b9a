package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math"
	"strconv"
	"strings"
)

// Find implements Store.
func (s *Results) Find(ctx context.Context, f Filter) (found []Entry, more bool, err error) {
	err = s.Engine.Read(ctx, "searching in", func(ctx context.Context) error {
		found, err = s.find(ctx, f)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	if len(found) > f.limit() {
		return found[:f.limit()], true, nil
	}
	return found, false, nil
}

// find returns one entry more than the filter's limit, where there is one.
func (s *Results) find(ctx context.Context, f Filter) ([]Entry, error) {
	q := f.query(s.Dialect)
	if err := s.after(ctx, &q, f.Before); err != nil {
		return nil, err
	}
	rows, err := s.DB.QueryContext(ctx, q.sql(f.limit()), q.args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []Entry
	for rows.Next() {
		e, err := scanEntry(rows)
		if err != nil {
			return nil, err
		}
		found = append(found, e)
	}
	return found, rows.Err()
}

// limit returns the largest number of entries wanted.
func (f Filter) limit() int {
	if f.Limit < 0 {
		return math.MaxInt32
	}
	return cmp.Or(f.Limit, DefaultLimit)
}

// query holds SQL conditions, with the values for their parameters.
type query struct {
	conditions []string
	args       []any
}

// and adds a condition, with a question mark for each value.
func (q *query) and(condition string, args ...any) {
	q.conditions = append(q.conditions, numbered(condition, len(q.args)))
	q.args = append(q.args, args...)
}

// sql returns the statement, for one row more than the limit: that shows whether there
// are more.
func (q *query) sql(limit int) string {
	text := "SELECT id, entry FROM results"
	if len(q.conditions) > 0 {
		text += " WHERE " + strings.Join(q.conditions, " AND ")
	}
	q.args = append(q.args, int64(limit)+1)
	return text + numbered(" ORDER BY started DESC, id DESC LIMIT ?", len(q.args)-1)
}

// numbered replaces the question marks of a statement by $1, $2 and so on, which all databases understand; before are in front of it.
func numbered(statement string, before int) string {
	parts := strings.Split(statement, "?")
	var b strings.Builder
	for i, part := range parts[:len(parts)-1] {
		b.WriteString(part + "$" + strconv.Itoa(before+i+1))
	}
	return b.String() + parts[len(parts)-1]
}

// query returns a filter as SQL, without its page.
func (f Filter) query(d Dialect) (q query) {
	marked := func(kind, value string) {
		q.and(d.Marked, kind, value)
	}
	for _, h := range f.Hosts {
		marked(hostMark, h)
	}
	for key, value := range f.Labels {
		marked(labelMark+key, value)
	}
	if f.Pair != "" {
		marked(pairMark, f.Pair)
	}
	if f.Plan != "" {
		q.and("plan = ?", f.Plan)
	}
	if len(f.Commands) > 0 {
		args := make([]any, len(f.Commands))
		for i, c := range f.Commands {
			args[i] = c
		}
		q.and("command IN (?"+strings.Repeat(", ?", len(args)-1)+")", args...)
	}
	if f.Verdict != "" {
		q.and("verdict = ?", f.Verdict)
	}
	if !f.Since.IsZero() {
		q.and("started >= ?", sortTime(f.Since))
	}
	if !f.Until.IsZero() {
		q.and("started < ?", sortTime(f.Until))
	}
	if f.Failed != nil {
		q.and("failed = ?", *f.Failed)
	}
	if f.Prefix != "" {
		q.and("id >= ? AND id < ?", f.Prefix, f.Prefix+"~") // which sorts after all characters of an id
	}
	if f.Text != "" {
		q.and(d.Contains, strings.ToLower(f.Text))
	}
	return q
}

// after selects what follows an id in the order. A deleted id still gives the second
// that it began in.
func (s *Results) after(ctx context.Context, q *query, id string) error {
	if id == "" {
		return nil
	}
	var started string
	err := s.DB.QueryRowContext(ctx, "SELECT started FROM results WHERE id = $1", id).Scan(&started)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		q.and("id < ?", id)
		return nil
	case err != nil:
		return err
	}
	q.and("(started, id) < (?, ?)", started, id)
	return nil
}
