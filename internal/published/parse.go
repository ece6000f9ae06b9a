package published

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

const gigabit = 1e9 // bit/s; the file's rates are in Gb/s

// columns returns the header that the file must have.
func columns() []string {
	return []string{"id", "source", "scenario", "tool", "streams", "window", "direction",
		"low_gbps", "high_gbps", "cpu_server_pct", "cpu_client_pct", "note"}
}

// Parse reads rows from CSV (RFC 4180 with # comments) whose first record
// names the columns.
func Parse(r io.Reader) (Table, error) {
	in := csv.NewReader(r)
	in.Comment = '#'
	header, err := in.Read()
	if err != nil {
		return Table{}, fmt.Errorf("published: reading the header: %w", err)
	}
	if !slices.Equal(header, columns()) {
		return Table{}, fmt.Errorf("published: columns are %q, want %q", header, columns())
	}
	var t Table
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return Table{}, fmt.Errorf("published: reading: %w", err)
		}
		row, err := parseRow(record)
		if err != nil {
			return Table{}, fmt.Errorf("published: row %q: %w", record[0], err)
		}
		t.rows = append(t.rows, row)
	}
}

func parseRow(f []string) (Row, error) {
	row := Row{ID: f[0], Source: f[1], Scenario: f[2], Tool: f[3], Direction: f[6], Note: f[11]}
	row.Suspect, row.Above = strings.HasPrefix(row.Note, "suspect"), strings.HasPrefix(row.Note, "above ")
	if row.ID == "" {
		return Row{}, errors.New("no id")
	}
	var errs [6]error
	row.Streams, errs[0] = parseRange(f[4])
	row.Window, errs[1] = parseWindow(f[5])
	row.LowBps, errs[2] = parseRate(f[7])
	row.HighBps, errs[3] = parseRate(f[8])
	row.ServerCPU, errs[4] = parseRange(f[9])
	row.ClientCPU, errs[5] = parseRange(f[10])
	if err := errors.Join(errs[:]...); err != nil {
		return Row{}, err
	}
	if row.LowBps != nil && row.HighBps != nil && *row.LowBps > *row.HighBps {
		return Row{}, errors.New("the low rate is above the high one")
	}
	return row, nil
}

// parseRange reads "4", "25-35" or nothing.
func parseRange(s string) (*Range, error) {
	if s == "" {
		return nil, nil
	}
	low, high, isRange := strings.Cut(s, "-")
	if !isRange {
		high = low
	}
	a, errA := parseNumber(low)
	b, errB := parseNumber(high)
	if err := errors.Join(errA, errB); err != nil {
		return nil, err
	}
	if a > b {
		return nil, fmt.Errorf("%q: the low end is above the high one", s)
	}
	return &Range{Low: a, High: b}, nil
}

// parseWindow reads "d", "800k", "1m" (binary prefixes, as iperf2 means them) or nothing.
func parseWindow(s string) (*int64, error) {
	switch {
	case s == "":
		return nil, nil
	case s == "d":
		return new(int64(DefaultWindow)), nil
	}
	shift := map[byte]uint{'k': 10, 'm': 20}[s[len(s)-1]]
	if shift == 0 {
		return nil, fmt.Errorf("window %q: want d, or a size that ends in k or m", s)
	}
	n, err := strconv.ParseUint(s[:len(s)-1], 10, 32)
	if err != nil {
		return nil, fmt.Errorf("window %q: %w", s, err)
	}
	return new(int64(n << shift)), nil
}

func parseRate(s string) (*float64, error) {
	if s == "" {
		return nil, nil
	}
	v, err := parseNumber(s)
	if err != nil {
		return nil, err
	}
	return new(v * gigabit), nil
}

// parseNumber accepts possible values of a measured figure: finite, not negative.
func parseNumber(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, err
	}
	if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return 0, fmt.Errorf("%q is no measured figure", s)
	}
	return v, nil
}
