package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"thru/internal/capture/live"
	"thru/internal/measure"
)

// Schemas of the commands' documents.
const (
	schemaPath     = "../../docs/result.schema.json"
	comparisonPath = "../../docs/comparison.schema.json"
)

// schemas are those in docs, each compiled once for all scripts: that takes most of a validation.
type schemas struct {
	result, comparison func() (*jsonschema.Schema, error)
}

func newSchemas() schemas {
	once := func(path string) func() (*jsonschema.Schema, error) {
		return sync.OnceValues(func() (*jsonschema.Schema, error) { return jsonschema.NewCompiler().Compile(path) })
	}
	return schemas{result: once(schemaPath), comparison: once(comparisonPath)}
}

// valid FILE: the file is one document that fits the schema in docs that it names. Further arguments
// KEY=VALUE must match fields of its error.
func (s schemas) valid(ts *testscript.TestScript, neg bool, args []string) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(ts.ReadFile(args[0])))
	ts.Check(err)
	compiled := s.result
	if o, ok := doc.(map[string]any); ok && o["schema"] == measure.ComparedSchema {
		compiled = s.comparison
	}
	schema, err := compiled()
	ts.Check(err)
	if err := schema.Validate(doc); (err != nil) != neg {
		ts.Fatalf("%s against the schema: %v", args[0], err)
	}
	var d struct {
		Error map[string]any `json:"error"`
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &d))
	for _, a := range args[1:] {
		k, want, _ := strings.Cut(a, "=")
		got, _ := json.Marshal(d.Error[k])
		if !strings.Contains(string(got), want) {
			ts.Fatalf("error.%s is %s, want %s", k, got, want)
		}
	}
}

// waitLine FILE WORD: waits until a line of the file begins with the word.
func waitLine(ts *testscript.TestScript, neg bool, args []string) {
	for range 400 {
		b, _ := os.ReadFile(ts.MkAbs(args[0]))
		for line := range strings.Lines(string(b)) {
			if strings.HasPrefix(line, args[1]) {
				return
			}
		}
		time.Sleep(25 * time.Millisecond)
	}
	ts.Fatalf("no line of %s begins with %q:\n%s", args[0], args[1], ts.ReadFile(args[0]))
}

// waitFor FILE REGEXP: waits until the file matches the expression.
func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	want := regexp.MustCompile(args[1])
	for range 1600 {
		if b, _ := os.ReadFile(ts.MkAbs(args[0])); want.Match(b) {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	ts.Fatalf("%s does not come to hold %q:\n%s", args[0], args[1], ts.ReadFile(args[0]))
}

// again REGEXP COMMAND...: runs the command until it succeeds and its output matches, at most ten times, since a
// busy machine may delay what a short test measures.
func again(ts *testscript.TestScript, neg bool, args []string) {
	want := regexp.MustCompile(args[0])
	for range 10 {
		if err := ts.Exec(args[1], args[2:]...); err == nil && want.MatchString(ts.ReadFile("stdout")) {
			return
		}
	}
	ts.Fatalf("in none of 10 runs the output matches %q", args[0])
}

// condition answers [captures]: this process may capture packets, [cpus]: it has several, and [program:NAME]:
// that program is installed. If the lab is required, both must hold.
func condition(name string) (bool, error) {
	program, isProgram := strings.CutPrefix(name, "program:")
	var err error
	switch {
	case isProgram:
		_, err = exec.LookPath(program)
		if err != nil {
			_, err = exec.LookPath(daemons + "/" + program)
		}
	case name == "cpus":
		if runtime.NumCPU() < 2 {
			err = errors.New("one CPU cannot be told from another")
		}
	case name == "captures":
		err = live.Possible()
	default:
		return false, fmt.Errorf("there is no condition %s", name)
	}
	if err != nil && os.Getenv("THRU_REQUIRE_LAB") == "" {
		err = nil
		return false, err
	}
	return err == nil, err
}

// daemons is Debian's folder of daemons, which is only in root's PATH.
const daemons = "/usr/sbin"

// waitPort HOST:PORT: waits until a program listens there.
func waitPort(ts *testscript.TestScript, neg bool, args []string) {
	for range 400 {
		if conn, err := net.Dial("tcp", args[0]); err == nil {
			conn.Close()
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	ts.Fatalf("nobody listens at %s", args[0])
}

// scrape URL FILE: writes what a GET of the address answers.
func scrape(ts *testscript.TestScript, neg bool, args []string) {
	r, err := http.Get(args[0])
	ts.Check(err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), text, 0o600))
}

// keepLine FILE PREFIX NEWFILE: writes the line with that prefix to another file.
func keepLine(ts *testscript.TestScript, neg bool, args []string) {
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		if strings.HasPrefix(line, args[1]) {
			ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(line), 0o600))
			return
		}
	}
	ts.Fatalf("no line of %s begins with %q", args[0], args[1])
}

// expand FILE...: replaces $NAME in the files by the variables of the script.
func expand(ts *testscript.TestScript, neg bool, args []string) {
	for _, file := range args {
		ts.Check(os.WriteFile(ts.MkAbs(file), []byte(os.Expand(ts.ReadFile(file), ts.Getenv)), 0o600))
	}
}

// keptPath TEST BEFORE: the test took the path that the document before it has probed. It probes again what
// a gate of that path warned of, as on a busy machine.
func keptPath(ts *testscript.TestScript, neg bool, args []string) {
	var test, before measure.Document
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &test))
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &before))
	warned := slices.ContainsFunc(before.Gates, func(g measure.Gate) bool {
		return g.From != "" && (g.Status == measure.GateWarn || g.Status == measure.GateFail)
	})
	if len(test.Paths) != 1 || !test.Paths[0].Cached && !warned {
		ts.Fatalf("%s has not taken the path of %s", args[0], args[1])
	}
}
