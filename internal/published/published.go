// Package published holds figures that others have published, as context for a measurement. Absolute figures are
// not comparable between machines; the effects of streams and window are.
//
// The rows are in results.csv, embedded. A row that its own source marks as doubtful is flagged suspect, and no
// lookup returns it.
package published

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"thru/internal/unit"
)

//go:embed results.csv
var results string

// Scenarios of the four rungs of a ladder, the lowest first.
const (
	Localhost      = "localhost"       // one host that sends to itself
	SameHypervisor = "same-hypervisor" // two guests of one host, through its virtual switch
	SameVLAN       = "same-vlan-25g"   // two hosts in one VLAN, with ports of 25 Gb/s
	Interconnect   = "dci-10g"         // two data centers, connected by 10 Gb/s
)

// DefaultWindow is Row.Window if the tool chose it.
const DefaultWindow = 0

// Range is a published range; Low equals High for a single figure.
type Range struct{ Low, High float64 }

// Row is one published result. A nil field was not published.
type Row struct {
	ID        string
	Source    string // letter of the source; SourceTitle names it
	Scenario  string // "localhost", "same-hypervisor", ...
	Tool      string // "iperf2"
	Streams   *Range
	Window    *int64   // bytes; DefaultWindow is the tool's default
	Direction string   // "tx", "rx", "read" or ""
	LowBps    *float64 // bit/s
	HighBps   *float64 // bit/s
	ServerCPU *Range   // percent of the whole machine
	ClientCPU *Range
	Note      string
	Suspect   bool // its source marks it as doubtful: never a reference
	Above     bool // its note begins with that: above what a usual link carries
}

// Table is a set of published rows.
type Table struct{ rows []Row }

// Load returns the embedded rows. It fails only if the program was built
// from a broken file, which a test prevents.
func Load() (Table, error) {
	return Parse(strings.NewReader(results))
}

// All returns every row, suspect ones too.
func (t Table) All() []Row { return slices.Clone(t.rows) }

// Scenario returns the rows of a scenario that can serve as a reference.
func (t Table) Scenario(name string) []Row {
	return unit.Filtered(t.rows, func(r Row) bool { return r.Scenario == name && !r.Suspect })
}

// Find returns the reference row of a scenario for a number of streams and a
// window in bytes.
func (t Table) Find(scenario string, streams int, window int64) (Row, bool) {
	for _, r := range t.Scenario(scenario) {
		if r.holdsStreams(streams) && r.Window != nil && *r.Window == window {
			return r, true
		}
	}
	return Row{}, false
}

func (r Row) holdsStreams(n int) bool {
	return r.Streams != nil && r.Streams.Low <= float64(n) && float64(n) <= r.Streams.High
}

// SourceTitle returns the title of the work that a row's source letter stands for.
func SourceTitle(letter string) string {
	switch letter {
	case "A":
		return "10G Ethernet: Network Performance in ESX 4.0 U1 (AnandTech, 2010)"
	case "B":
		return "Network benchmark (iperf) of 10Gb Data Center Interconnect (2025)"
	case "C":
		return "Cisco guide C07-601040 (2010)"
	case "S":
		return "Improving VM to VM network throughput on an ESXi platform (2013)"
	default:
		return fmt.Sprintf("source %q", letter)
	}
}
