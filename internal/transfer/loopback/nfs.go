package loopback

import (
	"net"
	"slices"

	"thru/internal/transfer/nfs"
)

// portMapper is the port where the client looks up other servers of this
// machine.
const portMapper = "111"

// serveNFS runs the small NFS server of package nfs, for the version of the
// real one.
func serveNFS(o Options, four bool) (*Server, error) {
	files := newShelf(o)
	four = four || slices.Contains(o.Agreed, nfs.FourAgreed)
	d, err := openDoor(func(_ *door, conn net.Conn) { _ = nfs.Answer(conn, files, four) }) // it ends with its client
	if err != nil {
		return nil, err
	}
	s, err := d.server()
	if err != nil {
		return nil, err
	}
	s.refused = func(address string) bool {
		_, port, err := net.SplitHostPort(address)
		return err == nil && port == portMapper
	}
	return s, nil
}
