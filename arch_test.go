// Package thru_test checks the architecture: each rule is a check of the source with its reason. Change
// ARCHITECTURE.md in the same commit as a rule.
package thru_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layers maps each package of internal/ to its layer. A package that neither is listed nor is inside a listed
// one fails the test: a new package must be placed on purpose.
var layers = map[string]int{
	"unit": 0, "fault": 0, "access": 0, "access/oidc": 1, "measure": 0, "stat": 0, "token": 0, "cause/knob": 0,
	"sock": 1, "host": 1, "engine": 1, "bus": 1, "audit": 1, "path": 1, "capture": 1, "tune": 1, "store": 1, "transfer": 1, "disk": 1, "hypervisor": 1, "stamp": 1,
	"plan": 2, "published": 2, "cause": 2, "compare": 2, "doc": 2, "report": 2, "iperfdoc": 2, "place": 2,
	"agent": 3, "control": 3, "node": 3, "remote": 3, "runs": 3, "library": 3, "service": 3,
	"watch": 3, "watch/why": 2, "watch/record": 0, "watch/alert": 1, "watch/metrics": 1, "watch/judge": 2, "watch/schedule": 2,
	"cli": 4,
}

// beside lists the allowed imports within a layer; there are no others.
var beside = map[string][]string{
	"access":        {"fault"}, // hints
	"audit":         {"bus"},   // private files, and its signer
	"bus":           {"sock"},
	"stat":          {"measure", "unit"},         // figures over evidence, with units in their warnings
	"cause/knob":    {"measure", "unit", "stat"}, // it sets their settings, lists CPUs in values, and needs what shows that a knob is in force
	"watch/record":  {"measure"},                 // findings and reasons of alarms
	"engine":        {"sock", "host"},
	"path":          {"sock", "host"},
	"stamp":         {"sock"},
	"watch/metrics": {"watch/alert"},                                                                   // that posts JSON
	"transfer":      {"sock", "host", "bus"},                                                           // the sockets' options, what a transfer costs this host, and the agent that moves files
	"disk":          {"host"},                                                                          // it knows the device of a file
	"hypervisor":    {"host"},                                                                          // its parsers and platforms read hosts
	"tune":          {"host"},                                                                          // it asks drivers, and knows the interrupts of an interface
	"report":        {"published", "plan", "compare", "doc", "place", "watch/judge", "watch/schedule"}, // plan: what a dry run lists; doc: what a report is made of; place: what stands out in an inventory; watch: how pairs are now, and what a watch costs
	"watch":         {"control"},                                                                       // runs turns and explanations
	"node":          {"agent", "control", "library"},                                                   // node creates agents, and runs the tests of its callers
	"library":       {"control", "runs"},                                                               // the cache of paths, and the format of results
	"remote":        {"agent", "control", "node"},                                                      // the agent of this process, and control's end points
	"plan":          {"place"},                                                                         // it fills the rungs of a ladder in a plan file
}

// impure lists the parts of the standard library with access to the world outside the process, forbidden in
// packages that only transform data.
var impure = []string{"os", "os/exec", "os/signal", "os/user", "net", "syscall", "path/filepath", "io/ioutil", "log", "log/slog"}

// dataPlane carries the bytes of every engine; it is no engine, and knows none.
const dataPlane = "worker"

// testKits are packages that only tests import; the rules of tests apply to them.
var testKits = []string{"engine/enginetest", "bus/bustest", "access/oidc/oidctest", "transfer/transfertest", "hypervisor/hypervisortest", "store/postgres/postgrestest"}

// allowed lists exceptions to a rule by "rule: file", each with its reason.
var allowed = map[string]string{
	"exit: .ci/slim/main.go":                      "the main package of a program of its own, which changes libraries for a build",
	"exit: release/main.go":                       "the main package of a program of its own, which writes releases",
	"panic: internal/cli/cli.go":                  "kong leaves a command line by calling its exit function; a panic that run recovers ends it without ending the process",
	"printing: internal/transfer/loopback/web.go": "net/http would print to stderr when a client breaks off; its lines go to nobody",
	"prose: internal/agent/folder.go":             "os.Root has no values for what is no folder, and for what leads out of it",
	"prose: internal/bus/uplink.go":               "the hint of an agent names its command, and a controller has another",
	"prose: internal/cli/habits.go":               "kong says in words alone which flag it does not know",
	"prose: internal/remote/vmkernel.go":          "what an ESXi host refuses comes as words through ssh",
}

