package cli

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"thru/internal/cli/console"
	"thru/internal/cli/iperf3"
	"thru/internal/fault"
	"thru/internal/plan"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares output with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s -want +got (accept with -update):\n%s", file, diff)
	}
}

// TestHelp compares the help of all commands, and the list of all flags, including hidden ones: a removed
// command, flag or variable breaks scripts.
func TestHelp(t *testing.T) {
	t.Setenv("COLUMNS", "100")
	parser, err := parserOf(&env{Console: &console.Console{Out: io.Discard, Err: io.Discard}}, &grammar{})
	if err != nil {
		t.Fatal(err)
	}
	var flags bytes.Buffer
	_ = kong.Visit(parser.Model, func(n kong.Visitable, next kong.Next) error {
		switch n := n.(type) {
		case *kong.Application:
			helpOf(t, nil)
		case *kong.Node:
			path := strings.Fields(n.Path())
			fmt.Fprintf(&flags, "\n%s %q hidden %v\n", strings.Join(path, " "), n.Aliases, n.Hidden)
			helpOf(t, path)
		case *kong.Value:
			if n.Flag == nil {
				fmt.Fprintf(&flags, "  <%s> %s required %v default %q\n", n.Name, n.Target.Type(), n.Required, n.Default)
			}
		case *kong.Flag:
			fmt.Fprintf(&flags, "  --%s %q -%c %s", n.Name, n.Aliases, max(n.Short, ' '), n.Target.Type())
			for _, x := range [][2]string{{"type", n.Tag.Type}, {"default", n.Default}, {"env", strings.Join(n.Envs, ",")}, {"xor", strings.Join(n.Xor, ",")}, {"enum", n.Enum}, {"negatable", n.Tag.Negatable}} {
				if x[1] != "" {
					fmt.Fprintf(&flags, " %s %q", x[0], x[1])
				}
			}
			fmt.Fprintf(&flags, "%s\n", map[bool]string{true: " hidden"}[n.Hidden])
		}
		return next(nil)
	})
	golden(t, "help/flags", flags.Bytes())
}

// TestVariables compares the names of the environment variables that any package reads.
func TestVariables(t *testing.T) {
	name := regexp.MustCompile(`"THRU_[A-Z0-9_]+"`)
	var names []string
	err := fs.WalkDir(os.DirFS(".."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(filepath.Join("..", path))
		names = append(names, name.FindAllString(string(text), -1)...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	golden(t, "help/variables", []byte(strings.Join(slices.Compact(names), "\n")+"\n"))
}

// helpOf compares the help of a command.
func helpOf(t *testing.T, path []string) {
	t.Helper()
	var out bytes.Buffer
	if code := (&env{Console: &console.Console{In: strings.NewReader(""), Out: &out, Err: io.Discard, Args: append(path, "--help")}}).command(t.Context()); code != fault.OK {
		t.Errorf("%q --help ends with %d", path, code)
	}
	golden(t, "help/"+strings.Join(append([]string{"thru"}, path...), "-"), out.Bytes())
}

// TestHelpFits: the help of each command fits a terminal of 80 columns.
func TestHelpFits(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	parser, err := parserOf(&env{Console: &console.Console{Out: io.Discard, Err: io.Discard}}, &grammar{})
	if err != nil {
		t.Fatal(err)
	}
	var paths [][]string
	_ = kong.Visit(parser.Model, func(n kong.Visitable, next kong.Next) error {
		switch n := n.(type) {
		case *kong.Application:
			paths = append(paths, nil)
		case *kong.Node:
			paths = append(paths, strings.Fields(n.Path()))
		}
		return next(nil)
	})
	for _, path := range paths {
		var out bytes.Buffer
		(&env{Console: &console.Console{In: strings.NewReader(""), Out: &out, Err: io.Discard, Args: append(path, "--help")}}).command(t.Context())
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("thru %s --help: %d columns: %s", strings.Join(path, " "), n, line)
			}
		}
	}
}

// TestRequests compares the flows that plan makes of command lines, or the exit codes of refused ones.
func TestRequests(t *testing.T) {
	text, err := os.ReadFile("testdata/requests")
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "thru ") {
			fmt.Fprintf(&got, "%s\n", line)
			p, err := planOf(t, strings.Fields(line)[1:])
			if err != nil {
				fmt.Fprintf(&got, "  exit code %d\n", fault.Code(err))
				continue
			}
			fmt.Fprintf(&got, "  runs %+v, link %+v\n", p.Repeat, p.Link)
			for _, s := range p.Steps {
				specs, err := json.Marshal(s.Specs)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&got, "  %s, beside %v: %s\n", s.Label, s.Baseline, specs)
			}
		}
	}
	golden(t, "requests", got.Bytes())
}

// planOf returns the plan of a command line.
func planOf(t *testing.T, args []string) (p plan.Plan, err error) {
	if args[0] == "iperf3" {
		o, err := iperf3.Parse(args[1:])
		if err != nil {
			return p, err
		}
		return plan.Test(withCPUs(o.Request, 2, 2))
	}
	var g grammar
	e := &env{Console: &console.Console{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Args: args}}
	parser, err := parserOf(e, &g)
	if err != nil {
		return p, err
	}
	if err := misread(args); err != nil {
		return p, err
	}
	k, err := parser.Parse(args)
	if err != nil {
		return p, usage(args, err)
	}
	e.Typed = typedFlags(k)
	var r plan.Request
	switch args[0] {
	case "test":
		if r, err = g.Test.read(e); err == nil {
			err = g.Test.Settle(&r, g.Test.JSON)
		}
		if r.Local, r.Peer = "local", "h"; err == nil {
			p, err = plan.Test(withCPUs(r, 2, 2))
		}
		p.Link = r.Link
	case "ladder":
		if r, err = g.Ladder.read(); err == nil {
			p, err = plan.Ladder(withCPUs(r, 2, 2))
		}
	case "explain":
		if r, err = g.Explain.read(e, "h"); err == nil {
			p, err = plan.Explain(withCPUs(r, 2, 2))
		}
	case "tune":
		if r, _, err = g.Tune.read(e); err == nil {
			p, err = plan.Tune(withCPUs(r, 2, 2))
		}
	}
	return p, err
}

// TestCommandsRun: whatever a command line selects can run.
func TestCommandsRun(t *testing.T) {
	parser, err := parserOf(&env{Console: &console.Console{Out: io.Discard, Err: io.Discard}}, &grammar{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range parser.Model.Leaves(false) {
		if _, ok := n.Target.Addr().Interface().(command); !ok {
			t.Errorf("%s has no Run(context.Context, *env) error", n.FullPath())
		}
	}
}

// TestParseBuildsOne: a line that begins with a command builds no other; all are built where the line may concern others.
func TestParseBuildsOne(t *testing.T) {
	built := func(options ...kong.Option) int {
		parser, err := parserOf(&env{Console: &console.Console{Out: io.Discard, Err: io.Discard}}, &grammar{}, options...)
		if err != nil {
			t.Fatal(err)
		}
		return len(parser.Model.Children)
	}
	for _, first := range []string{"test", "iperf3", "plan", "version"} {
		if n := built(kong.IgnoreFields(othersThan(first))); n != 1 {
			t.Errorf("%s: %d commands of %d", first, n, built())
		}
	}
	for _, first := range []string{"help", "--help", "tests", "color"} {
		if others := othersThan(first); others != "" {
			t.Errorf("%s: not built: %s", first, others)
		}
	}
}
