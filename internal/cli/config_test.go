package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"thru/internal/cli/console"
	"thru/internal/cli/settings"
	"thru/internal/fault"
)

// withSettings parses a line with a settings file and with variables.
func withSettings(t *testing.T, file string, variables []string, line string) (g grammar, e *env, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := settings.Load([]string{path}, variables)
	if err != nil {
		t.Fatal(err)
	}
	args := strings.Fields(line)
	e = &env{Console: &console.Console{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Args: args}, settings: s}
	parser, err := parserOf(e, &g)
	if err != nil {
		t.Fatal(err)
	}
	k, err := parser.Parse(args)
	if err != nil {
		return g, e, usage(args, err)
	}
	e.Typed = typedFlags(k)
	return g, e, e.takeSettings(k)
}

// TestSettings: what is typed comes before variables, and these before files.
func TestSettings(t *testing.T) {
	for name, c := range map[string]struct {
		file, variables, line string
		got                   func(g *grammar) any
		want                  string
	}{
		"file":               {"serve: {port: 1}", "", "serve", func(g *grammar) any { return g.Serve.Port }, "1"},
		"variable":           {"serve: {port: 1}", "THRU_SERVE_PORT=2", "serve", func(g *grammar) any { return g.Serve.Port }, "2"},
		"typed":              {"serve: {port: 1}", "THRU_SERVE_PORT=2", "serve -p 3", func(g *grammar) any { return g.Serve.Port }, "3"},
		"another command":    {"serve: {port: 1}", "", "control", func(g *grammar) any { return g.Control.Port }, "0"},
		"below another":      {"history: {list: {limit: 7}}", "", "history", func(g *grammar) any { return g.History.List.Limit }, "7"},
		"of all":             {"store: /a", "", "history prune --keep 1", func(g *grammar) any { return g.History.Prune.Store }, "/a"},
		"of all, one":        {"store: /a\ntest: {store: /b}", "", "test", func(g *grammar) any { return g.Test.Store }, "/b"},
		"a list":             {"serve: {bind: [a, b]}", "", "serve", func(g *grammar) any { return g.Serve.Bind }, "[a b]"},
		"a list in a text":   {"", "THRU_SERVE_BIND=a,b", "serve", func(g *grammar) any { return g.Serve.Bind }, "[a b]"},
		"commas":             {"test: {label: ['a=b,c', d=e]}", "", "test", func(g *grammar) any { return len(g.Test.Label) }, "2"},
		"typed list":         {"serve: {bind: [a, b]}", "", "serve -B c", func(g *grammar) any { return g.Serve.Bind }, "[c]"},
		"a time":             {"serve: {max-time: 90s}", "", "serve", func(g *grammar) any { return g.Serve.MaxTime }, "1m30s"},
		"a rate":             {"serve: {max-rate: 1G}", "", "serve", func(g *grammar) any { return g.Serve.MaxRate }, "1000000000"},
		"on":                 {"", "THRU_NO_STORE=x", "test", func(g *grammar) any { return g.Test.NoStore }, "true"},
		"off":                {"no-store: true", "THRU_NO_STORE=off", "test", func(g *grammar) any { return g.Test.NoStore }, "false"},
		"stored with labels": {"", "THRU_NO_STORE=1", "test --label a=b", func(g *grammar) any { return g.Test.Label }, "[a=b]"},
		"an option":          {"time: 20", "", "test", func(g *grammar) any { return asked1(t, &g.Test.asked).Duration }, "20s"},
		"an earlier name":    {"parallel: 3", "", "test", func(g *grammar) any { return asked1(t, &g.Test.asked).Streams }, "3"},
		"typed amount":       {"time: 20", "", "test -n 1M", func(g *grammar) any { return asked1(t, &g.Test.asked).Amount }, "1048576"},
		"typed direction":    {"test: {one-way: true}", "", "test --bidir", func(g *grammar) any { return asked1(t, &g.Test.asked).OneWay }, "false"},
		"typed form":         {"report: {json: true}", "", "report -J", func(g *grammar) any { return fmt.Sprint(g.Report.JSON, g.Report.IPerf3) }, "false true"},
		"switched off":       {"test: {udp: true}", "", "test --udp=false", func(g *grammar) any { return asked1(t, &g.Test.asked).Protocol }, ""},
		"in spite of it":     {"color: blue\nstoer: x", "", "version", func(g *grammar) any { return g.Color }, "auto"},
		"a removal":          {"color: blue\nstoer: x", "", "service remove", func(g *grammar) any { return g.Color }, "auto"},
		"error elsewhere":    {"serve: {prot: 1}", "", "test", func(g *grammar) any { return "" }, ""},
	} {
		g, e, err := withSettings(t, c.file, strings.Fields(c.variables), c.line)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := fmt.Sprint(c.got(&g)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if len(e.Typed) > strings.Count(c.line, "-") {
			t.Errorf("%s: settings count as typed: %q", name, e.Typed)
		}
	}
}

// TestStoreSettings: thru iperf3, which has iperf3's flags, stores where the settings say.
func TestStoreSettings(t *testing.T) {
	_, e, err := withSettings(t, "store: /a", []string{"THRU_NO_STORE=x"}, "iperf3 -c h")
	if err != nil {
		t.Fatal(err)
	}
	if f := e.storeSettings(); f.Store != "/a" || !f.NoStore {
		t.Errorf("%+v", f)
	}
}

// asked1 returns the request of a command's options.
func asked1(t *testing.T, a *asked) (r struct {
	Duration time.Duration
	Streams  int
	Amount   int64
	OneWay   bool
	Protocol string
}) {
	t.Helper()
	x, err := a.request(time.Second)
	if err != nil {
		t.Fatal(err)
	}
	r.Duration, r.Streams, r.Amount, r.OneWay, r.Protocol = x.Duration, x.Streams, x.Amount, x.OneWay, x.Protocol
	return r
}

// TestRefusedSettings: a wrong setting is named with its place and a hint, before anything starts.
func TestRefusedSettings(t *testing.T) {
	for name, c := range map[string]struct{ file, variables, line, want, hint string }{
		"unknown":           {"stoer: x", "", "test", `:1:1: there is no setting "stoer"`, "did you mean store?"},
		"unknown below":     {"serve:\n  prot: 1", "", "serve", `:2:3: there is no setting "serve.prot"`, "did you mean serve.port?"},
		"like no other":     {"test:\n  duraton: 3s", "", "test", `there is no setting "test.duraton"`, "`thru config --all` lists the settings; serve.port"},
		"unknown command":   {"sevre: {port: 1}", "", "test", `there is no setting "sevre.port"`, "did you mean serve.port?"},
		"below its command": {"max-rate: 1G", "", "test", `there is no setting "max-rate"`, "below its command: serve.max-rate"},
		"below the second":  {"history: {limit: 7}", "", "history", `no setting "history.limit"`, "below its command: history.list.limit"},
		"an action":         {"serve: {rotate: true}", "", "serve", `no setting "serve.rotate"`, "only a flag"},
		"no number":         {"serve: {port: x}", "", "serve", `:1:9: -p does not take "x"`, "-p PORT: Control port"},
		"of an option":      {"streams: 0", "", "test", ":1:1: -P 0: not a whole number", "-P takes 1 to 128"},
		"in a variable":     {"", "THRU_STREAMS=0", "test", "$THRU_STREAMS: -P 0: not a whole number", "-P takes 1 to 128"},
		"a rate":            {"serve: {max-rate: 5Q}", "", "serve", ":1:9: --max-rate 5Q: ", "1G or 500M"},
		"no word of it":     {"color: blue", "", "history", `:1:1: --color does not take "blue"`, "Colour"},
		"not on or off":     {"test: {udp: maybe}", "", "test", `-u does not take "maybe"`, "UDP"},
		"a list for one":    {"serve: {port: [1, 2]}", "", "serve", "serve.port is a list", "one value"},
		"a command":         {"serve: yes", "", "test", `there is no setting "serve"`, "thru config --all"},
	} {
		_, _, err := withSettings(t, c.file, strings.Fields(c.variables), c.line)
		if err == nil || fault.Code(err) != fault.Usage || !strings.Contains(err.Error(), c.want) || !strings.Contains(fault.Hint(err), c.hint) {
			t.Errorf("%s: %v, hint %q", name, err, fault.Hint(err))
		}
	}
}

// TestSettingKeys compares the names of all settings with those before: each is in somebody's file. No variable sets two of them.
func TestSettingKeys(t *testing.T) {
	all, err := (&env{Console: &console.Console{Out: io.Discard, Err: io.Discard}}).allSettables()
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	var lines []string
	of := map[string]string{}
	for _, x := range all {
		for _, key := range x.keys() {
			v := settings.Variable(key)
			if before := of[v]; before != "" && before != key || slices.Contains(strings.Fields(ownVariables), v) {
				t.Errorf("%s sets %s, and %s too", v, key, before)
			}
			of[v] = key
			if first, _, below := strings.Cut(key, "."); !below && commands()[first] != "" {
				t.Errorf("%s is a command and a setting of all", key)
			}
		}
		lines = append(lines, strings.Join(x.keys(), " "))
	}
	slices.Sort(lines)
	fmt.Fprintln(&got, strings.Join(slices.Compact(lines), "\n"))
	golden(t, "help/settings", got.Bytes())
}