// parsers read text of other programs, and results of older versions.
var parsers = []string{"measure", "host", "hypervisor", "plan/planfile", "transfer", "published"}

// source is one parsed file.
type source struct {
	path  string // from the root, with slashes
	pkg   string // path within internal/: "engine/native"; "" elsewhere
	test  bool
	lines int
	fset  *token.FileSet
	file  *ast.File
}

// top returns the package's entry in layers: "engine" for "engine/native".
func (s source) top() string { return entryOf(s.pkg) }

// entryOf returns the entry in layers of a path within internal/: its own, else that of its parent folder.
func entryOf(pkg string) string {
	for _, listed := layers[pkg]; !listed && strings.Contains(pkg, "/"); _, listed = layers[pkg] {
		pkg = path.Dir(pkg)
	}
	return pkg
}

// at returns the position of a node, for the message.
func (s source) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", s.path, s.fset.Position(n.Pos()).Line)
}

// imports returns the import paths of the file.
func (s source) imports() []string {
	var paths []string
	for _, spec := range s.file.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			paths = append(paths, p)
		}
	}
	return paths
}

// rule is one property of the architecture. Check returns the violations.
type rule struct {
	name, why string
	check     func(source) []string
}

var rules = []rule{
	{"layers", "an arrow that points up or sideways makes two packages one", checkLayers},
	{"engines", "an engine that knows another cannot be replaced or tested alone", checkEngines},
	{"control", "a local run is an in-process agent: if control could reach an engine, one host and a fleet would become two code paths", checkControl},
	{"vocabulary", "the vocabulary must build everywhere and drag nothing along", checkVocabulary},
	{"pure", "judgement without I/O can be replayed from a stored result and tested by tables", checkPure},
	{"printing", "what measures must not decide what a person reads: it would spoil --json and the web", checkPrinting},
	{"exit", "a package that ends the process skips the clean-up of all others", checkExit},
	{"init", "code that runs by being imported cannot be found by reading main", checkInit},
	{"panic", "an agent must survive a bad request: errors are returned", checkPanic},
	{"prose", "what is decided by words changes with the words: facts have values and codes, and only who shows them words them", checkProse},
	{"size", "a file over 600 lines does more than one thing", checkSize},
}

// layerOf returns the layer of a path within internal/.
func layerOf(pkg string) (int, bool) {
	n, ok := layers[entryOf(pkg)]
	return n, ok
}

func checkLayers(s source) []string {
	if s.pkg == "" || s.test { // a test may set up its subject with anything
		return nil
	}
	layer, known := layerOf(s.pkg)
	if !known {
		return []string{fmt.Sprintf("%s: package %s has no layer", s.path, s.pkg)}
	}
	var bad []string
	for _, p := range s.imports() {
		target, ours := strings.CutPrefix(p, "thru/internal/")
		if !ours {
			continue
		}
		below, known := layerOf(target)
		top := entryOf(target)
		switch {
		case !known:
			bad = append(bad, fmt.Sprintf("%s imports %s, which has no layer", s.path, p))
		case below > layer:
			bad = append(bad, fmt.Sprintf("%s (layer %d) imports %s (layer %d)", s.path, layer, p, below))
		case below == layer && top != s.top() && !slices.Contains(beside[s.top()], top):
			bad = append(bad, fmt.Sprintf("%s imports %s of its own layer", s.path, p))
		}
	}
	return bad
}

