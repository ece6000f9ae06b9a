package lab_test

import (
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"thru/lab"
)

// TestTwentyRunsLeaveNothing compares the server after three runs, when one-time allocations are done, with
// the server after twenty.
func TestTwentyRunsLeaveNothing(t *testing.T) {
	t.Parallel()
	p := lab.NewPair(t, lab.Options{Rate: slow})
	few := serve(t, p.B, "--no-auth")
	before := look(p.B)
	measureTimes(t, p, 3)
	eventuallyIdle(t, p.B, before, lossLimit)
	fewGoroutines := goroutines(t, few)

	many := serve(t, p.B, "--no-auth")
	pid := many.cmd.Process.Pid
	measureTimes(t, p, 3)
	eventuallyIdle(t, p.B, before, lossLimit)
	files, threads := count(t, pid, "fd"), count(t, pid, "task")
	measureTimes(t, p, 17)
	eventuallyIdle(t, p.B, before, lossLimit)
	eventuallyIdle(t, p.A, idle{}, lossLimit)
	if now := count(t, pid, "fd"); now != files {
		t.Errorf("%d open files after 20 runs, %d after 3", now, files)
	}
	// The runtime adds a thread now and then; a leak would add one every run.
	if now := count(t, pid, "task"); now > threads+3 {
		t.Errorf("%d threads after 20 runs, %d after 3", now, threads)
	}
	if now := goroutines(t, many); now > fewGoroutines+3 {
		t.Errorf("%d goroutines after 20 runs, %d after 3", now, fewGoroutines)
	}
}

// measureTimes runs short tests one after the other.
func measureTimes(t *testing.T, p *lab.Pair, times int) {
	t.Helper()
	for range times {
		test(t, p.A, "-t", "0.2", "-O", "0.1", "--one-way", p.Data.B4.String())
	}
}

// goroutines ends a server with SIGQUIT, on which the Go runtime lists its goroutines (package runtime/debug,
// "Signals"), and counts them.
func goroutines(t *testing.T, p *program) int {
	t.Helper()
	p.signal(t, syscall.SIGQUIT)
	p.wait(t, 5*time.Second)
	list := regexp.MustCompile(`(?m)^goroutine \d+ `).FindAllString(p.stderr.String(), -1)
	if len(list) == 0 {
		t.Fatal("the server listed no goroutines on SIGQUIT")
	}
	return len(list)
}

func TestSeveralClientsAtOnce(t *testing.T) {
	t.Parallel()
	p := lab.NewPair(t, lab.Options{Rate: slow})
	serve(t, p.B, "--no-auth")
	before := look(p.B)
	var clients []*program
	for range 3 {
		clients = append(clients, start(t, p.A, t.TempDir(), "", "test", "--json", "-t", "1", "--one-way", p.Data.B4.String()))
	}
	for i, c := range clients {
		if code := c.wait(t, 50*time.Second); code != 0 {
			t.Errorf("client %d ended with exit %d", i, code)
			continue
		}
		doc := c.document(t)
		if cells := mainCells(doc); doc.Error != nil || len(cells) != 1 || cells[0].Goodput == nil {
			t.Errorf("client %d has no figure: error %+v, %d cells", i, doc.Error, len(cells))
		}
	}
	eventuallyIdle(t, p.B, before, lossLimit)
}

func TestTerminateEndsTheServer(t *testing.T) {
	t.Parallel()
	p := lab.NewPair(t, lab.Options{Rate: slow})
	server := serve(t, p.B, "--no-auth")
	client := start(t, p.A, t.TempDir(), "", "test", "--json", "-t", "30", "--one-way", p.Data.B4.String())
	underWay(t, p, client, slow)
	server.signal(t, syscall.SIGTERM)
	if code := server.wait(t, lossLimit); code != 0 {
		t.Errorf("exit %d, want 0", code)
	}
	eventuallyIdle(t, p.B, idle{}, lossLimit)
	checkPartial(t, client)
}

// TestJoinStringLetsIn serves with a password, the default: a client needs the join string.
func TestJoinStringLetsIn(t *testing.T) {
	t.Parallel()
	p := lab.NewPair(t, lab.Options{Rate: slow})
	server := serve(t, p.B)
	home := t.TempDir()

	stranger := start(t, p.A, home, "", "test", "--json", "-t", "0.5", p.Data.B4.String())
	if code := stranger.wait(t, lossLimit); code == 0 {
		t.Error("a client without the join string was let in")
	}
	if doc := stranger.document(t); doc.Error == nil || doc.Error.Hint == "" || len(flows(doc)) != 0 {
		t.Errorf("the refusal has error %+v and %d flows, want a hint and none", doc.Error, len(flows(doc)))
	}

	join := start(t, p.A, home, joinString(t, server), "join", "bee")
	if code := join.wait(t, lossLimit); code != 0 {
		t.Fatalf("thru join ended with exit %d", code)
	}
	client := start(t, p.A, home, "", "test", "--json", "-t", "0.5", "--one-way", "bee")
	if code := client.wait(t, 50*time.Second); code != 0 {
		t.Fatalf("with the join string thru test ended with exit %d", code)
	}
	if doc := client.document(t); doc.Error != nil || len(mainCells(doc)) != 1 {
		t.Errorf("error %+v, %d cells", doc.Error, len(doc.Cells))
	}
	for _, text := range []string{join.stdout.String(), join.stderr.String(), client.stdout.String(), client.stderr.String()} {
		if strings.Contains(text, joinString(t, server)) {
			t.Error("the secret was printed by the client")
		}
	}
}

// joinString finds the join string in the output of thru serve.
func joinString(t *testing.T, server *program) string {
	t.Helper()
	s := regexp.MustCompile(`thru1\.[\w-]+`).FindString(server.stdout.String())
	if s == "" {
		t.Fatal("thru serve printed no join string")
	}
	return s
}
