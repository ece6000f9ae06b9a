package bus

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// FuzzFleetMessages parses untrusted bytes as messages to a controller and to agents.
func FuzzFleetMessages(f *testing.F) {
	f.Add([]byte(`{"transfer":"AAAAAAAAAAAAAAAAAAAAAAAAAA","id":"x","size_bytes":3,"sha256":"` + strings.Repeat("0", 64) + `","offset_bytes":0,"part":"AAAA"}`))
	f.Add([]byte(`{"login":"x","events":7}`))
	f.Add([]byte(`{"version":1,"names":{"a":{"key":"b"}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, ok := parseSpool(b); ok && (m.Size > spoolBytes || m.Offset+len(m.Part) > m.Size || strings.ContainsAny(m.ID, "/\\ \n") || m.ID == "") {
			t.Errorf("%+v", m)
		}
		if names, err := readNames(b); err == nil {
			for name := range names {
				if !validName(name) {
					t.Errorf("%q", name)
				}
			}
		}
		for _, v := range []any{&lifeSign{}, &againRequest{}, &ackMessage{}, &HostsRequest{}, &HostsReply{}, &ForgetRequest{}, &Empty{}, &ClockReply{}} {
			if decode(b, v) == nil && len(b) == 0 {
				t.Error("an empty message was taken")
			}
		}
	})
}

// FuzzOperator parses untrusted tokens as an operator.
func FuzzOperator(f *testing.F) {
	f.Add("a-b")
	f.Fuzz(func(t *testing.T, s string) {
		if o, ok := operatorOfClient(s); ok && (o.client() != s || strings.ContainsAny(o.String()[len(o.key)+1:], ".*> ")) {
			t.Errorf("%q is %v", s, o)
		}
	})
}

// TestKeptAnswers: the kept messages are limited, and are resent in order.
func TestKeptAnswers(t *testing.T) {
	var k keptAnswers
	var sent []string
	send := func(m *nats.Msg) error {
		sent = append(sent, m.Header.Get(headerNumber)+":"+string(m.Data))
		return nil
	}
	event := func(kind, text string) {
		k.publish(&nats.Msg{Header: nats.Header{}, Data: []byte(text)}, kind, send)
	}
	event(EventDone, "a")
	event(EventProgress, "p")
	event(EventFailed, "b")
	k.again(1, send)
	if got := strings.Join(sent, " "); got != "1:a :p 2:b 2:b" {
		t.Error(got)
	}
	for i := range 2 * keptEvents {
		event(EventDone, fmt.Sprint(i))
	}
	sent = nil
	k.again(0, send)
	if len(sent) != keptEvents || sent[keptEvents-1] != fmt.Sprintf("%d:%d", 2+2*keptEvents, 2*keptEvents-1) {
		t.Errorf("%d events, the last %s", len(sent), sent[len(sent)-1])
	}
	resent := 0
	again := func(*nats.Msg) { resent++ }
	if k.seen("x", again) || !k.seen("x", again) || resent != 0 {
		t.Error("a request that runs")
	}
	k.answered(&nats.Msg{Subject: "x", Data: []byte("y")})
	k.answered(&nats.Msg{Subject: "unknown"})
	if !k.seen("x", again) || resent != 1 {
		t.Error("a request that was answered")
	}
	for i := range 2 * keptReplies {
		k.seen(fmt.Sprint(i), again)
		k.answered(&nats.Msg{Subject: fmt.Sprint(i), Data: make([]byte, partBytes)})
	}
	if k.bytes > keptReplyBytes || len(k.order) > keptReplies || len(k.replies) != len(k.order) {
		t.Error(k.bytes, len(k.order), len(k.replies))
	}
}

// TestIntakeRoom: offers alone reserve no room, the largest delivery makes room for a
// smaller one, and a stopped one yields its place.
func TestIntakeRoom(t *testing.T) {
	in := newIntake(&Registry{conf: RegistryConfig{Intake: func(Spooled) error { return nil }}})
	now := time.Now()
	offer := func(size int) spoolMessage {
		return spoolMessage{Transfer: newID(), ID: "x", Size: size, SHA256: strings.Repeat("0", 64)}
	}
	for i := range 8 {
		if a, _ := in.take(fmt.Sprint("rogue", i), offer(spoolBytes), now); a.Error != "" {
			t.Fatal(a.Error)
		}
	}
	if a, _ := in.take("good", offer(100), now); a.Error != "" || in.held != 0 {
		t.Errorf("beside offers without data: %q, %d held", a.Error, in.held)
	}
	for i := range 5 { // more than there is room for
		agent := fmt.Sprint("rogue", i)
		m := in.coming[agent].spoolMessage
		m.Part = make([]byte, spoolBytes-1)
		in.take(agent, m, now)
	}
	m := in.coming["good"].spoolMessage
	m.Part = make([]byte, 99)
	if a, _ := in.take("good", m, now); a.Error != "" || a.Next != 99 || in.held > intakeBytes {
		t.Errorf("beside those that hold much: %+v, %d held", a, in.held)
	}
	for i := range intakeAtime {
		in.take(fmt.Sprint("idle", i), offer(1), now)
	}
	if a, _ := in.take("late", offer(1), now.Add(time.Second)); a.Error == "" {
		t.Error("a delivery that goes on is dropped")
	}
	if a, _ := in.take("late", offer(1), now.Add(time.Minute)); a.Error != "" {
		t.Error(a.Error)
	}
	held := 0
	for _, x := range in.coming {
		held += len(x.body)
	}
	if held != in.held {
		t.Errorf("%d bytes are held, and %d counted", held, in.held)
	}
}

// TestPreAuthLimiter: connections without a secret get a limited number of slots, and one
// address half of them.
func TestPreAuthLimiter(t *testing.T) {
	p := newPreAuthLimiter(4)
	at := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 1} }
	enter := func(ip string, want bool) func() {
		leave, ok := p.enter(at(ip))
		if ok != want {
			t.Fatalf("%s is let wait: %v", ip, ok)
		}
		return leave
	}
	first := enter("10.0.0.1", true)
	enter("10.0.0.1", true)
	enter("10.0.0.1", false)
	enter("10.0.0.2", true)
	enter("10.0.0.3", true)
	enter("10.0.0.4", false)
	first()
	first()
	enter("10.0.0.4", true)
	enter("10.0.0.5", false)
}
