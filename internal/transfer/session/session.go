// Package session is one `thru transfer` at the end that makes it: it logs in, chooses how much is
// moved, moves files up or down over memory and over the disk, and removes what it has made.
package session

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/transfer"
	"thru/internal/transfer/clients"
	"thru/internal/transfer/own"
	"thru/internal/transfer/runner"
)

// Words that stand for no file.
const (
	nowhere   = "nowhere"
	memory    = "memory"
	Generated = "generated"
)

// Options say what is moved, and how.
type Options struct {
	Upload   bool
	From, To string // a file, or one of the words above
	Size     int64  // of each file that is large; 0: not known yet
	Many     int    // clients at once
	Small    int    // files that are small

	Overwrite, Keep               bool
	NoCeiling, NoChecksum, Unread bool // what is left out
}

// ToFile is the file that a download goes to, or "".
func (o Options) ToFile() string {
	if o.To == nowhere || o.To == memory {
		return ""
	}
	return o.To
}

// fromFile is the file that is uploaded, or "".
func (o Options) fromFile() string {
	if o.From == Generated {
		return ""
	}
	return o.From
}

// Transfer moves the files of one `thru transfer`. It is control's Mover.
type Transfer struct {
	Options
	target    URL
	protocol  clients.Protocol
	direction string
	config    transfer.Config
	dialer    *runner.Dialer
	stream    runner.Stream
	Live      func(runner.Live) // is told how far it is

	doc        *measure.Transfer // of the document; nil until Greet
	info       transfer.Info     // of the latest session with the server
	nameSuffix string            // between the URL's name and that of generated data, where something has the first
	mark       string            // of this run, in the names of what it makes beside the file: two runs at once do not meet
	made       []string          // files at the server that are to go again
	warnings   []string
}

// New is a transfer before anything is connected. Of the configuration it sets who
// is called, and by what.
func New(u URL, o Options, c transfer.Config) (*Transfer, error) {
	protocol, err := clients.Of(u.Protocol)
	if err != nil {
		return nil, err
	}
	m := &Transfer{Options: o, target: u, protocol: protocol, direction: measure.Download, mark: strings.ToLower(rand.Text()[:6])}
	if o.Upload {
		m.direction = measure.Upload
	}
	m.dialer = &runner.Dialer{Buffer: c.Buffer, Timeout: c.Timeout}
	c.Host, c.Port, c.Path, c.User, c.Dial = u.host, u.port, u.Path, u.user, m.dialer.Dial
	m.config = c
	m.stream, err = runner.NewStream(uint64(time.Now().UnixNano()))
	return m, err
}

// Ours reports whether the files go along thru's own data plane.
func (m *Transfer) Ours() bool { return m.protocol.Name == clients.Thru }

// UseAgent is told the agent at the server, whose clients those of thru:// are.
func (m *Transfer) UseAgent(name string, agent own.Agent, hello bus.HelloReply, hosts []string) error {
	if !m.Ours() {
		return nil
	}
	if agent == nil {
		return fault.Usagef("name an end point where thru serve runs", "%s is no thru: it moves no files", name)
	}
	if most := hello.Limits.Sessions; m.Many > most {
		return fault.Usagef(fmt.Sprintf("--many %d is the most there; thru serve --max-sessions N allows more", most), "--many %d is above the limit of %s", m.Many, name)
	}
	m.protocol.New = own.NewEnd(agent, hello, hosts).Client
	return nil
}
