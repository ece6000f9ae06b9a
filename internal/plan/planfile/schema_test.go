package planfile

import (
	"cmp"
	"encoding/json"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"thru/examples"
	"thru/internal/plan"
	"thru/internal/plan/option"
)

const (
	schemaFile = "../../../docs/plan.schema.json"
	guideFile  = "../../../docs/plan.md"
)

func schema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// valid checks a plan against the schema as an editor does.
func valid(s *jsonschema.Schema, text string) error {
	var x any
	if err := yaml.Unmarshal([]byte(text), &x); err != nil {
		return err
	}
	b, err := json.Marshal(x)
	if err != nil {
		return err
	}
	inst, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
	if err != nil {
		return err
	}
	return s.Validate(inst)
}

// TestExamples: every example is a plan that fits the schema, is a starter, names the command to run it, and
// has a description in its first line.
func TestExamples(t *testing.T) {
	s := schema(t)
	files, err := fs.Glob(examples.Files, "*.yaml")
	if err != nil || len(files) != len(Starters()) {
		t.Errorf("%d files, %d starters: %v", len(files), len(Starters()), err)
	}
	for _, kind := range Starters() {
		text, err := Starter(kind)
		if err != nil {
			t.Fatal(err)
		}
		if err := valid(s, string(text)); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		f, err := Parse(kind+".yaml", text)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if !strings.HasPrefix(string(text), "# ") || !strings.Contains(string(text), "thru ") || f.Name == "plan" {
			t.Errorf("%s says neither what it is for nor how it is run", kind)
		}
		p, err := f.Expand(fleet(), func(string) Found { return Found{CPUs: 4} })
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if len(p.Warnings) > 0 {
			t.Errorf("%s: warnings %q", kind, p.Warnings)
		}
		if took := p.Time(); took < 10*time.Second || took > 4*time.Hour {
			t.Errorf("%s takes %v", kind, took)
		}
		f.Hasten(200 * time.Millisecond)
		if p, err = f.Expand(fleet(), nil); err != nil || p.Time() > time.Minute {
			t.Errorf("%s, hastened: %v, %v", kind, p.Time(), err)
		}
		t.Logf("%s: %d steps, %d runs, hastened %v\n%s", kind, len(p.Steps), p.Runs(), p.Time(), strings.Join(shown(p), "\n"))
	}
	if _, err := Starter("mash"); err == nil || !strings.Contains(err.Error(), "mash") {
		t.Errorf("an unknown starter: %v", err)
	}
}

// beyond are the mistakes of the table that no schema can detect: combinations of words, references within
// the file, quantities, and peculiarities of YAML.
func beyond() []string {
	return []string{"by hand, one", "by hand, alike", "by hand, a path", "by hand, order", "by hand, command", "by hand, wait", "blocks of nothing", "blocks, precision",
		"a size", "a time", "zero", "too large", "too long", "link rate", "precision", "fairness of 2", // quantities
		"contradiction", "in a variant", "at an axis", "two amounts", "two rates", "two sends", "one connection", "connections back", "combinations",
		"variant and axis", "variant twice", "interleaved", "at once", "unknown end", "end twice", "a scheme", "another local", "local elsewhere",
		"data of iperf3", "no controller", "match and name", "no label", "mesh of one", "mesh of none", "mesh from", "no to", "matrix of what", "by of a mesh",
		"uneven", "many from", "many to", "local listens", "iperf3 and b", "iperf3 and itself", "iperf3 at once", "iperf3 requests", "rungs and axes",
		"rungs and streams", "rungs both ways", "rung twice", "rung nowhere", "where of what", "where never", "where without", "rung of a target",
		"slow link", "port too high", "port zero", "port of letters", "ssh nowhere", "ssh nobody", "ssh option", "same place",
		"watch, backwards", "watch, password", "axis twice", "a tag", "two documents",
	}
}

// TestSchemaRefuses: schema and parser refuse the same plans, except for what a schema cannot detect.
func TestSchemaRefuses(t *testing.T) {
	s := schema(t)
	for name, c := range bad {
		err := valid(s, "thru: 1\n"+c.text+"\n")
		if known := slices.Contains(beyond(), name); known != (err == nil) {
			t.Errorf("%s: refused by the schema: %v, expected: %v", name, err, !known)
		}
	}
	for _, name := range beyond() {
		if _, ok := bad[name]; !ok {
			t.Errorf("%s is no mistake of the table", name)
		}
	}
}

