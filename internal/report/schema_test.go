package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"thru/internal/measure"
)

const (
	schemaFile = "../../docs/result.schema.json"
	guideFile  = "../../docs/result.md"
)

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDocumentsFollowSchema(t *testing.T) {
	s := compileSchema(t)
	for name, d := range goldenDocuments() {
		var text bytes.Buffer
		if err := JSON(&text, d); err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(&text)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSchemaRefuses(t *testing.T) {
	s := compileSchema(t)
	const good = `{"schema":"thru.result/2","thru_version":"1","command":"test","started_at":"2026-03-14T09:26:53Z","elapsed_ns":1,"error":null,"end_points":[],"cells":[]`
	tests := []struct {
		text string
		ok   bool
	}{
		{good + `}`, true},
		{good + `,"a_later_key":1}`, true},
		{good + `,"warnings":[1]}`, false},
		{good + `,"verdict":{"pass":true}}`, false},
		{strings.Replace(good, `"cells":[]`, `"cells":null`, 1) + `}`, false},
		{strings.Replace(good, `"elapsed_ns":1,`, ``, 1) + `}`, false},
		{strings.Replace(good, `result/2`, `result/3`, 1) + `}`, false},
		{strings.Replace(good, `"elapsed_ns":1`, `"elapsed_ns":1.5`, 1) + `}`, false},
	}
	for _, tt := range tests {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(tt.text))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(v); (err == nil) != tt.ok {
			t.Errorf("%s: %v, want ok %v", tt.text, err, tt.ok)
		}
	}
}

// typesOf returns the structs of measure that a struct refers to.
func typesOf(root reflect.Type) []reflect.Type {
	var found []reflect.Type
	var walk func(reflect.Type)
	walk = func(x reflect.Type) {
		switch x.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(x.Elem())
		case reflect.Struct:
			if x.PkgPath() != reflect.TypeFor[measure.Document]().PkgPath() || slices.Contains(found, x) {
				return
			}
			found = append(found, x)
			for _, f := range reflect.VisibleFields(x) {
				if !f.Anonymous {
					walk(f.Type)
				}
			}
		}
	}
	walk(root)
	return found
}

// object is the part of a JSON Schema that the test uses.
type object struct {
	Properties map[string]any    `json:"properties"`
	Required   []string          `json:"required"`
	Defs       map[string]object `json:"$defs"`
}

// TestKeysAreDescribed compares guides and schemas with the types: every key in its section, required if it
// is always written, and no other key.
func TestKeysAreDescribed(t *testing.T) {
	keysAreDescribed(t, reflect.TypeFor[measure.Document](), schemaFile, guideFile)
	keysAreDescribed(t, reflect.TypeFor[measure.Compared](), comparisonSchema, "../../docs/comparison.md")
}

func keysAreDescribed(t *testing.T, of reflect.Type, schemaFile, guideFile string) {
	t.Helper()
	text, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	var root object
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile(guideFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range typesOf(of) {
		def := root
		if x != of {
			def = root.Defs[x.Name()]
		}
		section := sectionOf(string(guide), x.Name())
		keys := 0
		for _, f := range reflect.VisibleFields(x) {
			if f.Anonymous {
				continue // its keys are among those of x
			}
			key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if key == "" || key == "-" {
				t.Errorf("%s.%s has no JSON key", x.Name(), f.Name)
				continue
			}
			keys++
			always := options == ""
			if _, ok := def.Properties[key]; !ok || always != slices.Contains(def.Required, key) {
				t.Errorf("the schema of %s.%s: described %v, want it required %v", x.Name(), key, ok, always)
			}
			line := lineOf(section, "| `"+key+"` |")
			if line == "" || always != strings.Contains(line, "| always |") {
				t.Errorf("%s, section %s: %q does not describe %s (always %v)", guideFile, x.Name(), line, key, always)
			}
		}
		if len(def.Properties) != keys || strings.Count(section, "\n| `") != keys {
			t.Errorf("%s has %d keys; the schema describes %d, %s %d", x.Name(), keys, len(def.Properties), guideFile, strings.Count(section, "\n| `"))
		}
	}
}

func sectionOf(guide, name string) string {
	_, after, _ := strings.Cut(guide, fmt.Sprintf("\n## %s\n", name))
	section, _, _ := strings.Cut(after, "\n## ")
	return section
}

func lineOf(section, prefix string) string {
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, prefix) {
			return line
		}
	}
	return ""
}