func checkEngines(s source) []string {
	if s.top() != "engine" || s.pkg == "engine" || slices.Contains(testKits, s.pkg) {
		return nil
	}
	return forbid(s, func(p string) bool {
		other, ok := strings.CutPrefix(p, "thru/internal/engine/")
		own := strings.HasPrefix(other+"/", s.pkg[len("engine/"):]+"/")
		return ok && !own && other != dataPlane && !(s.test && slices.Contains(testKits, "engine/"+other))
	})
}

func checkControl(s source) []string {
	if s.top() != "control" || s.test {
		return nil
	}
	return forbid(s, func(p string) bool {
		target, ours := strings.CutPrefix(p, "thru/internal/")
		layer, _ := layerOf(target)
		// Captured packets and the counters of hypervisors arrive as bytes or through an interface, so
		// reading them touches no machine.
		reads := target == "capture" || target == "capture/trace" || target == "hypervisor"
		return ours && layer == 1 && target != "bus" && !reads
	})
}

func checkVocabulary(s source) []string {
	layer, known := layerOf(s.pkg)
	if !known || layer != 0 || s.test {
		return nil
	}
	return forbid(s, func(p string) bool {
		library := strings.Contains(strings.Split(p, "/")[0], ".")
		return isImpure(p) || library && !(s.top() == "stat" && isMathematics(p))
	})
}

func checkPure(s source) []string {
	if layer, known := layerOf(s.pkg); !known || layer != 2 || s.test {
		return nil
	}
	bad := forbid(s, func(p string) bool {
		target, ours := strings.CutPrefix(p, "thru/internal/")
		layer, _ := layerOf(target)
		return isImpure(p) || ours && layer == 1
	})
	return append(bad, calls(s, "time", "Now", "Since", "Until", "Sleep", "After", "NewTimer", "NewTicker", "Tick")...)
}

func checkPrinting(s source) []string {
	if s.pkg == "" || s.top() == "cli" || s.test {
		return nil
	}
	bad := forbid(s, func(p string) bool { return p == "log" || p == "log/slog" })
	bad = append(bad, calls(s, "fmt", "Print", "Printf", "Println")...)
	bad = append(bad, calls(s, "os", "Stdout", "Stderr")...)
	return append(bad, builtins(s, "print", "println")...)
}

func checkExit(s source) []string {
	if strings.HasPrefix(s.path, "cmd/") || s.test {
		return nil
	}
	bad := append(calls(s, "os", "Exit"), calls(s, "syscall", "Exit")...)
	return append(bad, calls(s, "log", "Fatal", "Fatalf", "Fatalln")...)
}

func checkInit(s source) []string {
	var bad []string
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			bad = append(bad, s.at(f)+": func init")
		}
	}
	return bad
}

func checkPanic(s source) []string {
	if s.test {
		return nil
	}
	return builtins(s, "panic")
}

// checkProse refuses decisions that depend on words in text for people.
func checkProse(s source) []string {
	if s.test || slices.Contains(parsers, s.top()) || slices.Contains(parsers, s.pkg) {
		return nil
	}
	var bad []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.CallExpr:
			if f, ok := x.Fun.(*ast.SelectorExpr); ok && searches(f) && slices.ContainsFunc(x.Args, saysProse) {
				bad = append(bad, s.at(x)+": searches words by "+f.Sel.Name)
			}
		case *ast.BinaryExpr:
			if (x.Op == token.EQL || x.Op == token.NEQ) && (isProse(x.X) && isText(x.Y) || isProse(x.Y) && isText(x.X)) {
				bad = append(bad, s.at(x)+": compares words")
			}
		}
		return true
	})
	return bad
}

// proseFields are the fields of text for people.
func proseFields() []string {
	return []string{"Why", "Reason", "Summary", "Message", "Hint", "Warnings", "Means", "Note"}
}

// isProse reports whether an expression is a field of text for people.
func isProse(e ast.Expr) bool {
	f, ok := e.(*ast.SelectorExpr)
	return ok && slices.Contains(proseFields(), f.Sel.Name)
}

