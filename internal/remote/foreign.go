package remote

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"thru/internal/bus"
	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/measure"
)

// foreignPort returns the default port of a foreign program.
func foreignPort(scheme string) (port int, known bool) {
	switch scheme {
	case measure.IPerf3:
		return 5201, true
	case measure.IPerf2:
		return 5001, true
	}
	return 0, false
}

// EngineOf returns the engine that an end point's name requires.
func EngineOf(name string) (string, error) {
	scheme, _, ok := strings.Cut(name, "://")
	if !ok || scheme == SSHScheme {
		return measure.Native, nil
	}
	if _, known := foreignPort(scheme); !known {
		if scheme == "iperf" {
			return "", fault.Usagef("use iperf3://HOST for iperf3, iperf2://HOST for iperf 2", "iperf:// is ambiguous")
		}
		return "", fault.Usagef("give a joined name, HOST[:PORT], ssh://[USER@]HOST[:PORT], iperf3://HOST[:PORT] or iperf2://HOST[:PORT]", "this version does not support end points of the form %s://", scheme)
	}
	return scheme, nil
}

// foreign returns an end point without an agent: an iperf3 or iperf2 server.
func (d Dialer) foreign(name, scheme, at string) (*control.EndPoint, error) {
	port, _ := foreignPort(scheme)
	if d.Port != bus.DefaultPort && d.Port != 0 {
		if _, _, err := net.SplitHostPort(at); err == nil {
			return nil, fault.Usagef("give the port once", "-p %d cannot be combined with %s", d.Port, name)
		}
		port = d.Port
	}
	addr, err := hostPort(strings.TrimSuffix(at, "/"), port)
	if err != nil {
		return nil, err
	}
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("remote: reading %s: %w", name, err)
	}
	if port, err = strconv.Atoi(text); err != nil {
		return nil, fmt.Errorf("remote: reading %s: %w", name, err)
	}
	if ip := net.ParseIP(host); ip != nil && d.Family != 0 && (ip.To4() != nil) != (d.Family == 4) {
		return nil, fault.Usagef("omit -4 or -6: the address decides the IP version", "%s is not an IPv%d address", host, d.Family)
	}
	e := &control.EndPoint{Name: name, Addr: addr, Foreign: true, Port: port, DataHosts: []string{host}}
	if d.Login != nil {
		e.Login, err = d.Login()
	}
	return e, err
}
