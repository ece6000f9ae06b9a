package alert

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"thru/internal/measure"
	"thru/internal/watch/record"
)

var at = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// alarm returns a message about one pair, with hostile names.
func alarm(id string) Message {
	return Message{Schema: record.Schema, At: at, Text: "a -> b: down since 11:59\nBcc: all@example.net", Alarm: record.Alarm{
		ID: id, Kind: record.KindOutage, Pairs: []record.Pair{{From: "a", To: "b"}}, Host: "b", Labels: map[string]string{"from": "a", "to": "b", "host": "b"}, Since: at.Add(-time.Minute),
		Findings: []measure.Finding{{Cause: "loss", Summary: "packets are lost"}}, Facts: []record.FactChange{{Host: "b", Fact: "mtu", Before: "9000", After: "1500"}},
	}}
}

// server records requests.
func server(t *testing.T, status int) (url string, got func() (*http.Request, []byte)) {
	var request *http.Request
	var body []byte
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request = r
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() (*http.Request, []byte) { return request, body }
}

func TestAlertmanager(t *testing.T) {
	url, got := server(t, 200)
	if err := Alertmanager(url+"/").Send(t.Context(), alarm("x1")); err != nil {
		t.Fatal(err)
	}
	r, body := got()
	var alerts []struct {
		Labels, Annotations map[string]string
		StartsAt, EndsAt    time.Time
	}
	if err := json.Unmarshal(body, &alerts); err != nil || len(alerts) != 1 || r.URL.Path != "/api/v2/alerts" {
		t.Fatalf("%v: %s at %s", err, body, r.URL.Path)
	}
	a := alerts[0]
	if a.Labels["alertname"] != "thru_outage" || a.Labels["from"] != "a" || a.Labels["host"] != "b" || a.Labels["severity"] != "critical" || a.Annotations["description"] != "packets are lost" {
		t.Errorf("%+v", a)
	}
	if !a.StartsAt.Equal(at.Add(-time.Minute)) || !a.EndsAt.Equal(at.Add(alertLasts)) {
		t.Errorf("from %v until %v", a.StartsAt, a.EndsAt)
	}
	over := alarm("x1")
	over.Alarm.End = at
	if err := Alertmanager(url).Send(t.Context(), over); err != nil {
		t.Fatal(err)
	}
	_, body = got()
	if err := json.Unmarshal(body, &alerts); err != nil || !alerts[0].EndsAt.Equal(at) {
		t.Errorf("%v: %s", err, body)
	}
}

func TestWebhook(t *testing.T) {
	url, got := server(t, 204)
	if err := Webhook(url, []byte("key")).Send(t.Context(), alarm("x1")); err != nil {
		t.Fatal(err)
	}
	r, body := got()
	h := hmac.New(sha256.New, []byte("key"))
	h.Write(body)
	if want := "sha256=" + hex.EncodeToString(h.Sum(nil)); r.Header.Get("Thru-Signature") != want || r.Header.Get("Thru-Alarm") != "x1" {
		t.Errorf("%v, want the signature %s", r.Header, want)
	}
	url, _ = server(t, 500)
	if err := Webhook(url, nil).Send(t.Context(), alarm("x1")); err == nil || !strings.Contains(err.Error(), "500") {
		t.Errorf("a server that fails: %v", err)
	}
}

// script writes a program that keeps its stdin and arguments.
func script(t *testing.T, name string) (dir string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the programs of this test are shell scripts")
	}
	dir = t.TempDir()
	text := "#!/bin/sh\ncat >" + dir + "/stdin\necho \"$@\" >" + dir + "/args\n"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestProgram(t *testing.T) {
	dir := script(t, "page")
	if err := Program(dir+"/page", "noc").Send(t.Context(), alarm("x1")); err != nil {
		t.Fatal(err)
	}
	var m Message
	text, err := os.ReadFile(dir + "/stdin")
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil || m.Alarm.ID != "x1" || m.Schema != record.Schema {
		t.Errorf("%v: %s", err, text)
	}
	if err := Program(dir+"/nothing").Send(t.Context(), alarm("x1")); err == nil {
		t.Error("a program that does not exist ran")
	}
}