// isText reports whether an expression is a text that is not empty, or an exported name of another package.
func isText(e ast.Expr) bool {
	switch x := e.(type) {
	case *ast.BasicLit:
		return x.Kind == token.STRING && x.Value != `""`
	case *ast.SelectorExpr:
		p, ok := x.X.(*ast.Ident)
		return ok && p.Obj == nil && ast.IsExported(x.Sel.Name) && !isProse(x)
	}
	return false
}

// searches reports whether a function searches a text for a part.
func searches(f *ast.SelectorExpr) bool {
	if x, ok := f.X.(*ast.Ident); !ok || x.Name != "strings" && x.Name != "bytes" {
		return strings.HasPrefix(f.Sel.Name, "Match") || strings.HasPrefix(f.Sel.Name, "FindString")
	}
	return slices.ContainsFunc([]string{"Contains", "HasPrefix", "HasSuffix", "Index", "LastIndex", "Cut", "TrimPrefix", "TrimSuffix", "Split", "EqualFold", "Count", "Replace"},
		func(name string) bool { return strings.HasPrefix(f.Sel.Name, name) })
}

// saysProse reports whether an expression has a field of text for people, or the text of an error.
func saysProse(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.CallExpr:
			if f, ok := x.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Error" && len(x.Args) == 0 {
				found = true
			}
		case *ast.SelectorExpr:
			found = found || x.Sel.Name == "Fact" || isProse(x)
		case *ast.Ident:
			found = found || x.Name == "warning" || isWarning(x)
		}
		return !found
	})
	return found
}

// isWarning reports whether a variable is that of a loop over warnings.
func isWarning(x *ast.Ident) bool {
	if x.Obj == nil {
		return false
	}
	made, ok := x.Obj.Decl.(*ast.AssignStmt)
	if !ok || len(made.Rhs) != 1 {
		return false
	}
	over, ok := made.Rhs[0].(*ast.UnaryExpr) // as the parser writes a range
	if !ok || over.Op != token.RANGE {
		return false
	}
	f, ok := over.X.(*ast.SelectorExpr)
	return ok && f.Sel.Name == "Warnings"
}

func checkSize(s source) []string {
	if s.lines > 600 {
		return []string{fmt.Sprintf("%s has %d lines", s.path, s.lines)}
	}
	return nil
}

// isImpure reports whether a package of the standard library or x/sys has access to the world outside the
// process.
func isImpure(p string) bool {
	pureNet := p == "net/netip" || p == "net/url" // values, no sockets
	return slices.Contains(impure, p) || strings.HasPrefix(p, "net/") && !pureNet || strings.HasPrefix(p, "golang.org/x/sys")
}

// isMathematics reports whether a package is one of the libraries that stat may use: distributions, and a
// latency encoding that other tools read.
func isMathematics(p string) bool {
	return strings.HasPrefix(p, "gonum.org/") || p == "github.com/HdrHistogram/hdrhistogram-go"
}

// forbid lists the imports for which bad is true.
func forbid(s source, bad func(string) bool) []string {
	var found []string
	for _, p := range s.imports() {
		if bad(p) {
			found = append(found, s.path+" imports "+p)
		}
	}
	return found
}

// calls lists the uses of names of a package, whatever name it is imported by.
func calls(s source, pkg string, names ...string) []string {
	local := ""
	for _, spec := range s.file.Imports {
		if p, _ := strconv.Unquote(spec.Path.Value); p == pkg {
			local = path.Base(pkg)
			if spec.Name != nil {
				local = spec.Name.Name
			}
		}
	}
	var found []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			x, ok := sel.X.(*ast.Ident)
			if ok && local != "" && x.Name == local && slices.Contains(names, sel.Sel.Name) {
				found = append(found, fmt.Sprintf("%s: %s.%s", s.at(sel), pkg, sel.Sel.Name))
			}
		}
		return true
	})
	return found
}

// builtins lists calls of built-in functions.
func builtins(s source, names ...string) []string {
	var found []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			// Obj is set if the file declares that name itself.
			if f, ok := call.Fun.(*ast.Ident); ok && f.Obj == nil && slices.Contains(names, f.Name) {
				found = append(found, fmt.Sprintf("%s: %s()", s.at(call), f.Name))
			}
		}
		return true
	})
	return found
}

