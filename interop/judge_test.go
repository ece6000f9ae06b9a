package interop

import (
	"cmp"
	"fmt"
	"math"
)

// Tolerance is the largest difference between the figures of both ends, as a share of the greater one.
const Tolerance = 0.03

// LossTolerance is the largest difference between the datagram counts of both ends: no end misses those after
// the last one that arrived.
const LossTolerance = 4

// Row is a line of the table.
type Row struct {
	Who, What      string
	Client, Server string // the figure of each end
	Difference     string
	Miss           string // why it fails; empty: it passes
}

// missed reports whether the row fails.
func (r Row) missed() bool { return r.Miss != "" }

// head names the columns.
var head = Row{Who: "client -> server", What: "what", Client: "client's figure", Server: "server's figure", Difference: "apart"}

// String returns the row in columns.
func (r Row) String() string {
	verdict := cmp.Or(r.Miss, "ok")
	if r == head {
		verdict = "verdict"
	} else if r.Miss != "" {
		verdict = "MISS: " + r.Miss
	}
	return fmt.Sprintf("%-28s %-26s %16s %16s %8s  %s", r.Who, r.What, r.Client, r.Server, r.Difference, verdict)
}

// Head returns the line above the rows.
func Head() string { return head.String() }

// Judge compares the reports of both ends of a test: a row for each of its directions.
func Judge(who string, s Shape, client, server Report) []Row {
	var rows []Row
	if s.Direction != Reverse {
		rows = append(rows, judgeHalf(client.Forward.Sent, server.Forward.Received))
	}
	if s.Direction != Forward {
		rows = append(rows, judgeHalf(client.Back.Received, server.Back.Sent))
	}
	for i := range rows {
		rows[i].Who, rows[i].What = who, s.String()
		if len(rows) > 1 {
			rows[i].What += []string{" forward", " back"}[i]
		}
	}
	return rows
}

// judgeHalf compares the ends' own figures of one direction.
func judgeHalf(client, server *float64) Row {
	r := Row{Client: megabits(client), Server: megabits(server)}
	if client == nil || server == nil {
		r.Miss = "an end says nothing"
		return r
	}
	apart := math.Abs(*client-*server) / max(*client, *server)
	r.Difference = fmt.Sprintf("%.2f%%", 100*apart)
	if !(apart <= Tolerance) {
		r.Miss = fmt.Sprintf("more than %g%% apart", 100*Tolerance)
	}
	return r
}

func megabits(bps *float64) string {
	if bps == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f Mb/s", *bps/1e6)
}

// JudgeLoss compares the losses of one direction, as both ends count or receive them, with the drops of the
// path. Datagrams that the receiving host had no socket for may count as lost, or have arrived after the
// test.
func JudgeLoss(who string, s Shape, client, server Report, dropped, unplaced int64) Row {
	c, v := client.Forward.Lost, server.Forward.Lost
	if s.Direction == Reverse {
		c, v = client.Back.Lost, server.Back.Lost
	}
	r := Row{Who: who, What: s.String() + " 1% loss", Client: count(c), Server: count(v), Difference: fmt.Sprintf("of %d", dropped)}
	if c == nil && v == nil {
		r.Miss = "no end counts losses"
		return r
	}
	if c != nil && v != nil && *c != *v {
		r.Miss = "the ends tell different numbers"
	}
	for _, n := range []*int64{c, v} {
		if n != nil && (*n < dropped-LossTolerance || *n > dropped+unplaced+LossTolerance) {
			r.Miss = fmt.Sprintf("the path has dropped %d, and the host had no place for %d", dropped, unplaced)
		}
	}
	if dropped == 0 {
		r.Miss = "the path has dropped nothing: the lab is broken"
	}
	return r
}

func count(n *int64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprintf("%d lost", *n)
}
