package remote

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"thru/internal/bus"
	"thru/internal/control"
	"thru/internal/fault"
)

// helloTime bounds the first exchange with an end point.
const helloTime = 5 * time.Second

// dataHosts returns where the peer accepts data connections: the addresses that its
// operator set, else the address of the control connection.
func (d Dialer) dataHosts(e *control.EndPoint) ([]string, error) {
	hosts := e.Hello.DataAddrs
	if len(hosts) == 0 {
		h, _, err := net.SplitHostPort(e.Addr)
		if err != nil {
			return nil, fmt.Errorf("remote: reading the address of %s: %w", e.Name, err)
		}
		hosts = []string{h}
	}
	if d.DataAddr != "" || d.Family == 0 {
		return hosts, nil
	}
	fit := slices.DeleteFunc(slices.Clone(hosts), func(h string) bool {
		ip := net.ParseIP(h)
		return ip != nil && (ip.To4() != nil) != (d.Family == 4)
	})
	if len(fit) == 0 {
		return nil, fault.Failf("name one with --data-addr", "remote: %s has no IPv%d data address, only %s", e.Name, d.Family, strings.Join(hosts, " "))
	}
	return fit, nil
}

// hostPort parses HOST, HOST:PORT, [V6]:PORT or a bare IPv6 address.
func hostPort(s string, port int) (string, error) {
	h, p, err := net.SplitHostPort(s)
	if err != nil {
		h, p = strings.Trim(s, "[]"), strconv.Itoa(port)
	}
	n, err := strconv.Atoi(p)
	if err == nil && (n < 1 || n > 65535) {
		return "", fault.Usagef("-p takes 1 to 65535", "%d is not a port", n)
	}
	if h == "" || err != nil || strings.ContainsAny(h, " /\\@") {
		return "", fault.Usagef("give a joined name, CONTROLLER/NAME or HOST[:PORT], such as 10.0.0.2 or [fd00::2]:5200", "%q is not an end point", s)
	}
	return net.JoinHostPort(h, p), nil
}

// pinFirst trusts a certificate on first use, and prints that.
func (d Dialer) pinFirst(keys *bus.Keyring) func(string, [32]byte) error {
	return func(addr string, sum [32]byte) error {
		first, err := keys.CheckPin(addr, sum)
		if err == nil && first {
			d.person.Line(fmt.Sprintf("first connection to %s: thru stores its certificate sha256:%x...", addr, sum[:6]))
		}
		return err
	}
}
