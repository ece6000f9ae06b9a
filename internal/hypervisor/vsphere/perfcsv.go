package vsphere

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/vmware/govmomi/vim25/types"
)

// instant is when a sample ended, by the clock that stamped it, and how many
// seconds it covers.
type instant struct {
	ended   time.Time
	seconds int
}

// readInstants reads PerfEntityMetricCSV.sampleInfoCSV: "20,2026-03-01T12:00:20Z,20,..."
// (vSphere Web Services API reference).
func readInstants(csv string) ([]instant, error) {
	if csv == "" {
		return nil, nil
	}
	fields := strings.Split(csv, ",")
	if len(fields)%2 != 0 {
		return nil, fmt.Errorf("%d fields of intervals and times: one is missing", len(fields))
	}
	var all []instant
	for i := 0; i < len(fields); i += 2 {
		seconds, err := strconv.Atoi(fields[i])
		if err != nil || seconds <= 0 || seconds > 86400 {
			return nil, fmt.Errorf("interval %.40q", fields[i])
		}
		ended, err := time.Parse(time.RFC3339, fields[i+1])
		if err != nil {
			return nil, fmt.Errorf("time %.40q", fields[i+1])
		}
		all = append(all, instant{ended, seconds})
	}
	return all, nil
}

// readValues parses PerfMetricSeriesCSV.value: "12,0,-1"; a negative number
// stands for a missing value. There must be as many values as instants, since
// a value without a time is no sample.
func readValues(of types.PerfMetricSeriesCSV, instants int) ([]int64, error) {
	if of.Value == "" {
		return nil, nil
	}
	fields := strings.Split(of.Value, ",")
	if len(fields) != instants {
		return nil, fmt.Errorf("%d values of %d moments", len(fields), instants)
	}
	all := make([]int64, len(fields))
	for i, f := range fields {
		if f == "" { // missing, like -1
			f = "-1"
		}
		var err error
		if all[i], err = strconv.ParseInt(f, 10, 64); err != nil {
			return nil, fmt.Errorf("value %.40q", f)
		}
	}
	return all, nil
}
