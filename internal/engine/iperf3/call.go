package iperf3

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"thru/internal/engine"
	"thru/internal/fault"
	"thru/internal/measure"
)

// mostVersion is the longest version string that is kept.
const mostVersion = 40

// call is a client of the server, from its cookie to its last message. Until claim the server owns it, then a session.
type call struct {
	server  *Server
	cookie  cookie
	token   string
	talk    talk
	params  parameters
	user    string
	ready   bool          // waits for its turn, and may be claimed; under the server's lock
	claimed chan struct{} // closed by claim
	joining chan joined   // TCP data connections, while the session waits for them
	greeted chan greeting // first datagrams of UDP streams

	running atomic.Bool   // the client may end the test
	ended   chan struct{} // closed when it has ended the test
	gone    chan struct{} // closed when the client has left, or broken the protocol
	why     error         // reason of gone; set before
	leaving sync.Once
	tasks   sync.WaitGroup
}

// joined is a data connection with its arrival order.
type joined struct {
	conn  net.Conn
	order int64
}

func newCall(d *Server, k cookie, conn net.Conn) *call {
	if c, ok := conn.(*net.TCPConn); ok {
		c.SetNoDelay(true)
	}
	return &call{
		server: d, cookie: k, token: rand.Text(), talk: talk{conn, d.wait.word}, claimed: make(chan struct{}),
		joining: make(chan joined), greeted: make(chan greeting, measure.MaxStreams), ended: make(chan struct{}), gone: make(chan struct{}),
	}
}

func (c *call) addr() netip.Addr { return addrOf(c.talk.conn.RemoteAddr()) }

// negotiate reads the parameters and checks whether they are allowed.
func (c *call) negotiate() error {
	if err := c.talk.sendStates(paramExchange); err != nil {
		return err
	}
	b, err := c.talk.hearJSON(mostParameters)
	if err != nil {
		return refuse(codeParameters, "%w", err)
	}
	if c.params, err = readParameters(b); err != nil {
		return err
	}
	if c.user, err = c.server.gate.admit(c.params.Token, c.server.now()); err != nil {
		return err
	}
	if err := c.server.conf.Limits.admit(c.params); err != nil {
		return err
	}
	return c.server.seat(c)
}

// public returns the call as the server announces it.
func (c *call) public() engine.Call {
	addr := c.addr().String()
	name := "iperf3://" + addr
	if c.addr().Is6() {
		name = "iperf3://[" + addr + "]"
	}
	program := c.program()
	if c.user != "" {
		program += ", user " + c.user
	}
	return engine.Call{
		Token: c.token, Addr: c.talk.conn.RemoteAddr().String(), Name: name, Program: program, Specs: c.params.specs(name, c.server.conf.Limits),
		Refuse: func(reason error) { c.server.refuse(c.token, reason) },
	}
}

// program returns the program that the client reports.
func (c *call) program() string {
	v := c.params.Version
	if v == clientVersionKey {
		return "thru"
	}
	if v == "" || !isVersion(v) {
		return "iperf3"
	}
	return "iperf3 " + v
}

// isVersion reports whether v is a plausible version string, or empty.
func isVersion(v string) bool {
	return len(v) <= mostVersion && !strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r > '~' })
}

// listen reads the client's states until the test is over; a session then exchanges the results.
func (c *call) listen() {
	s, err := c.talk.hear(0)
	switch {
	case isGone(err):
		c.why = fault.Failf("check iperf3 and the host there, and firewalls on the path: one of them closed the connection", "iperf3: the client closed the control connection")
	case err != nil:
		c.why = err
	case s == clientTerminate:
		c.why = fault.Because(ReasonLeft, errors.New("iperf3: the client was stopped there"))
	case s == testEnd && c.running.Load():
		close(c.ended)
		return
	default:
		c.why = refuse(codeMessage, "the client sent an unexpected state: %v", s)
	}
	close(c.gone)
	select {
	case <-c.claimed:
	default:
		c.dismiss(c.why)
	}
}

// expire ends a call that does not get its turn.
func (c *call) expire() {
	late := time.NewTimer(c.server.wait.turn)
	defer late.Stop()
	select {
	case <-c.claimed:
	case <-c.gone:
	case <-late.C:
		c.server.refuse(c.token, engine.ErrBusy)
	}
}

// join hands a data connection to the waiting session, in limited time.
func (c *call) join(conn net.Conn, order int64) {
	late := time.NewTimer(c.server.wait.word)
	defer late.Stop()
	select {
	case c.joining <- joined{conn, order}:
		return
	case <-c.gone:
	case <-c.ended:
	case <-late.C: // more than requested, or too early
	}
	conn.Close()
}

// dismiss ends a call without a test, and reports the reason to the client.
func (c *call) dismiss(err error) {
	c.leaving.Do(func() {
		c.server.forget(c)
		switch code, ok := codeOf(err); {
		case ok:
			c.talk.sendError(code)
		case errors.Is(err, engine.ErrBusy):
			c.talk.sendStates(accessDenied)
		default:
			c.talk.sendStates(serverTerminate)
		}
		c.talk.close(c.server.wait.goodbye)
	})
}

// leave ends a call with a last state; 0: none.
func (c *call) leave(last state) {
	c.leaving.Do(func() {
		c.server.forget(c)
		if last != 0 {
			c.talk.sendStates(last)
		}
		c.talk.close(c.server.wait.goodbye)
	})
}

// collectTCP waits for n data connections and returns them in order of arrival.
func (c *call) collectTCP(ctx context.Context, n int) ([]net.Conn, error) {
	var got []joined
	for len(got) < n {
		late := time.NewTimer(c.server.wait.stream)
		var err error
		select {
		case j := <-c.joining:
			got = append(got, j)
		case <-c.gone:
			err = c.why
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-late.C:
			err = &refusal{codeAccept, fault.Failf("check whether a firewall on the path limits connections",
				"iperf3: waiting for data connections: %d of %d arrived in time", len(got), n)}
		}
		late.Stop()
		if err != nil {
			for _, j := range got {
				j.conn.Close()
			}
			return nil, err
		}
	}
	slices.SortFunc(got, func(a, b joined) int { return cmp.Compare(a.order, b.order) })
	conns := make([]net.Conn, n)
	for i, j := range got {
		conns[i] = j.conn
	}
	return conns, nil
}
