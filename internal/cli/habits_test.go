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
	parser, err := parserOf(&env{Console: &console.Console{Out: io.Discard, Err: io.Discard}}, &grammar{})
	if err != nil {
		t.Fatal(err)
	}
	answered := map[[3]string]bool{} // by program, verb and flag: most are in several lists
	check := func(program, verb, flag string, same []string) {
		if k := [3]string{program, verb, flag}; !answered[k] {
			answered[k] = true
			checkAnswer(t, parser, program, verb, flag, same)
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

func checkAnswer(t *testing.T, parser *kong.Kong, program, verb, flag string, same []string) {
	t.Helper()
	if otherwise[program+" "+flag] != "" {
		return
	}
	if hasFlag(parser.Model, verb, flag) {
		if !slices.Contains(same, flag) {
			t.Errorf("thru %s has %s: is it %s's? then it belongs into the list above", verb, flag, program)
		}
		return
	}
	if slices.Contains(same, flag) && (verb == "" || flag == "-h" || flag == "--help") {
		return
	}
	err := tryOut(parser, verb, flag)
	var e *fault.Error
	if !errors.As(err, &e) || e.Code != fault.Usage || e.Hint == "" || strings.HasPrefix(e.Hint, "see `thru") {
		t.Errorf("thru %s %s: no answer for who comes from %s: %v, hint %q", verb, flag, program, err, fault.Hint(err))
	}
}

// tryOut parses an unknown flag, so nothing runs.
func tryOut(parser *kong.Kong, verb, flag string) error {
	args := []string{flag}
	if verb != "" {
		args = []string{verb, flag}
	}
	if err := misread(args); err != nil {
		return err
	}
	if _, err := parser.Parse(args); err != nil {
		return usage(args, err)
	}
	return nil
}
