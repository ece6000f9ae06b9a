//go:build linux || darwin || freebsd || windows

package store_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"thru/internal/store"
	"thru/internal/store/postgres"
	"thru/internal/watch/record"
)

// kills is how many processes TestKilled kills; `make lab` uses 200.
var kills = flag.Int("kills", 20, "how often TestKilled kills processes that write")

// acknowledged is what children have printed for each id: "kept", "deleting" or "deleted",
// and the fingerprint of its document.
type acknowledged map[string]struct{ state, print string }

func (a acknowledged) hear(line string) {
	state, rest, _ := strings.Cut(line, " ")
	id, print, whole := strings.Cut(rest, " ")
	if !whole {
		return // killed while it printed
	}
	if state != "kept" {
		print = a[id].print
	}
	a[id] = struct{ state, print string }{state, print}
}

// Writing processes are killed at any time, while they open, store and delete, two at a
// time: what they acknowledged is stored, and nothing is incomplete.
func TestKilled(t *testing.T) {
	const perFile = 20 // so that some kills hit the creation of the file
	r := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	path, said, all := "", acknowledged{}, 0
	for round := range *kills {
		if round%perFile == 0 {
			path, said = filepath.Join(t.TempDir(), "new", "results.db"), acknowledged{}
		}
		for _, line := range killTwo(t, path, round*2_000, round%4 > 0, r) {
			said.hear(line)
			all++
		}
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			continue // killed before the creation
		}
		verify(t, path, said)
		if t.Failed() {
			t.Fatalf("after kill %d of %d", round+1, *kills)
		}
	}
	if all < *kills/2 { // three rounds in four wait for one
		t.Errorf("%d kills met %d acknowledgements: too few to say anything", *kills, all)
	}
	t.Logf("%d kills, %d acknowledgements", *kills, all)
}

// killTwo runs two children and kills them; begin waits until one has said something. It
// returns their output.
func killTwo(t *testing.T, path string, first int, begin bool, r *rand.Rand) (lines []string) {
	t.Helper()
	heard := make(chan string, 1000)
	begun, ended := make(chan bool, 2), make(chan bool)
	var both []*exec.Cmd
	for i := range 2 {
		cmd, out := start(t, path, first+i*1_000, 0)
		both = append(both, cmd)
		go func() {
			in := bufio.NewReader(out)
			for n := 0; ; n++ {
				line, err := in.ReadString('\n')
				if err != nil {
					break // a line without an end does not count
				}
				heard <- strings.TrimSuffix(line, "\n")
				if n == 0 {
					begun <- true
				}
			}
			ended <- true
		}()
	}
	if begin {
		<-begun
	}
	for _, cmd := range both {
		time.Sleep(time.Duration(r.IntN(60)) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	for left := 2; left > 0; {
		select {
		case line := <-heard:
			lines = append(lines, line)
		case <-ended:
			left--
		}
	}
	for _, cmd := range both {
		_ = cmd.Wait() // it was killed
	}
	for len(heard) > 0 {
		lines = append(lines, <-heard)
	}
	return lines
}

// start starts a child.
func start(t *testing.T, path string, first, count int) (*exec.Cmd, io.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childOf+"="+path, childFirst+"="+strconv.Itoa(first), childCount+"="+strconv.Itoa(count))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, out
}

// verify compares a store with what was acknowledged.
func verify(t *testing.T, path string, said acknowledged) {
	t.Helper()
	s, err := openAny(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if !postgres.Is(path) {
		check(t, path, -1)
	}
	turns := map[string]int{}
	for _, x := range samples(t, s, store.SampleFilter{Layer: record.Probe}) {
		turns[fmt.Sprintf("%s/%d", x.From, int(x.Begin.Sub(midnight()).Minutes()))]++
	}
	for id, n := range turns {
		if n != 1 {
			t.Errorf("the sample %s counts %d times", id, n)
		}
	}
	for id, a := range said {
		if a.state == "sampled" {
			if turns[id] != 1 {
				t.Errorf("the sample %s was acknowledged", id)
			}
			continue
		}
		doc, err := s.Get(context.Background(), id)
		switch {
		case a.state == "deleted" && !errors.Is(err, store.ErrNotFound):
			t.Errorf("%s was deleted: %v", id, err)
		case a.state == "kept" && err != nil:
			t.Errorf("%s was acknowledged: %v", id, err)
		case err == nil && fingerprint(doc) != a.print:
			t.Errorf("%s is not what was kept", id)
		}
	}
	for f := (store.Filter{Limit: 50}); ; {
		found, more, err := s.Find(context.Background(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range found {
			if _, err := s.Get(context.Background(), e.ID); err != nil {
				t.Errorf("%s is listed: %v", e.ID, err)
			}
			f.Before = e.ID
		}
		if !more {
			return
		}
	}
}

// Several processes write at once, to a file that does not exist yet.
func TestProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	check(t, path, writeMany(t, path)*4/5)
}

// writeMany has several processes write at once, and returns how many results they stored, of which a fifth is deleted.
func writeMany(t *testing.T, path string) int {
	const processes, each = 5, 20
	said := acknowledged{}
	var all []*exec.Cmd
	var outs []io.Reader
	for p := range processes {
		cmd, out := start(t, path, p*1000, each)
		all, outs = append(all, cmd), append(outs, out)
	}
	for p, cmd := range all {
		text, err := io.ReadAll(outs[p])
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("process %d: %v", p, err)
		}
		for line := range strings.Lines(string(text)) {
			said.hear(strings.TrimSpace(line))
		}
	}
	verify(t, path, said)
	return processes * each
}
