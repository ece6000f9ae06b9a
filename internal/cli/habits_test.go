package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"thru/internal/cli/console"
	"thru/internal/fault"
)

// same are the flags of thru test with the same meaning in both programs.
var same = strings.Fields(`-h --help -t --time -w --window -l --length --len -O --omit -i --interval -C --congestion --linux-congestion
	--tcp-congestion -M --set-mss --mss -N --no-delay --nodelay -Z --zerocopy -A --affinity --dscp -4 --version4 -6 --version6
	-u --udp -b --bitrate --bandwidth -n --bytes --num -k --blockcount -P --parallel -R --reverse --bidir -p --port -B --bind
	--bind-dev --cport --dont-fragment --username --rsa-public-key-path --use-pkcs1-padding --get-server-output
	-J --json-stream`)

// sameServe are those of thru serve.
var sameServe = strings.Fields(`-h --help -p --port -B --bind --bind-dev
	--authorized-users-path --rsa-private-key-path --use-pkcs1-padding --time-skew-threshold`)

// otherwise are the flags with another meaning in thru, with the reason, or how thru detects the mistake.
var otherwise = map[string]string{
	"iperf2 -C":     "iperf3's congestion control; the old meaning has the long form --compatibility alone",
	"iperf2 -Z":     "iperf3's zero-copy; misread tells a name behind it",
	"iperf3 --json": "thru's own document; -J is iperf3's",
}

// TestEveryFlagHasAnAnswer checks that every flag of the recorded lists means the same here, or has its own
// hint.
func TestEveryFlagHasAnAnswer(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&grammar{}, kong.PostBuild(withOptions))
	if err != nil {
		t.Fatal(err)
	}
	answered := map[[3]string]bool{} // by program, verb and flag: most are in several lists
	check := func(program, verb, flag string, same []string) {
		if k := [3]string{program, verb, flag}; !answered[k] {
			answered[k] = true
			checkAnswer(t, parser.Model, program, verb, flag, same)
		}
	}
	files, err := filepath.Glob("testdata/habits/*.flags")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d lists, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		program, _, _ := strings.Cut(filepath.Base(file), "-")
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if fields[0] == "#" {
				continue
			}
			for _, flag := range fields[1:] {
				if fields[0] != "server" {
					check(program, "test", flag, same)
					check(program, "ladder", flag, same)
				}
				if fields[0] != "client" {
					check(program, "serve", flag, sameServe)
				}
				check(program, "", flag, []string{"-h", "--help", "-v", "--version"})
			}
		}
	}
}

func checkAnswer(t *testing.T, all *kong.Application, program, verb, flag string, same []string) {
	t.Helper()
	if otherwise[program+" "+flag] != "" {
		return
	}
	if hasFlag(all, verb, flag) {
		if !slices.Contains(same, flag) {
			t.Errorf("thru %s has %s: is it %s's? then it belongs into the list above", verb, flag, program)
		}
		return
	}
	if slices.Contains(same, flag) && (verb == "" || flag == "-h" || flag == "--help") {
		return
	}
	err := tryOut(t, verb, flag)
	var e *fault.Error
	if !errors.As(err, &e) || e.Code != fault.Usage || e.Hint == "" || strings.HasPrefix(e.Hint, "see `thru") {
		t.Errorf("thru %s %s: no answer for who comes from %s: %v, hint %q", verb, flag, program, err, fault.Hint(err))
	}
}

// tryOut parses an unknown flag, so nothing runs.
func tryOut(t *testing.T, verb, flag string) error {
	args := []string{flag}
	if verb != "" {
		args = []string{verb, flag}
	}
	return run(t.Context(), &env{Console: &console.Console{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Args: args}})
}

func TestHints(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"test -c 10.0.0.2 -P 4", "thru test 10.0.0.2;"},
		{"-c10.0.0.2", "thru test 10.0.0.2;"},
		{"test --client=10.0.0.2", "thru test 10.0.0.2;"},
		{"test -c", "thru test HOST;"},
		{"test -uS 0xb8 host", "--dscp 46"},
		{"test --tos=184", "--dscp 46"},
		{"test -Sef", "--dscp ef"},
		{"test -S 300", "--dscp 300"},
		{"test -S", "--dscp N"},
		{"-s", "thru serve"},
		{"serve -s", "leave it out"},
		{"test -d", "--bidir"},
		{"test -r", "leave it out"},
		{"test -Z cubic host", "-C cubic"},
		{"test -Z bbr", "-C bbr"},
		{"ladder -P 4", "thru test -P"},
		{"serve -u", "at the client"},
		{"serve -S 184", "at the client: take the code point"},
		{"-u", "begin with a command: thru test -u"},
		{"serve --server-bitrate-limit 1G", "--max-rate 1G"},
		{"test --fq-rate 5G", "-b 5G"},
		{"test --full-duplex", "--bidir --one-connection"},
		{"test -Q", "see `thru test --help`"},
		{"test --nonsense", "see `thru test --help`"},
	} {
		err := run(t.Context(), &env{Console: &console.Console{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Args: strings.Fields(c.line)}})
		if err == nil || fault.Code(err) != fault.Usage || !strings.Contains(fault.Hint(err), c.want) {
			t.Errorf("thru %s: %v, hint %q, want %q in it", c.line, err, fault.Hint(err), c.want)
		}
	}
}

// TestHabitsAreReached checks that no row of the table hides a later one.
func TestHabitsAreReached(t *testing.T) {
	for _, list := range [][]habit{ownHabits, farHabits} {
		for i := range list {
			h := &list[i]
			for _, flag := range strings.Fields(h.flags) {
				if got := habitOf(list, h.verb, flag); got != h {
					t.Errorf("%s of %q is answered by %q", flag, h.flags, got.flags)
				}
			}
			if strings.Contains(h.hint("VALUE"), "{") {
				t.Errorf("%q is left with a gap: %q", h.flags, h.hint("VALUE"))
			}
		}
	}
}
