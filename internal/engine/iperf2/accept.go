package iperf2

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"thru/internal/engine/worker"
	"thru/internal/fault"
	"thru/internal/measure"
)

// Timeouts for the first bytes of a TCP client, which it sends at once.
const (
	firstWait   = 4 * time.Second // for the first bytes and the header
	ackSendWait = time.Second
	acceptAgain = 10 * time.Millisecond // after an error of accept, such as too few descriptors
)

// accept takes the clients that connect over TCP.
func (d *Server) accept(ctx context.Context, l net.Listener) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		c, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			select {
			case <-time.After(acceptAgain):
				continue
			case <-ctx.Done():
				return nil
			}
		}
		host := hostOf(addrOf(c).Addr())
		if !d.silent.Enter(host, mostGreeted, mostGreeted/2) {
			c.Close()
			d.report(addrOf(c), errBusy)
			continue
		}
		wg.Go(func() {
			defer d.silent.Leave(host)
			stop := context.AfterFunc(ctx, func() { c.Close() })
			defer stop()
			if err := d.greet(c); err != nil {
				c.Close()
				if !errors.Is(err, io.EOF) { // a client that closes without a byte was only a port check
					d.report(addrOf(c), err)
				}
			}
		})
	}
}

func addrOf(c net.Conn) netip.AddrPort {
	a, _ := c.RemoteAddr().(*net.TCPAddr)
	if a == nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a.AddrPort().Addr().Unmap(), a.AddrPort().Port())
}

// greet reads the request of a client on one connection, and answers where the protocol requires an answer.
func (d *Server) greet(c net.Conn) error {
	c.SetDeadline(time.Now().Add(firstWait))
	came := sinceEpoch()
	b := make([]byte, lengthMask>>1)
	if _, err := io.ReadFull(c, b[:flagsSize]); err != nil {
		return fault.Failf("", "iperf2: accepting a client: %s sent nothing: %w", c.RemoteAddr(), err)
	}
	s := &tcpStream{conn: c, early: worker.Early{Bytes: flagsSize, Since: time.Now().UnixNano()}}
	flags := binary.BigEndian.Uint32(b)
	if flags == flagBounceback {
		return fault.Failf("measure it between two agents: thru test --rr", "iperf2: accepting a client: thru does not support --bounceback")
	}
	n, ok := headerLen(flags)
	t := test{protocol: measure.TCP}
	if ok {
		if _, err := io.ReadFull(c, b[flagsSize:n]); err != nil {
			return fault.Failf("", "iperf2: accepting a client: the header of %s is truncated: %w", c.RemoteAddr(), err)
		}
		s.early.Bytes = int64(n)
		if h, err := parseHeader(b[:n]); err == nil {
			t.header = h
		}
	}
	if err := t.refusal(d.conf.Limits); err != nil {
		return err
	}
	if h := t.header; h.wantsAck() {
		a := ack{version: spoken, times: h.upper&upperTripTimes != 0, sent: h.sent, came: came, leaves: sinceEpoch()}
		c.SetDeadline(time.Now().Add(ackSendWait))
		if _, err := c.Write(a.append(nil)); err != nil {
			return fault.Failf("", "iperf2: accepting a client: answering %s: %w", c.RemoteAddr(), err)
		}
	}
	c.SetDeadline(time.Time{})
	addr := addrOf(c)
	return d.join(addr, t, s)
}

// kinship identifies the streams of one test: one client with one request. Flags that do not matter here may differ (2.2.1).
type kinship struct {
	protocol string
	from     netip.Addr
	header   header
}

func (t test) kinship(from netip.Addr) kinship {
	k := kinship{t.protocol, from.Unmap(), t.header}
	k.header.upper &= upperReverse | upperFullDuplex
	k.header.sent = 0
	return k
}

// wanted returns how many streams the client announces; without a header the allowed maximum.
func (t test) wanted(l Limits) int {
	if t.header.flags == 0 {
		return l.streams()
	}
	return max(int(t.header.streams), 1)
}

// tcpStream is a connection whose header has been read.
type tcpStream struct {
	conn  net.Conn
	early worker.Early
}

func (s *tcpStream) handOver() worker.Conn { return worker.Conn{Conn: s.conn, Early: s.early} }
func (s *tcpStream) connection() net.Conn  { return s.conn }
func (s *tcpStream) close()                { s.conn.Close() }
