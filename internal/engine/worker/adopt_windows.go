package worker

import (
	"context"
	"net"
	"os"

	"thru/internal/engine"
	"thru/internal/fault"
	"thru/internal/sock"
)

// socketPair returns nothing: Windows describes connections for the worker, and the descriptions go through its pipe.
func socketPair() (ours *os.File, theirs []*os.File, err error) { return nil, nil, nil }

// handOver passes connections to the worker.
func (s *Session) handOver(cmd takeCommand, conns []net.Conn) error {
	for _, c := range conns {
		d, err := sock.Share(c, s.Process())
		if err != nil {
			return err
		}
		cmd.Sockets = append(cmd.Sockets, d)
	}
	return s.out.json(frameTake, cmd)
}

// receiveConns opens the connections that the agent has described.
func receiveConns(_ context.Context, cmd takeCommand) ([]net.Conn, error) {
	var conns []net.Conn
	for i, d := range cmd.Sockets {
		c, err := sock.OpenShared(d)
		switch {
		case err != nil:
			err = fault.Failf("use Windows itself: wine leaves a connection to the process that made it", "worker: receiving connection %d of %d from the agent: %w", i+1, len(cmd.Sockets), err)
		case c.RemoteAddr() == nil:
			c.Close()
			err = goneEarly(i+1, len(cmd.Sockets))
		}
		if err != nil {
			engine.CloseAll(conns)
			return nil, err
		}
		conns = append(conns, c)
	}
	return conns, nil
}
