package measure

import (
	"bytes"
	"fmt"
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

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"schema":"thru.result/1","cells":[{"runs":[{"flows":[{}]}]}]}`))
	f.Add([]byte(`{"schema":"thru.result/2","cells":[{"runs":[{"flows":[{}]}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) { Decode(text) })
}
