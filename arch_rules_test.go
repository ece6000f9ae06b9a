package thru_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"thru/internal/fault"
)

// TestRulesFire feeds each rule a file that breaks it and one that does not, to prove that the rule finds
// violations.
func TestRulesFire(t *testing.T) {
	tests := []struct {
		rule, path, text string
		fires            bool
	}{
		{"layers", "internal/unit/x.go", `import "thru/internal/cli"`, true},
		{"layers", "internal/host/x.go", `import "thru/internal/agent"`, true},
		{"layers", "internal/sock/x.go", `import "thru/internal/bus"`, true},
		{"layers", "internal/measure/x.go", `import "thru/internal/unit"`, true},
		{"layers", "internal/nowhere/x.go", ``, true},
		{"layers", "internal/agent/x.go", `import "thru/internal/nowhere"`, true},
		{"layers", "internal/agent/x.go", `import "thru/internal/engine"`, false},
		{"layers", "internal/engine/native/x.go", `import ("thru/internal/engine"; "thru/internal/sock"; "fmt")`, false},
		{"layers", "internal/unit/x_test.go", `import "thru/internal/cli"`, false},
		{"layers", "internal/tune/x.go", `import "thru/internal/cause/knob"`, false},
		{"layers", "internal/tune/x.go", `import "thru/internal/cause/gate"`, true},
		{"layers", "internal/cause/knob/x.go", `import "thru/internal/cause/gate"`, true},
		{"engines", "internal/engine/native/x.go", `import "thru/internal/engine/iperf3"`, true},
		{"engines", "internal/engine/native/x.go", `import "thru/internal/engine/worker"`, false},
		{"engines", "internal/engine/worker/x.go", `import "thru/internal/engine/native"`, true},
		{"engines", "internal/engine/native/x.go", `import "thru/internal/engine/enginetest"`, true},
		{"engines", "internal/engine/native/x_test.go", `import "thru/internal/engine/enginetest"`, false},
		{"engines", "internal/engine/native/x.go", `import ("thru/internal/engine"; "thru/internal/engine/native/wire")`, false},
		{"control", "internal/control/x.go", `import "thru/internal/engine"`, true},
		{"control", "internal/control/x.go", `import "thru/internal/engine/native"`, true},
		{"control", "internal/control/x.go", `import "thru/internal/host"`, true},
		{"control", "internal/control/x.go", `import "thru/internal/capture/live"`, true},
		{"control", "internal/control/x.go", `import ("thru/internal/bus"; "thru/internal/plan"; "thru/internal/stat"; "thru/internal/capture"; "thru/internal/capture/trace")`, false},
		{"vocabulary", "internal/fault/x.go", `import "github.com/nats-io/nats.go"`, true},
		{"vocabulary", "internal/unit/x.go", `import "os"`, true},
		{"vocabulary", "internal/measure/x.go", `import "gonum.org/v1/gonum/stat"`, true},
		{"vocabulary", "internal/stat/x.go", `import ("gonum.org/v1/gonum/stat"; "math")`, false},
		{"vocabulary", "internal/stat/x.go", `import "github.com/HdrHistogram/hdrhistogram-go"`, false},
		{"vocabulary", "internal/measure/x.go", `import "github.com/HdrHistogram/hdrhistogram-go"`, true},
		{"pure", "internal/report/x.go", `import "os"`, true},
		{"pure", "internal/report/x.go", `import "net/http"`, true},
		{"pure", "internal/plan/x.go", `import "golang.org/x/sys/unix"`, true},
		{"pure", "internal/plan/x.go", `import "thru/internal/host"`, true},
		{"pure", "internal/plan/x.go", "import \"time\"\nvar t = time.Now()", true},
		{"pure", "internal/report/x.go", "import (\"embed\"; \"io\"; \"html/template\"; \"time\")\nvar d = time.Second", false},
		{"printing", "internal/agent/x.go", "import \"fmt\"\nfunc f() { fmt.Println() }", true},
		{"printing", "internal/agent/x.go", "import f \"fmt\"\nfunc g() { f.Printf(\"\") }", true},
		{"printing", "internal/bus/x.go", "import \"os\"\nvar w = os.Stderr", true},
		{"printing", "internal/bus/x.go", `import "log/slog"`, true},
		{"printing", "internal/bus/x.go", `func f() { println() }`, true},
		{"printing", "internal/bus/x.go", `func f(print func()) { print() }`, false},
		{"printing", "internal/cli/x.go", "import \"os\"\nvar w = os.Stderr", false},
		{"printing", "internal/agent/x.go", "import \"fmt\"\nvar s = fmt.Sprint()", false},
		{"exit", "internal/cli/x.go", "import \"os\"\nfunc f() { os.Exit(1) }", true},
		{"exit", "cmd/thru/main.go", "import \"os\"\nfunc f() { os.Exit(1) }", false},
		{"init", "internal/cli/x.go", `func init() {}`, true},
		{"init", "lab/x_test.go", `func init() {}`, true},
		{"init", "internal/cli/x.go", "type t int\nfunc (t) init() {}", false},
		{"panic", "internal/unit/x.go", `func f() { panic(1) }`, true},
		{"panic", "internal/unit/x_test.go", `func f() { panic(1) }`, false},
		{"prose", "internal/report/x.go", "import \"strings\"\nfunc f(g gate) bool { return strings.Contains(g.Fact, \"off\") }", true},
		{"prose", "internal/cli/x.go", "import \"strings\"\nfunc f(err error) bool { return strings.HasPrefix(strings.ToLower(err.Error()), \"no\") }", true},
		{"prose", "internal/cli/x.go", "func f(err error) bool { return re.MatchString(err.Error()) }", true},
		{"prose", "internal/cli/x.go", "import \"strings\"\nfunc f(g gate) bool { return strings.Contains(g.ID, \"off\") }", false},
		{"prose", "internal/cli/x.go", "import \"strings\"\nfunc f(g gate) string { return strings.Join(g.Facts, g.Why) }", false},
		{"prose", "internal/measure/x.go", "import \"strings\"\nfunc f(g gate) bool { return strings.Contains(g.Fact, \"off\") }", false},
		{"prose", "internal/report/x.go", "import \"strings\"\nfunc f(c cell) {\n\tfor _, w := range c.Warnings {\n\t\t_ = strings.Contains(w, \"single run\")\n\t}\n}", true},
		{"prose", "internal/report/x.go", "import \"strings\"\nfunc f(warning string) bool { return strings.Contains(warning, \"single run\") }", true},
		{"prose", "internal/report/x.go", "import \"strings\"\nfunc f(c cell) {\n\tfor _, w := range c.Hosts {\n\t\t_ = strings.Contains(w, \"single run\")\n\t}\n}", false},
		{"prose", "internal/report/x.go", "import \"stat\"\nfunc f(r result) bool { return r.Note == stat.NoteOfRates }", true},
		{"prose", "internal/report/x.go", "import \"measure\"\nfunc f(g gap) bool { return g.Why == measure.NotInCapture }", true},
		{"prose", "internal/report/x.go", "func f(r result) bool { return \"equal\" != r.Note }", true},
		{"prose", "internal/report/x.go", "func f(r, x result) bool { return r.Note != \"\" && r.Note == x.Note }", false},
		{"size", "internal/unit/x.go", strings.Repeat("\n", 600), true},
		{"size", "internal/unit/x.go", strings.Repeat("\n", 500), false},
	}
	seen := map[string]bool{}
	for _, tt := range tests {
		s, err := parse(tt.path, []byte("package x\n"+tt.text))
		if err != nil {
			t.Fatalf("%s: %v", tt.text, err)
		}
		for _, r := range rules {
			if r.name != tt.rule {
				continue
			}
			seen[r.name] = seen[r.name] || tt.fires
			if got := r.check(s); (len(got) > 0) != tt.fires {
				t.Errorf("rule %s on %s with %q finds %q, want a violation: %v", r.name, tt.path, tt.text, got, tt.fires)
			}
		}
	}
	for _, r := range rules {
		if !seen[r.name] {
			t.Errorf("rule %s is not shown to fire", r.name)
		}
	}
}

// TestNamesOfPackages checks that fault knows the names of all packages: it removes them from a displayed
// error.
func TestNamesOfPackages(t *testing.T) {
	err := fs.WalkDir(os.DirFS("internal"), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || path == "." || path == "nets" || strings.HasPrefix(path, "doc") || strings.HasPrefix(path, "report/") || strings.HasPrefix(path, "cause/") && path != "cause/gate" || strings.Contains(path, "testdata") { // nets has tests alone, the families of causes make no errors, and those of the printers are report's
			return err
		}
		name := filepath.Base(path)
		if got := fault.Plain("a: " + name + ": b"); got != "a: b" {
			t.Errorf("fault.Plain leaves the name of package %s: %q", name, got)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
