package shell

import (
	"slices"
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	for line, want := range map[string][]string{
		"thru ":                   {"thru", ""},
		"thru te":                 {"thru", "te"},
		"thru  test\t-P":          {"thru", "test", "-P"},
		`thru report "a b`:        {"thru", "report", "a b"},
		`thru report 'a\ b' c`:    {"thru", "report", `a\ b`, "c"},
		`thru report a\ b "c\"d"`: {"thru", "report", "a b", `c"d`},
		"":                        {""},
	} {
		if got := split(line, '\\'); !slices.Equal(got, want) {
			t.Errorf("%q is %q, want %q", line, got, want)
		}
	}
	for _, c := range []struct {
		shell string
		args  []string
		want  []string
	}{
		{"bash", []string{"thru test -P"}, []string{"test", "-P"}},
		{"zsh", []string{"test", "-P"}, []string{"test", "-P"}},
		{"bash", []string{"thru"}, []string{}},
		{"powershell", []string{`thru report C:\a\ b` + "` c"}, []string{"report", `C:\a\`, "b c"}},
	} {
		if got := Read(c.shell, c.args); !slices.Equal(got, c.want) {
			t.Errorf("%s %q is %q, want %q", c.shell, c.args, got, c.want)
		}
	}
}

func TestPrint(t *testing.T) {
	a := Answer{Words: []Word{{"iperf3://b", "an end point: one\nmore"}, {"iperf3://c", ""}, {"else", ""}, {"iperf3://x\ny", ""}}, Kind: Words}
	for shell, want := range map[string]string{
		"bash":       "words\n//b\n//c\n",
		"zsh":        "words\niperf3\\://b:an end point: one\niperf3\\://c\n",
		"fish":       "words\niperf3://b\tan end point: one\niperf3://c\n",
		"powershell": "words\niperf3://b\tan end point: one\niperf3://c\n",
	} {
		if got := a.Print(shell, "iperf3:"); got != want {
			t.Errorf("%s: %q, want %q", shell, got, want)
		}
	}
	if got := (Answer{Words: []Word{{"fleet/", ""}}, Kind: Words}).Print("bash", ""); got != "more\nfleet/\n" {
		t.Errorf("a controller is followed by a space: %q", got)
	}
}

// TestScripts: each shell has a script that runs the hidden command.
func TestScripts(t *testing.T) {
	for _, name := range Shells() {
		text, file := Script(name)
		if file == "" || !strings.Contains(string(text), " "+Verb+" "+name+" ") {
			t.Errorf("%s: %s: %s", name, file, text)
		}
	}
	if text, _ := Script("csh"); text != nil {
		t.Errorf("csh: %s", text)
	}
}
