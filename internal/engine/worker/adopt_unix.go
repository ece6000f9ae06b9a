//go:build unix

package worker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"thru/internal/engine"
	"thru/internal/sock"
	"time"

	"golang.org/x/sys/unix"
)

// handOverFile is the worker's end of the socket that carries connections: the first file that it inherits.
const handOverFile = 3

// handOverTime limits one read from the socket, or one message into it.
const handOverTime = 200 * time.Millisecond

// socketPair returns a socket pair that carries connections to a worker (unix(7)).
func socketPair() (ours *os.File, theirs []*os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("worker: creating a socket to hand over connections: %w", err)
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	wait := unix.NsecToTimeval(int64(handOverTime))
	unix.SetsockoptTimeval(fds[1], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait)
	wait = unix.NsecToTimeval(int64(replyWait))
	unix.SetsockoptTimeval(fds[0], unix.SOL_SOCKET, unix.SO_SNDTIMEO, &wait)
	return os.NewFile(uintptr(fds[0]), "hand over"), []*os.File{os.NewFile(uintptr(fds[1]), "take over")}, nil
}

// handOver passes connections to the worker, one per message (SCM_RIGHTS).
func (s *Session) handOver(cmd takeCommand, conns []net.Conn) error {
	if err := s.out.json(frameTake, cmd); err != nil {
		return err
	}
	for _, c := range conns {
		err := sock.Reach(c, func(fd uintptr) error {
			return unix.Sendmsg(int(s.carrier.Fd()), []byte{1}, unix.UnixRights(int(fd)), nil, 0)
		})
		if err != nil {
			return fmt.Errorf("worker: passing a socket: %w", err)
		}
	}
	return nil
}

// receiveConns receives the connections that the agent has announced.
func receiveConns(ctx context.Context, cmd takeCommand) ([]net.Conn, error) {
	var conns []net.Conn
	n := len(cmd.Early)
	for len(conns) < n {
		c, err := receiveConn()
		switch {
		case errors.Is(err, unix.EAGAIN) && ctx.Err() == nil, errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			engine.CloseAll(conns)
			return nil, fmt.Errorf("worker: receiving connection %d of %d from the agent: %w", len(conns)+1, n, err)
		}
		conns = append(conns, c)
		if c.RemoteAddr() == nil {
			engine.CloseAll(conns)
			return nil, goneEarly(len(conns), n)
		}
	}
	return conns, nil
}

func receiveConn() (net.Conn, error) {
	var b [1]byte
	oob := make([]byte, unix.CmsgSpace(4))
	_, got, _, _, err := unix.Recvmsg(handOverFile, b[:], oob, 0)
	if err != nil {
		return nil, err
	}
	msgs, err := unix.ParseSocketControlMessage(oob[:got])
	if err != nil || len(msgs) != 1 {
		return nil, errors.Join(errors.New("no connection in the message"), err)
	}
	fds, err := unix.ParseUnixRights(&msgs[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.Join(errors.New("no connection in the message"), err)
	}
	f := os.NewFile(uintptr(fds[0]), "connection")
	defer f.Close()
	return net.FileConn(f)
}
