package lab_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"thru/lab"
)

// checkPartial checks a client that lost its peer during the test: it must end in time, with exit 1, and with
// a document that says so and holds the results so far.
func checkPartial(t *testing.T, client *program) {
	t.Helper()
	if code := client.wait(t, lossLimit); code != 1 {
		t.Errorf("exit %d, want 1", code)
	}
	doc := client.document(t)
	if doc.Error == nil || doc.Error.ExitCode != 1 || doc.Error.Message == "" {
		t.Errorf("error %+v, want a message and exit code 1", doc.Error)
	}
	var bytes int64
	for _, f := range flows(doc) {
		if f.Sender != nil {
			bytes += f.Sender.Bytes
		}
	}
	if bytes == 0 {
		t.Errorf("%d cells hold nothing of what was sent until then", len(doc.Cells))
	}
}

func TestServerIsKilled(t *testing.T) {
	t.Parallel()
	p := lab.NewPair(t, lab.Options{Rate: slow})
	server := serve(t, p.B, "--no-auth")
	client := start(t, p.A, t.TempDir(), "", "test", "--json", "-t", "30", "--one-way", p.Data.B4.String())
	underWay(t, p, client, slow)
	server.signal(t, syscall.SIGKILL)
	checkPartial(t, client)
	eventuallyIdle(t, p.B, idle{}, lossLimit)
	eventuallyIdle(t, p.A, idle{}, lossLimit)
}

func TestLinkGoesDown(t *testing.T) {
	t.Parallel()
	p := lab.NewPair(t, lab.Options{Rate: slow})
	serve(t, p.B, "--no-auth")
	before := look(p.B)
	client := start(t, p.A, t.TempDir(), "", "test", "--json", "-t", "30", "--one-way", p.Data.B4.String())
	underWay(t, p, client, slow)
	p.A.LinkDown(lab.DataDev)
	checkPartial(t, client)
	lab.Eventually(t, lossLimit, "the server has no worker", func() bool { return len(p.B.Pids()) == before.pids })
	// The kernel cannot deliver the FIN of a closed connection over a link that is down, and keeps the socket
	// (FIN-WAIT-1) until the link is up.
	p.A.LinkUp(lab.DataDev)
	eventuallyIdle(t, p.B, before, 30*time.Second)
	test(t, p.A, "-t", "0.5", "--one-way", p.Data.B4.String())
}

func TestClientIsKilled(t *testing.T) {
	t.Parallel()
	p := lab.NewPair(t, lab.Options{Rate: slow})
	serve(t, p.B, "--no-auth")
	before := look(p.B)
	client := start(t, p.A, t.TempDir(), "", "test", "--json", "-t", "30", "--one-way", p.Data.B4.String())
	underWay(t, p, client, slow)
	client.signal(t, syscall.SIGKILL)
	eventuallyIdle(t, p.B, before, lossLimit)
	eventuallyIdle(t, p.A, idle{}, lossLimit)
	test(t, p.A, "-t", "0.5", "--one-way", p.Data.B4.String())
}

func TestDataPortsBlocked(t *testing.T) {
	t.Parallel()
	lab.Require(t, lab.Program("nft"))
	for _, verdict := range []string{"drop", "reject with tcp reset"} {
		t.Run(verdict, func(t *testing.T) {
			t.Parallel()
			p := lab.NewPair(t, lab.Options{})
			serve(t, p.B, "--no-auth")
			before := look(p.B)
			p.B.Nft(`table inet firewall {
	chain input {
		type filter hook input priority 0
		tcp dport 5202-5233 ` + verdict + `
	}
}
`)
			client := start(t, p.A, t.TempDir(), "", "test", "--json", "-t", "1", p.Data.B4.String())
			if code := client.wait(t, lossLimit); code != 1 {
				t.Errorf("exit %d, want 1", code)
			}
			doc := client.document(t)
			if doc.Error == nil {
				t.Fatal("no error in the document")
			}
			if said := doc.Error.Message + " " + doc.Error.Hint; !strings.Contains(said, "5202") || !strings.Contains(said, "5233") {
				t.Errorf("the error does not name the ports: %s", said)
			}
			eventuallyIdle(t, p.B, before, lossLimit)
		})
	}
}

// TestDataLinkGoesDown takes the data link down while control uses another link, in a long test and shortly
// before the end of a short one, in both directions.
func TestDataLinkGoesDown(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-t", "30", "--one-way"}, {"-t", "30", "-R"}, {"-t", "2", "--one-way"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			p := lab.NewPair(t, lab.Options{Rate: slow, Control: true})
			serve(t, p.B, "--no-auth", "--data-addr", p.Data.B4.String())
			before := look(p.B)
			client := start(t, p.A, t.TempDir(), "", append([]string{"test", "--json", p.Control.B4.String()}, args...)...)
			begun := p.A.Counters(lab.DataDev)
			lab.Eventually(t, 20*time.Second, "the ramp is over", func() bool {
				moved := p.A.Counters(lab.DataDev).Sub(begun)
				return moved.RxBytes+moved.TxBytes > 13*slow/80 // 1.3 s of it
			})
			p.A.LinkDown(lab.DataDev)
			if code := client.wait(t, lossLimit+2*time.Second); code != 1 {
				t.Errorf("exit %d, want 1", code)
			}
			doc := client.document(t)
			if doc.Error == nil || !strings.Contains(doc.Error.Message, "data stopped") || doc.Error.Hint == "" || doc.Verdict != nil {
				t.Errorf("error %+v, verdict %+v", doc.Error, doc.Verdict)
			}
			lab.Eventually(t, lossLimit, "the server has no worker", func() bool { return len(p.B.Pids()) == before.pids })
		})
	}
}
