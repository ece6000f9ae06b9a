package tune

import (
	"encoding/binary"
	"errors"
	"strings"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// The request for the sockets of a network namespace, and its answer
// (sock_diag(7), include/uapi/linux/unix_diag.h).
const (
	sockDiagByFamily = 20
	stateListen      = 10 // TCP_LISTEN of include/net/tcp_states.h
	showName         = 1 << 0
	showUID          = 1 << 6 // since Linux 5.3
	attrName         = 0
	attrUID          = 7
	diagMessage      = 16 // bytes before the attributes
)

// errNoListener means a socket without a listener.
var errNoListener = errors.New("no listener there")

// unixDiag is a request (struct unix_diag_req).
type unixDiag struct{ states, show uint32 }

func (unixDiag) Len() int { return 24 }

func (d unixDiag) Serialize() []byte {
	b := make([]byte, d.Len())
	b[0] = unix.AF_UNIX
	binary.NativeEndian.PutUint32(b[4:], d.states)
	binary.NativeEndian.PutUint32(b[12:], d.show)
	return b
}

// listenerOf returns the user who listens on an abstract socket ("@name"), by
// the kernel: it needs no connection, which the holder could refuse.
func listenerOf(socket string) (uid uint32, err error) {
	r := nl.NewNetlinkRequest(sockDiagByFamily, unix.NLM_F_DUMP)
	r.AddData(unixDiag{1 << stateListen, showName | showUID})
	answers, err := r.Execute(unix.NETLINK_SOCK_DIAG, 0)
	if err != nil {
		return 0, err
	}
	want := "\x00" + strings.TrimPrefix(socket, "@")
	for _, b := range answers {
		if len(b) < diagMessage {
			continue
		}
		attrs, err := nl.ParseRouteAttr(b[diagMessage:])
		if err != nil {
			return 0, err
		}
		name, uid := "", []byte(nil)
		for _, a := range attrs {
			switch a.Attr.Type {
			case attrName:
				name = string(a.Value)
			case attrUID:
				uid = a.Value
			}
		}
		if name == want && len(uid) == 4 {
			return binary.NativeEndian.Uint32(uid), nil
		}
	}
	return 0, errNoListener
}
