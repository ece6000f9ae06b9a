package cli

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// portBlock is the number of ports that a test process reserves at once, below the ports that the kernel
// gives to connections.
const (
	portBlock             = 100
	firstBlock, lastBlock = 100, 320
)

// ports assigns loopback ports to scripts, each once. While the process lives, it listens on the first port
// of each block, so that tests of other processes on this machine take other blocks.
type ports struct {
	mu        sync.Mutex
	guards    []net.Listener
	next, end int // of the block
}

func (p *ports) close() {
	for _, l := range p.guards {
		l.Close()
	}
}

// free NAME...: sets each variable to a port that is free now; NAME:COUNT also sets NAME_LAST, the last one
// of so many successive ports.
func (p *ports) free(ts *testscript.TestScript, neg bool, args []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, arg := range args {
		name, number, isRange := strings.Cut(arg, ":")
		count := 1
		if isRange {
			var err error
			count, err = strconv.Atoi(number)
			ts.Check(err)
		}
		first, err := p.take(count)
		ts.Check(err)
		ts.Setenv(name, strconv.Itoa(first))
		if isRange {
			ts.Setenv(name+"_LAST", strconv.Itoa(first+count-1))
		}
	}
}

// take returns the first of so many successive free ports.
func (p *ports) take(count int) (int, error) {
	for found := 0; ; p.next++ {
		if p.next >= p.end {
			if err := p.reserve(); err != nil {
				return 0, err
			}
			found = 0
		}
		if found++; !isFree(p.next) {
			found = 0
		}
		if found == count {
			p.next++
			return p.next - count, nil
		}
	}
}

// reserve takes a block that no other test process has.
func (p *ports) reserve() error {
	for range 10 * (lastBlock - firstBlock) {
		first := portBlock * (firstBlock + rand.IntN(lastBlock-firstBlock))
		if l, err := net.Listen("tcp", loopbackPort(first)); err == nil {
			p.guards = append(p.guards, l)
			p.next, p.end = first+1, first+portBlock
			return nil
		}
	}
	return fmt.Errorf("no block of %d ports is free", portBlock)
}

func loopbackPort(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// isFree reports whether nobody uses the port for TCP or UDP.
func isFree(port int) bool {
	l, err := net.Listen("tcp", loopbackPort(port))
	if err != nil {
		return false
	}
	l.Close()
	c, err := net.ListenPacket("udp", loopbackPort(port))
	if err == nil {
		c.Close()
	}
	return err == nil
}