// parse reads one file. It ignores build constraints, so that the rules apply to the files of every system.
func parse(name string, text []byte) (source, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, 0)
	if err != nil {
		return source{}, err
	}
	pkg, internal := strings.CutPrefix(path.Dir(name), "internal/")
	if !internal {
		pkg = ""
	}
	return source{
		path: name, pkg: pkg, fset: fset, file: file,
		test:  strings.HasSuffix(name, "_test.go") || slices.Contains(testKits, pkg),
		lines: strings.Count(string(text), "\n"),
	}, nil
}

// TestSequential checks that packages which the Makefile tests without the race detector start no goroutine
// and share nothing.
func TestSequential(t *testing.T) {
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(strings.ReplaceAll(string(text), "\\\n", ""), "\nSEQUENTIAL")
	list, _, _ = strings.Cut(list, "\n")
	packages := strings.Fields(strings.TrimLeft(list, " :="))
	if !found || len(packages) == 0 {
		t.Fatal("the Makefile has no SEQUENTIAL")
	}
	for _, p := range packages {
		p, all := strings.CutSuffix(p, "/...")
		files, err := filesOf(p, all)
		if err != nil || len(files) == 0 {
			t.Errorf("%s: no files, %v", p, err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			s, err := parse(name, text)
			if err != nil {
				t.Fatal(err)
			}
			for _, violation := range concurrent(s) {
				t.Error(violation)
			}
		}
	}
}

// filesOf returns the Go files of a package, or also those of all packages in its folder.
func filesOf(pkg string, all bool) (files []string, err error) {
	if !all {
		return fs.Glob(os.DirFS("."), path.Join(pkg, "*.go"))
	}
	err = fs.WalkDir(os.DirFS("."), pkg, func(name string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".go") {
			files = append(files, name)
		}
		return err
	})
	return files, err
}

// TestAllTested checks that test-all of the Makefile tests by name each package that it excludes from the common
// run.
func TestAllTested(t *testing.T) {
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, recipe, found := strings.Cut(string(text), "\ntest-all:")
	recipe, _, _ = strings.Cut(recipe, "\n\n")
	_, excluded, _ := strings.Cut(recipe, "grep -v")
	excluded, _, _ = strings.Cut(excluded, ")")
	left := regexp.MustCompile(`(-[ef]) (?:thru/)?([^ ]+)`).FindAllStringSubmatch(excluded, -1)
	if !found || len(left) == 0 {
		t.Fatal("the Makefile leaves no package out of test-all")
	}
	for _, out := range left {
		tested := map[string]string{"-e": " ./" + out[2] + " ", "-f": " $$(cat " + out[2] + ") "}[out[1]]
		if !strings.Contains(recipe, tested) {
			t.Errorf("make test-all leaves out %s, and never tests%s", out[2], tested)
		}
	}
}

// concurrent lists what makes a package concurrent, except in its tests.
func concurrent(s source) []string {
	if s.test {
		return nil
	}
	found := forbid(s, func(p string) bool { return p == "sync" || p == "sync/atomic" })
	ast.Inspect(s.file, func(n ast.Node) bool {
		if g, ok := n.(*ast.GoStmt); ok {
			found = append(found, s.at(g)+": a goroutine")
		}
		return true
	})
	return found
}

// TestArchitecture applies every rule to every file of the repository.
func TestArchitecture(t *testing.T) {
	var all []source
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if name == "bin" { // built, not written
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		s, err := parse(name, text)
		all = append(all, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, s := range all {
				for _, violation := range r.check(s) {
					key := r.name + ": " + s.path
					if used[key] = true; allowed[key] == "" {
						t.Errorf("%s\n\trule %q: %s", violation, r.name, r.why)
					}
				}
			}
		})
	}
	for key := range allowed {
		if !used[key] {
			t.Errorf("the exception %q is not needed any more", key)
		}
	}
}
