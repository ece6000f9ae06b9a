package cli

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"thru/internal/cli/console"
	"thru/internal/cli/shell"
	"thru/internal/fault"
)

// TestCompletion: what may stand at the end of a line.
func TestCompletion(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("THRU_CONFIG", "/dev/null")
	t.Setenv("THRU_STORE", t.TempDir()+"/none.db")
	for line, want := range map[string]struct{ kind, some, not string }{
		"":                          {shell.Words, "test serve completion", "complete-for"},
		"te":                        {shell.Words, "test", "serve"},
		"test -":                    {shell.Words, "--streams -P --color", "--rotate"},
		"test --str":                {shell.Words, "--streams", "--color"},
		"test ":                     {shell.Words, "local", "test"},
		"test h ":                   {shell.Words, "", "local"},
		"test -P ":                  {shell.Words, "", "local"},
		"test -P 4 ":                {shell.Words, "local", ""},
		"test -P4 ":                 {shell.Words, "local", ""},
		"test -uP 4 l":              {shell.Words, "local", ""},
		"test -- -":                 {shell.Words, "", "--streams"},
		"test --io ":                {shell.Words, "mmsg gso", "local"},
		"test --io=g":               {shell.Words, "--io=gso", "--io=mmsg"},
		"--color ":                  {shell.Words, "auto always never", "test"},
		"--color never te":          {shell.Words, "test", ""},
		"test --html ":              {shell.Files, "", ""},
		"serve --state ":            {shell.Folders, "", ""},
		"serve --allow tune,f":      {shell.Words, "tune,files", "tune,capture"},
		"serve --tune-only tcp-rm":  {shell.Words, "tcp-rmem", ""},
		"check --only mtu":          {shell.Words, "mtu-path", ""},
		"history ":                  {shell.Words, "list prune", "local"},
		"history --ver":             {shell.Words, "--verdict", ""},
		"history list --verdict ":   {shell.Words, "pass fail", ""},
		"service status ":           {shell.Words, "serve control", ""},
		"plan new ":                 {shell.Words, "mesh", "check"},
		"plan check ":               {shell.Files, "", ""},
		"help tra":                  {shell.Words, "traffic transfer", ""},
		"config ser":                {shell.Words, "serve", ""},
		"completion ":               {shell.Words, "bash zsh fish powershell", ""},
		"disk ":                     {shell.Folders, "", ""},
		"report ":                   {shell.Files, "", ""},
		"explain ":                  {shell.Files, "local", ""},
		"nothing-like-it --color a": {shell.Words, "auto", ""},
	} {
		var out bytes.Buffer
		e := &env{Console: &console.Console{Out: &out, Err: io.Discard, Args: append([]string{shell.Verb, "fish"}, strings.Split(line, " ")...)}}
		if code := e.completeFor(t.Context()); code != fault.OK {
			t.Errorf("%q ends with %d", line, code)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		var words []string
		for _, l := range lines[1:] {
			word, _, _ := strings.Cut(l, "\t")
			words = append(words, word)
		}
		if lines[0] != want.kind {
			t.Errorf("%q offers %s, want %s", line, lines[0], want.kind)
		}
		for _, w := range strings.Fields(want.some) {
			if !slices.Contains(words, w) {
				t.Errorf("%q does not offer %s but %q", line, w, words)
			}
		}
		for _, w := range strings.Fields(want.not) {
			if slices.Contains(words, w) {
				t.Errorf("%q offers %s", line, w)
			}
		}
	}
}