// TestSchemaTakes: the schema accepts what the parser accepts: each key once, in each form.
func TestSchemaTakes(t *testing.T) {
	s := schema(t)
	for _, key := range option.Keys(option.OfTraffic) {
		o := option.Find(key)
		value, _, _ := strings.Cut(strings.TrimSuffix(o.Like, " or off"), " or ")
		value, _, _ = strings.Cut(value, ", ")
		if o.Kind == option.Whole && o.Words == nil {
			value = map[string]string{"mss": "1460"}[key]
			value = cmp.Or(value, "4")
		}
		extra := map[string]string{"mss": "", "one_connection": ", direction: bidir", "dont_fragment": ", protocol: udp", "search": ", protocol: udp", "rate": ", kind: rr"}[key]
		for _, text := range []string{
			"pairs: [{from: local, to: local}]\ntraffic: {" + key + ": " + value + extra + "}",
			"rungs: [{name: a rung, pair: [local, local]}]\ntraffic: {" + key + ": " + value + extra + "}",
			"pairs: [{from: local, to: local}]\naxes: {" + key + ": [" + value + "]}\ntraffic: {streams: 1" + extra + "}",
			"pairs: [{from: local, to: local}]\nvariants: [{name: x, " + key + ": " + value + extra + "}, {name: y}]",
		} {
			_, err := Parse("plan.yaml", []byte("thru: 1\n"+text))
			rung := strings.HasPrefix(text, "rungs") && err != nil && strings.Contains(err.Error(), "rung")
			twice := strings.Contains(text, "axes") && extra != ""
			if directions := key == "direction"; err != nil && !rung && !twice && !directions {
				t.Errorf("%s: %v", text, err)
			}
			if serr := valid(s, "thru: 1\n"+text); err == nil && serr != nil {
				t.Errorf("the schema refuses %s: %v", text, serr)
			}
		}
	}
}

// TestKeysAreDescribed: docs/plan.md has a row for each key of the schema, in the section of its kind.
func TestKeysAreDescribed(t *testing.T) {
	var root struct {
		Properties map[string]any
		Defs       map[string]struct{ Properties map[string]any } `json:"$defs"`
	}
	text, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile(guideFile)
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]map[string]any{
		"The file": root.Properties, "End points": root.Defs["end_point"].Properties, "Pairs": root.Defs["pairs"].Properties,
		"Traffic": root.Defs["settings"].Properties, "Targets": root.Defs["target"].Properties, "Rungs": root.Defs["rung"].Properties,
		"Manual steps": root.Defs["by_hand"].Properties, "Watch": root.Defs["watch"].Properties,
	}
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|")
	for name, keys := range sections {
		_, section, ok := strings.Cut(string(guide), "\n## "+name+"\n")
		if !ok || len(keys) < 4 {
			t.Errorf("section %s: %v, %d keys", name, ok, len(keys))
			continue
		}
		section, _, _ = strings.Cut(section, "\n## ")
		var said []string
		for _, m := range row.FindAllStringSubmatch(section, -1) {
			said = append(said, m[1])
			if _, ok := keys[m[1]]; !ok && !slices.Contains([]string{mesh, ring, matrix}, m[1]) {
				t.Errorf("%s: the schema has no %s", name, m[1])
			}
		}
		for k := range keys {
			if !slices.Contains(said, k) {
				t.Errorf("%s: docs/plan.md says nothing of %s", name, k)
			}
		}
	}
	if a, b := option.Keys(option.OfTraffic), root.Defs["settings"].Properties; len(a) != len(b) {
		t.Errorf("%d settings, %d in the schema", len(a), len(b))
	}
	for _, k := range fileKeys() {
		if _, ok := root.Properties[k]; !ok {
			t.Errorf("the schema has no %s", k)
		}
	}
}

// TestGuideExample: the example in the guide is a plan, with as many cells as the text says.
func TestGuideExample(t *testing.T) {
	guide, err := os.ReadFile(guideFile)
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(guide), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	f, err := Parse("plan.md", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.Expand(nil, nil)
	if err != nil || len(p.Steps) != 8 || p.Runs() != 24 {
		t.Errorf("%d steps, %d runs, %v", len(p.Steps), p.Runs(), err)
	}
	if err := valid(schema(t), text); err != nil {
		t.Error(err)
	}
}

// FuzzParse: any text is a plan or an error with a position; a plan fits the schema, and its steps name its
// own end points.
func FuzzParse(f *testing.F) {
	for _, kind := range Starters() {
		text, err := Starter(kind)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, c := range bad {
		f.Add([]byte("thru: 1\n" + c.text))
	}
	s := schema(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Parse("p", text)
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") { // one for each mistake
				if !strings.HasPrefix(line, "p:") && !strings.HasPrefix(line, "planfile: ") || strings.Contains(line, "\x1b") {
					t.Errorf("%q", err)
				}
			}
			return
		}
		if err := valid(s, string(text)); err != nil && !strings.Contains(string(text), "*") {
			t.Errorf("the schema refuses it: %v", err)
		}
		p, err := file.Expand(fleet(), nil)
		if err != nil {
			return
		}
		known := map[string]bool{}
		for _, e := range p.EndPoints {
			known[e.Name] = true
		}
		for _, x := range p.Steps {
			for _, o := range x.Specs {
				if !known[o.From] || !known[o.To] || o.Streams < 1 || o.Duration <= 0 {
					t.Errorf("%+v", o)
				}
			}
			if len(x.Labels) != 0 && len(x.Labels) != len(x.Specs) || x.Label == "" || len(x.Specs) == 0 {
				t.Errorf("%+v", x)
			}
		}
		if len(p.Steps) == 0 || p.Time() <= 0 || p.Order == plan.OrderInterleaved && len(p.Steps) < 1 {
			t.Errorf("%d steps, %v", len(p.Steps), p.Time())
		}
	})
}
