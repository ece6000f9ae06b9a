package measure

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Decode reads every document in the test data.
func TestDecodeWhatIsThere(t *testing.T) {
	files, err := filepath.Glob("../report/testdata/*.json.golden")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d documents, %v", len(files), err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(text); err != nil && bytes.Contains(text, []byte(`"`+Schema+`"`)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Decode refuses text that would take far more memory than its length.
func TestDecodeIsBounded(t *testing.T) {
	many := func(element string) string { return strings.TrimSuffix(strings.Repeat(element+",", 400_000), ",") }
	head := fmt.Sprintf(`{"schema":%q,`, Schema)
	for name, text := range map[string]string{
		"numbers as cells":        head + `"cells":[` + many("0") + `]}`,
		"texts as cells":          head + `"cells":[` + many(`""`) + `]}`,
		"arrays as cells":         head + `"cells":[` + many(`[]`) + `]}`,
		"empty cells":             head + `"cells":[` + many(`{}`) + `]}`,
		"null cells":              head + `"cells":[` + many(`null`) + `]}`,
		"by another case":         head + `"CELLS":[` + many(`{}`) + `]}`,
		"by a letter that folds":  head + `"cell\u017f":[` + many(`{}`) + `]}`,
		"within a cell":           head + `"cells":[{"runs":[{"flows":[` + many(`{}`) + `]}]}]}`,
		"pointers":                head + `"end_points":[` + many(`{"facts":{}}`) + `]}`,
		"a number for the cells":  head + `"cells":7}`,
		"an object for the cells": head + `"cells":{}}`,
		"a text for an object":    head + `"verdict":"pass"}`,
		"deep":                    head + `"x":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`,
		"of another schema":       `{"schema":"thru.result/9"}`,
		"of none":                 `{}`,
		"an array":                `[]`,
		"nothing":                 ``,
		"cut off":                 head + `"cells":[{"from":"a"`,
		"two documents":           head + `"cells":[]}` + head + `"cells":[]}`,
	} {
		if d, err := Decode([]byte(text)); err == nil {
			t.Errorf("%s: is read, with %d cells", name, len(d.Cells))
		}
	}
	for name, text := range map[string]string{
		"the least":       head + `"cells":[]}`,
		"unknown fields":  head + `"cells":[],"more":{"and":[1,{"x":[[]]}]}}`,
		"null for a list": head + `"cells":null,"verdict":null}`,
	} {
		if _, err := Decode([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDecodeRounded: jq and JavaScript round 64-bit integers to float64. A document stays readable after that.
func TestDecodeRounded(t *testing.T) {
	const text = `{"schema":%q,"elapsed_ns":%s,"cells":[{"from":"a","spec":{"rate_bps": %s },"runs":[{"flows":[{"sender":{"streams":[{"tcp":{"delivered_bytes":7,"max_pacing_rate_bytes_per_s":%s}}]}}]}]}]}`
	for _, c := range []struct {
		elapsed, rate, pacing string
		wantElapsed, wantRate int64
		wantPacing            uint64
	}{
		{"5", "6", "7", 5, 6, 7},
		{"9223372036854775807", "9007199254740993", "18446744073709551615", math.MaxInt64, 9007199254740993, math.MaxUint64},
		{"9223372036854776000", "1e+18", "18446744073709552000", math.MaxInt64, 1e18, math.MaxUint64},
		{"-9223372036854775808", "1.5e1", "1.8446744073709552e+19", math.MinInt64, 15, math.MaxUint64},
	} {
		d, err := Decode(fmt.Appendf(nil, text, Schema, c.elapsed, c.rate, c.pacing))
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		x := &d.Cells[0]
		if got := x.Runs[0].Flows[0].Sender.Streams[0].TCP.MaxPacingRate; d.ElapsedNs != c.wantElapsed || int64(x.Spec.Rate) != c.wantRate || *got != c.wantPacing {
			t.Errorf("%+v: %d, %d, %d", c, d.ElapsedNs, x.Spec.Rate, *got)
		}
	}
	for _, wrong := range []string{`1.5`, `"7"`, `1e400`} {
		if _, err := Decode(fmt.Appendf(nil, text, Schema, wrong, "1", "1")); err == nil {
			t.Errorf("%s is taken for an integer", wrong)
		}
	}
	if _, err := Decode(fmt.Appendf(nil, text, Schema, "1", "1", "-1")); err == nil {
		t.Error("-1 is taken for an unsigned integer")
	}
	for _, far := range [][2]string{{"-9.3e18", "1"}, {"1e19", "1"}, {"99999999999999999999", "1"}, {"1", "1e20"}, {"1", "18446744073709560000"}} {
		if _, err := Decode(fmt.Appendf(nil, text, Schema, far[0], "1", far[1])); err == nil || !strings.Contains(err.Error(), "does not fit the 64 bits") {
			t.Errorf("%v: %v", far, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"schema":"thru.result/1","cells":[{"runs":[{"flows":[{}]}]}]}`))
	f.Add([]byte(`{"schema":"thru.result/2","cells":[{"runs":[{"flows":[{}]}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) { Decode(text) })
}
