package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// keyForm is a client's command line, with the keys that iperf3 prints at both ends.
type keyForm struct {
	line           string
	client, server []string // server: nil if it prints text
}

// readKeyForms reads testdata/iperf3-keys.txt, whose head describes the format.
func readKeyForms(t *testing.T) (forms []keyForm) {
	t.Helper()
	text, err := os.ReadFile("testdata/iperf3-keys.txt")
	if err != nil {
		t.Fatal(err)
	}
	var sets [][]string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		last := len(sets) - 1
		switch words := strings.Fields(line); {
		case strings.HasPrefix(line, "#"):
		case words[0] == "=" && len(words) == 2:
			sets = append(sets, nil)
		case words[0] == "=":
			from, _ := strconv.Atoi(words[2])
			sets = append(sets, slices.Clone(sets[from]))
		case words[0] == ">":
			c, _ := strconv.Atoi(words[1])
			form := keyForm{line: strings.Join(words[3:], " "), client: sets[c]}
			if s, err := strconv.Atoi(words[2]); err == nil {
				form.server = sets[s]
			}
			forms = append(forms, form)
		case line[0] == '-':
			sets[last] = slices.DeleteFunc(sets[last], func(k string) bool { return k == line[1:] })
		default:
			sets[last] = append(sets[last], strings.TrimPrefix(line, "+"))
		}
	}
	return forms
}

// keysOf lists the keys of a document with their paths.
func keysOf(x any, in string, found map[string]bool) {
	switch x := x.(type) {
	case map[string]any:
		for k, v := range x {
			name := strings.TrimPrefix(in+"."+k, ".")
			found[name] = true
			keysOf(v, name, found)
		}
	case []any:
		for _, v := range x {
			keysOf(v, in+"[]", found)
		}
	}
}

// TestIPerf3Keys checks that the documents of `thru iperf3 -J` have exactly iperf3's keys, at both ends and
// for each recorded command line.
func TestIPerf3Keys(t *testing.T) {
	forms := readKeyForms(t)
	if len(forms) < 34 {
		t.Fatalf("%d forms", len(forms))
	}
	for _, f := range forms {
		if raced() && !strings.Contains(f.line, "-P") && !strings.Contains(f.line, "--bidir") {
			continue // as of the scripts, only those in which several streams move at once
		}
		t.Run(strings.TrimSpace("-c "+f.line), func(t *testing.T) {
			t.Parallel()
			client, server := playKeys(t, f)
			compareKeys(t, "client", client, f.client)
			if f.server != nil {
				compareKeys(t, "server", server, f.server)
			}
		})
	}
}

func compareKeys(t *testing.T, end string, document []byte, want []string) {
	t.Helper()
	var d any
	if err := json.Unmarshal(document, &d); err != nil {
		t.Fatalf("%s: %v in %q", end, err, document)
	}
	got := map[string]bool{}
	keysOf(d, "", got)
	for _, k := range want {
		if !got[k] {
			t.Errorf("%s: %s is missing", end, k)
		}
		delete(got, k)
	}
	for k := range got {
		t.Errorf("%s: iperf3 prints no %s", end, k)
	}
}

// playKeys runs a server for one test and a client, both of this program.
func playKeys(t *testing.T, f keyForm) (client, server []byte) {
	t.Helper()
	port := unusedPort(t)
	env := append(os.Environ(), "XDG_STATE_HOME="+t.TempDir())
	s := exec.Command("thru", "iperf3", "-s", "-1", "-p", port)
	if f.server != nil {
		s.Args = append(s.Args, "-J")
	}
	var out, problems bytes.Buffer
	s.Env, s.Stdout, s.Stderr = env, &out, &problems
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"iperf3", "-c", "127.0.0.1", "-J", "-p", port}, strings.Fields(strings.ReplaceAll(f.line, "PORT", unusedPort(t)))...)
	if !slices.ContainsFunc(args, func(a string) bool { return a == "-t" || a == "-n" || a == "-k" }) {
		args = append(args, "-t", "1")
	}
	if f.line != "" && !slices.Contains(args, "-b") {
		args = append(args, "-b", "20M") // with or without a rate the keys are the same: see -c and -c -b 10M
	}
	for range 100 { // until the server listens
		c := exec.Command("thru", args...)
		c.Env = env
		client, _ = c.Output()
		if !strings.Contains(string(client), "Connection refused") {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	limit := time.AfterFunc(time.Minute, func() { s.Process.Kill() }) // it waits for a client, forever if that one failed
	defer limit.Stop()
	if err := s.Wait(); err != nil {
		t.Fatalf("server: %v: %s; the client printed %q", err, problems.String(), client)
	}
	return client, out.Bytes()
}

// unusedPort returns a port that was free a moment ago.
func unusedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}
