// Package session is one `thru transfer` at the end that runs it: it logs in,
// chooses how much is moved, moves files up or down over memory and over the
// disk, and removes the files that it has created.
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

// Words instead of a file name.
const (
	nowhere   = "nowhere"
	memory    = "memory"
	Generated = "generated"
)

// Options are the options of a transfer.
type Options struct {
	Upload   bool
	From, To string // a file, or one of the words above
	Size     int64  // of each large file; 0: not known yet
	Many     int    // parallel clients
	Small    int    // number of small files

	Overwrite, Keep               bool
	NoCeiling, NoChecksum, Unread bool // steps to leave out
}

// ToFile returns the file of a download, or "".
func (o Options) ToFile() string {
	if o.To == nowhere || o.To == memory {
		return ""
	}
	return o.To
}

// fromFile returns the file of an upload, or "".
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
	Live      func(runner.Live) // receives the progress

	doc        *measure.Transfer // part of the document; nil until Greet
	info       transfer.Info     // of the latest session with the server
	nameSuffix string            // added to the URL's name for generated data, where the name is taken
	mark       string            // unique to this run, in the names of its other files: two runs at once do not conflict
	made       []string          // files at the server to be removed
	warnings   []string
}

// New returns a transfer before any connection. It sets host, port, user, path
// and Dial of the configuration.
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

// Ours reports whether the files use thru's own data plane.
func (m *Transfer) Ours() bool { return m.protocol.Name == clients.Thru }

// UseAgent sets the agent at the server, which the clients of thru:// use.
func (m *Transfer) UseAgent(name string, agent own.Agent, hello bus.HelloReply, hosts []string) error {
	if !m.Ours() {
		return nil
	}
	if agent == nil {
		return fault.Usagef("name an end point where thru serve runs", "%s does not run thru: it cannot transfer files", name)
	}
	if most := hello.Limits.Sessions; m.Many > most {
		return fault.Usagef(fmt.Sprintf("lower it to --many %d, or raise the limit there: thru serve --max-sessions N", most), "--many %d is above the limit of %s", m.Many, name)
	}
	m.protocol.New = own.NewEnd(agent, hello, hosts).Client
	return nil
}
