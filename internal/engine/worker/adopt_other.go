//go:build !unix

package worker

import (
	"context"
	"errors"
	"net"
	"os"

	"thru/internal/fault"
)

// socketPair fails: this system cannot pass sockets to another process.
func socketPair() (ours, theirs *os.File, err error) {
	return nil, nil, fault.Failf("run thru on Linux, macOS or a BSD for iperf3:// and iperf2:// end points", "worker: handing over a connection: %w", errors.ErrUnsupported)
}

func sendConns(*os.File, []net.Conn) error { return errors.ErrUnsupported }

func receiveConns(context.Context, int) ([]net.Conn, error) { return nil, errors.ErrUnsupported }
