package esx

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// Limits of esxtop's output: bytes of a heading, and columns.
const (
	mostField   = 512
	mostColumns = 1 << 20
	mostKept    = 20_000
)

// column is a column that is kept: its counter and its object.
type column struct {
	object  string // "Group Cpu", "Vcpu", "Network Port", "Physical Cpu", "Group Memory"
	of      string // between its parentheses: "44561:web1", "vSwitch0:33554439:69637:web1"
	counter string // measure.Counter*
	native  string // esxtop's name: "% Ready"
	factor  float64
}

// wanted returns the measure counter of a column of esxtop -b by object and
// counter name, in perfmon's names, and the factor; "" for columns that are
// not kept. Port counters come from rounds.go, which reads counts and not
// rates.
func wanted(object, counter string) (name string, factor float64) {
	if object == "Group Memory" {
		factor = 1 << 20
	} else {
		factor = 1
	}
	if object == "Vcpu" {
		object = "Group Cpu" // a group has the same counters
	}
	return map[string]string{
		`Group Cpu\% Ready`: measure.CounterReady, `Group Cpu\% CoStop`: measure.CounterCoStop, `Group Cpu\% Max Limited`: measure.CounterLimited,
		`Group Cpu\% Swap Wait`: measure.CounterSwapWait, `Group Cpu\% Used`: measure.CounterUsed, `Physical Cpu\% Util Time`: measure.CounterUsage,
		`Group Memory\Memctl MBytes`: measure.CounterBalloon, `Group Memory\Swapped MBytes`: measure.CounterSwapped,
		`Group Memory\Swap Read MBytes/sec`:       measure.CounterSwapIn,
		`Network Port\% Outbound Packets Dropped`: measure.CounterTxDropPct,
		`Network Port\% Received Packets Dropped`: measure.CounterRxDropPct, `Network Port\% Receive Packets Dropped`: measure.CounterRxDropPct,
	}[object+`\`+counter], factor
}

// heading matches a column name: \\HOST\OBJECT(INSTANCE)\COUNTER.
var heading = unit.Pattern(`^\\\\[^\\]*\\([^\\(]+)\((.*)\)\\([^\\]+)$`)

// top reads esxtop -b: a line of headings, then a line for each sample. Lines
// may have megabytes; only wanted columns are kept.
type top struct {
	in      *bufio.Reader
	columns []column
	at      map[int]int // for each column of the output its index among the kept ones
	total   int
}

// errTop means that an output is not that of esxtop -b.
var errTop = errors.New("it is not output of esxtop -b")

// newTop reads the headings, and keeps the columns that keep accepts.
func newTop(in io.Reader, keep func(object, of string) bool) (*top, error) {
	t := &top{in: bufio.NewReaderSize(in, 64<<10), at: map[int]int{}}
	for n := 0; ; n++ {
		text, last, err := t.field()
		if err != nil {
			return nil, err
		}
		if n == 0 && !strings.HasPrefix(text, "(PDH-CSV") {
			return nil, fmt.Errorf("%w: it begins with %.40q", errTop, text)
		}
		if m := heading().FindStringSubmatch(text); m != nil {
			if name, factor := wanted(m[1], m[3]); name != "" && len(t.columns) < mostKept && keep(m[1], m[2]) {
				t.at[n] = len(t.columns)
				t.columns = append(t.columns, column{m[1], m[2], name, m[3], factor})
			}
		}
		if n >= mostColumns {
			return nil, fmt.Errorf("%w: more than %d columns", errTop, mostColumns)
		}
		if last {
			t.total = n + 1
			return t, nil
		}
	}
}

// next reads a sample: the values of the kept columns, NaN where there is
// none. An incomplete line is no sample.
func (t *top) next() ([]float64, error) {
	values := make([]float64, len(t.columns))
	for i := range values {
		values[i] = math.NaN()
	}
	for n := 0; ; n++ {
		text, last, err := t.field()
		if err != nil {
			return nil, err
		}
		if i, ok := t.at[n]; ok {
			if v, err := strconv.ParseFloat(text, 64); err == nil && v >= 0 && !math.IsInf(v, 0) {
				values[i] = v * t.columns[i].factor
			}
		}
		if !last {
			continue
		}
		if n+1 < t.total {
			return nil, fmt.Errorf("%w: a line of %d columns, of %d", errTop, n+1, t.total)
		}
		return values, nil
	}
}

// field reads up to a comma or the end of a line, without quotes. Too long a
// field is cut.
func (t *top) field() (text string, last bool, err error) {
	var b []byte
	quoted := false
	for {
		c, err := t.in.ReadByte()
		if err != nil {
			return "", false, err // also for a line without a line end: it may be cut
		}
		switch {
		case c == '"':
			quoted = !quoted
		case c == '\n':
			return string(b), true, nil
		case c == ',' && !quoted:
			return string(b), false, nil
		case c != '\r' && len(b) < mostField:
			b = append(b, c)
		}
	}
}
