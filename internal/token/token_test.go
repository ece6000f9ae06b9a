package token

import (
	"bytes"
	"encoding/hex"
	"net"
	"strings"
	"testing"
)

// listener answers a greeting.
type listener func(c net.Conn)

// greets runs the dialling end of a token with a listener.
func greets(t *testing.T, s string, l listener) error {
	t.Helper()
	own, err := Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	a, b := net.Pipe()
	defer a.Close()
	done := make(chan struct{})
	go func() { defer close(done); defer b.Close(); l(b) }()
	defer func() { a.Close(); <-done }()
	return own.Introduce(a, Data, []byte{0, 1})
}

// thru answers as the listening end does.
func thru(t *testing.T, s string) listener {
	return func(c net.Conn) {
		own, _ := Parse(s)
		more, answer, err := own.Hear(c, Data, 2)
		if err != nil {
			return
		}
		if !bytes.Equal(more, []byte{0, 1}) {
			t.Errorf("got %x", more)
		}
		c.Write(answer)
	}
}

// TestWhoAnswers: only the holder of the token is accepted as the other end; neither a banner that the distributor of the token chose, nor an echo.
func TestWhoAnswers(t *testing.T) {
	banner := "220-Welcome to my server, which is no thru, and wants no traffic"
	told := strings.ToUpper(hex.EncodeToString([]byte(strings.Repeat("A", half) + banner[:half])))
	for name, c := range map[string]struct {
		token string
		l     listener
		ok    bool
	}{
		"the other end":        {told, thru(t, told), true},
		"one of another token": {told, thru(t, New()), false},
		"a banner": {told, func(c net.Conn) {
			go c.Read(make([]byte, 100))
			c.Write([]byte(banner))
		}, false},
		"an echo": {told, func(c net.Conn) {
			b := make([]byte, 100)
			n, _ := c.Read(b)
			c.Write(b[:n])
		}, false},
		"an older thru": {strings.ToLower(told), thru(t, strings.ToLower(told)), true},
	} {
		if err := greets(t, c.token, c.l); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReplay: the answer to one greeting fits no other.
func TestReplay(t *testing.T) {
	own, _ := Parse(New())
	_, one := own.Greeting(Data, nil)
	_, other := own.Greeting(Data, nil)
	if bytes.Equal(one, other) {
		t.Error("two greetings have the same answer")
	}
}

func TestForms(t *testing.T) {
	if s := New(); !Proves(s) || Proves(strings.ToLower(s)) {
		t.Errorf("%s: its form does not say what its maker can", s)
	}
	for _, bad := range []string{"", "0", strings.Repeat("0", 62), strings.Repeat("x", 64)} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("%q is taken for a token", bad)
		}
	}
}

// TestOlderDials: an older thru knows only the magic and the halves.
func TestOlderDials(t *testing.T) {
	s := New()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	own, _ := Parse(s)
	_, answer, err := own.Hear(bytes.NewReader(append([]byte("thru-d1\n"), b[:half]...)), Data, 0)
	if err != nil || !bytes.Equal(answer, b[half:]) {
		t.Errorf("%x, %v", answer, err)
	}
}

func FuzzHear(f *testing.F) {
	own, _ := Parse(strings.Repeat("41", 2*half))
	f.Add([]byte("thru-d2\nAAAAAAAAAAAAAAAA" + "01" + "0123456789012345"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if more, answer, err := own.Hear(bytes.NewReader(b), Data, 2); err == nil && (len(more) != 2 || len(answer) < half || !bytes.Contains(b, own.key[:half])) {
			t.Errorf("%q: %x %x", b, more, answer)
		}
	})
}
