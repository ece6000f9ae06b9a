package bus

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"thru/internal/fault"
)

func TestSubjects(t *testing.T) {
	for want, got := range map[string]string{
		"thru.hello.ABC":     subject("ABC", Hello.name),
		"thru.2.ABC.prepare": subject("ABC", Prepare.name),
		"thru.2.*.part":      subject("*", verbPart),
		"_INBOX.ABC.event":   eventSubject("ABC"),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for _, s := range []string{"thru.hello.ABC", "thru.2.ABC.part"} {
		if c := clientOf(s); c != "ABC" {
			t.Errorf("the client of %s is %q", s, c)
		}
	}
	if clientOf("thru.hello") != "" || clientOf("") != "" {
		t.Error("a short subject has a client")
	}
}

func TestIDs(t *testing.T) {
	a, b := newID(), newID()
	if a == b || !validID(a) || len(a) != 26 {
		t.Error(a, b)
	}
}

func TestErrorOnTheWire(t *testing.T) {
	for _, err := range []error{
		fault.Usagef("do this", "agent: x: %w", errors.New("cause")),
		fmt.Errorf("outer: %w", fault.New(fault.Verdict, "hint", "inner")),
		errors.New("plain"),
	} {
		code, body := encodeError(err)
		got := decodeError(body)
		if got.Error() != err.Error() || fault.Hint(got) != fault.Hint(err) || fault.Code(got) != fault.Code(err) || code != fmt.Sprint(fault.Code(err)) {
			t.Errorf("%v became %v", err, got)
		}
	}
	_, body := encodeError(errors.New(strings.Repeat("é", 1<<20)))
	if len(body) > partBytes {
		t.Errorf("an error of %d bytes does not fit a message", len(body))
	}
	for _, body := range []string{"", "x", "{}", `{"message":"m","exit_code":0}`, `{"message":"m","exit_code":-7}`, `{"message":"m","exit_code":1e9}`} {
		if err := decodeError([]byte(body)); err == nil || fault.Code(err) != fault.Failed {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func FuzzDecodeError(f *testing.F) {
	f.Add([]byte(`{"message":"m","hint":"h","exit_code":2}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := decodeError(b); err == nil || fault.Code(err) == fault.OK || err.Error() == "" {
			t.Errorf("%q is no error: %v", b, err)
		}
	})
}

// FuzzMessages parses untrusted bytes as every message of both directions.
func FuzzMessages(f *testing.F) {
	f.Add([]byte(`{"spec":{"streams":1},"sends":true}`))
	f.Add([]byte(`{"session":"s","kind":"done"}`))
	f.Add([]byte(`{"evidence":{}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, v := range []any{
			&HelloRequest{}, &HelloReply{}, &FactsRequest{}, &FactsReply{}, &ReserveRequest{}, &ReserveReply{}, &PrepareRequest{}, &PrepareReply{},
			&StartRequest{}, &CollectRequest{}, &CollectReply{}, &ReleaseRequest{}, &Event{}, &partRequest{},
		} {
			if decode(b, v) == nil && len(b) == 0 {
				t.Error("an empty message was taken")
			}
		}
	})
}

func FuzzConnectionID(f *testing.F) {
	f.Add([]byte("INFO {\"client_id\":7}\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if id, err := connectionID(b); (id == 0) != (err != nil) {
			t.Errorf("%q: %d, %v", b, id, err)
		}
	})
}

func TestConnectionID(t *testing.T) {
	if id, err := connectionID([]byte("INFO {\"server_id\":\"x\",\"client_id\":7} \r\n")); id != 7 || err != nil {
		t.Error(id, err)
	}
	for _, line := range []string{"", "INFO ", "INFO {}\r\n", "PING\r\n", "INFO {\"client_id\":-1}"} {
		if _, err := connectionID([]byte(line)); err == nil {
			t.Errorf("%q has a number", line)
		}
	}
}

func TestLongReplies(t *testing.T) {
	x := longReplies{all: map[string]*longReply{}}
	data := make([]byte, 2*partBytes+5)
	id, err := x.put("A", data)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []partRequest{{"", 1}, {id, 0}, {id, -1}, {id, len(data)}, {id, 1 << 60}} {
		if _, err := x.part("A", p); err == nil {
			t.Errorf("%+v was answered", p)
		}
	}
	if _, err := x.part("B", partRequest{id, partBytes}); err == nil {
		t.Error("another client's reply was given out")
	}
	if b, err := x.part("A", partRequest{id, partBytes}); err != nil || len(b) != partBytes {
		t.Error(len(b), err)
	}
	if b, err := x.part("A", partRequest{id, 2 * partBytes}); err != nil || len(b) != 5 || x.held != 0 || len(x.all) != 0 {
		t.Error(len(b), err, x.held)
	}
	if _, err := x.put("A", make([]byte, replyBytes+1)); err == nil {
		t.Error("there is no bound")
	}
	for range maxLongReplies {
		if _, err := x.put("A", data); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := x.put("A", data); err == nil {
		t.Error("one client has no bound")
	}
	if _, err := x.put("B", data); err != nil {
		t.Error("one client's bound is another's:", err)
	}
	x.drop("A")
	if x.held != len(data) || len(x.all) != 1 {
		t.Errorf("%d bytes are held of one reply of %d", x.held, len(data))
	}
	for _, kept := range x.all {
		kept.asked = time.Now().Add(-longReplyTime - time.Second)
	}
	if x.expire(); x.held != 0 {
		t.Error("nobody's reply is kept")
	}
}

func TestPatience(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"": maxPatience, "x": maxPatience, "0": maxPatience, "-5": maxPatience, "1500": 1500 * time.Millisecond, "99999999": maxPatience, "9e99": maxPatience,
	} {
		if got := patience(in); got != want {
			t.Errorf("%q: %v, want %v", in, got, want)
		}
	}
}

// TestSince: a verb is not sent to an agent too old for it, and gives that agent's error;
// before Hello the version is unknown.
func TestSince(t *testing.T) {
	v := Verb[Empty, Empty]{name: "new", since: 3, wait: time.Second}
	for next, want := range map[int64]string{0: "asked", 3: "does not know the request", 4: "asked"} {
		c := newClient("c")
		c.nextMinor.Store(next)
		c.cancel(errors.New("asked"))
		if _, err := Call(t.Context(), c, v, Empty{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("next minor %d: %v", next, err)
		}
	}
}
