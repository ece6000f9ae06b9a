package bus

import (
	"net"
	"time"
)

// overTime bounds the login over a connection that stands already.
const overTime = 10 * time.Second

// Carry serves the client at the other end of a connection until it ends. Who
// has made the connection has shown who he is, as ssh does: he may do all that
// the own process may. It closes the connection.
func (s *Server) Carry(conn net.Conn) { s.serve(conn, nil) }

// Over connects to an agent whose server carries the other end of a
// connection; peer names it in messages. Close closes the connection.
func Over(conn net.Conn, peer, version string) (*Client, error) {
	c, err := connect(conn, "", overTime)
	if err != nil {
		return nil, err
	}
	c.addr, c.version = peer, version
	return c, nil
}
