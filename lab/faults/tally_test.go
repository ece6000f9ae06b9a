package faults

import "fmt"

// Head is the line above the rows.
func Head() string {
	return fmt.Sprintf("%-26s %-2s %-20s %-20s %-9s %-9s %10s %6s", "fault", "", "expected", "first finding", "confidence", "place", "Mb/s", "s")
}

// Tally counts rows.
type Tally struct {
	Rows, Right, FalseAlarms, WrongCertains int
	Wrong                                   []Row
}

// Add counts a row.
func (t *Tally) Add(r Row) {
	t.Rows++
	if r.Right() {
		t.Right++
		return
	}
	t.Wrong = append(t.Wrong, r)
	if r.FalseAlarm() {
		t.FalseAlarms++
	}
	if r.WrongCertain() {
		t.WrongCertains++
	}
}

// String is the summary.
func (t *Tally) String() string {
	return fmt.Sprintf("%d rows: %d right, %d wrong; of these %d false alarms, %d certain", t.Rows, t.Right, len(t.Wrong), t.FalseAlarms, t.WrongCertains)
}