func TestMail(t *testing.T) {
	dir := script(t, "sendmail")
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	if err := Mail("noc@example.net").Send(t.Context(), alarm("x1")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(dir + "/stdin")
	if err != nil {
		t.Fatal(err)
	}
	head, body, _ := bytes.Cut(text, []byte("\n\n"))
	if strings.Contains(string(head), "\nBcc:") || !strings.Contains(string(head), "To: noc@example.net\n") {
		t.Errorf("head: %s", head)
	}
	if !strings.Contains(string(body), "mtu was 9000, is 1500") || !strings.Contains(string(body), "packets are lost") {
		t.Errorf("body: %s", body)
	}
}

// fake is a sink that fails until it is up.
type fake struct {
	name string
	mu   sync.Mutex
	up   bool
	got  []string
}

func (f *fake) sink() Sink { return Sink{Name: f.name, Send: f.send} }

func (f *fake) send(_ context.Context, m Message) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.up {
		return errors.New("refused")
	}
	f.got = append(f.got, m.Alarm.ID)
	return nil
}

// TestOutbox: alarms wait for a sink that is down, across a restart, and come in order and once.
func TestOutbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &fake{}
		var waiting []byte
		run := func(put ...string) (warned int) {
			o := &Outbox{Save: func(b []byte) error { waiting = b; return nil }, Warn: func(error) { warned++ }}
			if err := o.Open(waiting, []Sink{sink.sink()}); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			for _, id := range put {
				if err := o.Put(alarm(id)); err != nil {
					t.Fatal(err)
				}
			}
			o.Run(ctx)
			return warned
		}
		if warned := run("1", "2"); warned != 1 {
			t.Errorf("%d warnings of one outage", warned)
		}
		sink.up = true
		run("3")
		run()
		if strings.Join(sink.got, " ") != "1 2 3" {
			t.Errorf("got %q", sink.got)
		}
	})
}

// TestChange: other sinks take over while it runs; one that stays gets what waits for it, once.
func TestChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stays, goes, comes := &fake{name: "stays"}, &fake{name: "goes"}, &fake{name: "comes", up: true}
		o := &Outbox{Warn: func(error) {}}
		if err := o.Open(nil, []Sink{stays.sink(), goes.sink()}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go o.Run(ctx)
		put := func(id string) {
			if err := o.Put(alarm(id)); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Hour)
		}
		put("1")
		o.Change([]Sink{stays.sink(), comes.sink()})
		stays.up, goes.up = true, true
		put("2")
		cancel()
		synctest.Wait()
		if got := [3]string{strings.Join(stays.got, " "), strings.Join(goes.got, " "), strings.Join(comes.got, " ")}; got != [3]string{"1 2", "", "2"} || len(o.waiting["goes"]) > 0 {
			t.Errorf("got %q, %d wait", got, len(o.waiting["goes"]))
		}
	})
}

// TestRepeat: a sink that ends alarms gets those that last again, and no other does.
func TestRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends, other := &fake{name: "ends", up: true}, &fake{name: "other", up: true}
		o := &Outbox{Lasting: func() []Message { return []Message{alarm("1")} }}
		repeats := ends.sink()
		repeats.repeats = true
		if err := o.Open(nil, []Sink{repeats, other.sink()}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*repeatEvery-tick/2)
		defer cancel()
		o.Run(ctx)
		if len(ends.got) != 3 || len(other.got) != 0 {
			t.Errorf("got %q and %q", ends.got, other.got)
		}
	})
}

func TestOutboxIsBounded(t *testing.T) {
	o := new(Outbox)
	if err := o.Open(nil, []Sink{new(fake).sink()}); err != nil {
		t.Fatal(err)
	}
	var last error
	for range mostKept + 1 {
		last = o.Put(alarm("x"))
	}
	if last == nil || len(o.waiting[""]) != mostKept {
		t.Errorf("%d wait, %v", len(o.waiting[""]), last)
	}
}

func TestDamaged(t *testing.T) {
	if err := new(Outbox).Open([]byte("{"), nil); err == nil {
		t.Error("damaged JSON is read")
	}
	o := &Outbox{Save: func([]byte) error { return errors.New("disk full") }}
	if err := o.Open(nil, []Sink{new(fake).sink()}); err != nil {
		t.Fatal(err)
	}
	if err := o.Put(alarm("x")); err == nil || len(o.waiting[""]) != 1 {
		t.Errorf("%v, %d wait: what cannot be saved is sent all the same", err, len(o.waiting[""]))
	}
}

func TestJournal(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenPacket("unixgram", socket)
	if err != nil {
		t.Skip("no datagram sockets here: ", err)
	}
	defer l.Close()
	if err := Journal(socket).Send(t.Context(), alarm("x1")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4096)
	n, _, err := l.ReadFrom(b)
	if got := string(b[:n]); err != nil || !strings.Contains(got, "MESSAGE\n-\x00\x00") || !strings.Contains(got, "ALARM_ID\n\x02\x00\x00\x00\x00\x00\x00\x00x1\n") {
		t.Errorf("%v: %q", err, got)
	}
}
