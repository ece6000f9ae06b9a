package ftp

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"thru/internal/transfer"
)

func TestParseGreeting(t *testing.T) {
	for said, want := range map[string]string{
		"220 (vsFTPd 3.0.3)\r\n":                      "vsFTPd 3.0.3",
		"220-Welcome\r\n220 ProFTPD Server ready\r\n": "ProFTPD Server ready",
		"421 too many\r\n":                            "",
		"":                                            "",
		"220 a\x1b[31mred\r\n":                        "a[31mred",
		"220 " + strings.Repeat("x", 500) + "\r\nUSER me\r": strings.Repeat("x", 200),
	} {
		if got := parseGreeting(said); got != want {
			t.Errorf("%.40q: %q, want %q", said, got, want)
		}
	}
}

func FuzzParseGreeting(f *testing.F) {
	f.Add("220 (vsFTPd 3.0.3)\r\n")
	f.Add("220-a\r\n220 \xff\x1b\r\n")
	f.Fuzz(func(t *testing.T, said string) {
		got := parseGreeting(said)
		if len(got) > 200 || strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || r == 0x7f }) || len(got) < 190 && !utf8.ValidString(got) {
			t.Errorf("%q", got)
		}
	})
}

// TestJudge: replies of real servers.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		code  int
		text  string
		doing task
		want  error
	}{
		{550, "Failed to open file.", reading, transfer.ErrMissing},                   // vsftpd
		{550, "/x: No such file or directory", reading, transfer.ErrMissing},          // proftpd
		{550, "Permission denied.", reading, transfer.ErrDenied},                      // vsftpd
		{553, "Could not create file.", writing, transfer.ErrReadOnly},                // vsftpd
		{550, "Permission denied.", writing, transfer.ErrReadOnly},                    // vsftpd, write_enable=NO
		{451, "Failure writing to local file.", writing, transfer.ErrFull},            // vsftpd
		{452, "Transfer aborted. No space left on device", writing, transfer.ErrFull}, // proftpd
		{552, "Transfer aborted. Disk quota exceeded", writing, transfer.ErrFull},     // proftpd
		{530, "Please login with USER and PASS.", reading, transfer.ErrLogin},         // vsftpd
	} {
		err := judge(&textproto.Error{Code: c.code, Msg: c.text}, c.doing)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%d %s: %v, want %v", c.code, c.text, err, c.want)
		}
	}
}

// actor is a server with replies by command, and a file, as set by a test.
type actor struct {
	replies  map[string]string
	data     string // what RETR sends
	endless  bool   // repeatedly
	quiet    bool   // and waits
	gone     bool   // no reply after the data
	greeting string // instead of the usual one

	mu    sync.Mutex
	heard []string
}

// endlessReply is the beginning of a reply without end.
var endlessReply = strings.Repeat("220-hello\r\n", 20<<10)

// serve serves one client until it disconnects.
func (a *actor) serve(t *testing.T) transfer.Config {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		a.talk(conn)
	})
	host, port, _ := net.SplitHostPort(l.Addr().String())
	return transfer.Config{Host: host, Port: port, User: "me", Password: func() (string, error) { return "s3cret", nil }}
}

func (a *actor) talk(conn net.Conn) {
	fmt.Fprintf(conn, "%s\r\n", cmp.Or(a.greeting, "220 actor"))
	data, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return
	}
	defer data.Close()
	_, port, _ := net.SplitHostPort(data.Addr().String())
	usual := map[string]string{
		"NOOP": "200 ok", "USER": "331 password?", "PASS": "230 welcome", "FEAT": "500 what?", "TYPE": "200 ok",
		"EPSV": "229 here (|||" + port + "|)", "SIZE": "213 4", "RETR": "150 it comes", "QUIT": "221 bye",
	}
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		verb, _, _ := strings.Cut(lines.Text(), " ")
		a.mu.Lock()
		a.heard = append(a.heard, lines.Text())
		a.mu.Unlock()
		reply := usual[verb]
		if own, ok := a.replies[verb]; ok {
			reply = own
		}
		fmt.Fprintf(conn, "%s\r\n", reply)
		if verb == "RETR" && strings.HasPrefix(reply, "150") {
			if c, err := data.Accept(); err == nil {
				_, err := io.WriteString(c, a.data)
				for a.endless && err == nil {
					_, err = io.WriteString(c, a.data)
				}
				c.Close()
			}
			if a.gone {
				return
			}
			if !a.quiet {
				fmt.Fprint(conn, "226 done\r\n")
			}
		}
	}
}

// TestReplies: servers that lie, or repeat secrets.
func TestReplies(t *testing.T) {
	for name, c := range map[string]struct {
		actor *actor
		want  string // in the error; empty: no error
		is    error
	}{
		"as it should be":            {&actor{data: "four"}, "", nil},
		"less than it said":          {&actor{data: "fo"}, "2 of 4", transfer.ErrShort},
		"more than it said":          {&actor{data: "fourteen"}, "more bytes arrived", transfer.ErrLong},
		"no end of data":             {&actor{data: "fourteen", endless: true}, "more bytes arrived", transfer.ErrLong},
		"a greeting that never ends": {&actor{greeting: endlessReply}, "longer than 64 KiB", errEndless},
		"a line that never ends":     {&actor{greeting: strings.Repeat("x", 200<<10)}, "longer than 64 KiB", errEndless},
		"a refusal that never ends":  {&actor{replies: map[string]string{"RETR": "5" + endlessReply[1:]}}, "longer than 64 KiB", errEndless},
		"a login that never ends":    {&actor{replies: map[string]string{"PASS": endlessReply}}, "longer than 64 KiB", errEndless},
		"less than nothing":          {&actor{replies: map[string]string{"SIZE": "213 -4"}}, "-4 bytes", nil},
		"no number":                  {&actor{replies: map[string]string{"SIZE": "213 \x1b[31mmany"}}, `answered "\x1b[31mmany" instead of a number`, nil},
		"a port that is none":        {&actor{replies: map[string]string{"EPSV": "229 (|||99999999|)", "PASV": "500 no"}}, "an invalid data port", nil},
		"a port beyond all":          {&actor{replies: map[string]string{"EPSV": "500 no", "PASV": "227 (127,0,0,1,999,999)"}}, "an invalid data port", nil},
		"no word at the end":         {&actor{data: "four", gone: true}, "closed the connection before its answer", nil},
		"the password is said":       {&actor{replies: map[string]string{"PASS": "530 s3cret is wrong"}}, "... is wrong", transfer.ErrLogin},
		"an unknown user":            {&actor{replies: map[string]string{"USER": "530 who?"}}, "who?", transfer.ErrLogin},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := c.actor.serve(t)
			s, err := New("ftp", cfg).Open(t.Context())
			if err == nil {
				_, err = s.Get(t.Context(), "file", io.Discard)
				s.Close()
			}
			switch {
			case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)), c.is != nil && !errors.Is(err, c.is):
				t.Errorf("%v, want %q, %v", err, c.want, c.is)
			case err != nil && strings.Contains(err.Error(), "s3cret"):
				t.Errorf("%v", err)
			}
		})
	}
}

// TestNoLineBreaks: a password cannot contain a command.
func TestNoLineBreaks(t *testing.T) {
	a := &actor{}
	cfg := a.serve(t)
	cfg.Password = func() (string, error) { return "x\r\nDELE file", nil }
	if _, err := New("ftp", cfg).Open(t.Context()); err == nil {
		t.Error("a password with a command in it was sent")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if strings.Contains(strings.Join(a.heard, "\n"), "DELE") {
		t.Errorf("the server heard %q", a.heard)
	}
}

// TestNoEnd: a server that has sent all data without a final reply is silent.
func TestNoEnd(t *testing.T) {
	a := &actor{data: "four", quiet: true}
	cfg := a.serve(t)
	cfg.Timeout = 50 * time.Millisecond
	s, err := New("ftp", cfg).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err = s.Get(t.Context(), "file", io.Discard); !errors.Is(err, transfer.ErrSilent) || strings.Contains(err.Error(), "%!") {
		t.Errorf("%v", err)
	}
}
