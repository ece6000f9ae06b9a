package remote

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"

	"thru/internal/bus"
	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/host/platform"
	"thru/internal/hypervisor"
	"thru/internal/hypervisor/esx"
	"thru/internal/hypervisor/vsphere"
)

// VsphereScheme is the URL scheme of a vCenter, or of an ESXi host by its web service.
const VsphereScheme = "vsphere"

// errNoLogin is the error of a login without a password.
var errNoLogin = errors.New("not logged in")

// hypervisor connects a hypervisor: vsphere://USER@HOST[:PORT] is a vCenter or an
// ESXi host by its web service, ssh://[USER@]HOST an ESXi host by its commands or a
// Linux host by an agent, any other end point a Linux host by its agent, "" and local
// this machine. Closing the source ends the connection.
func (d Dialer) hypervisor(ctx context.Context, at string) (hypervisor.Source, error) {
	scheme, _, hasScheme := strings.Cut(at, "://")
	switch scheme = strings.ToLower(scheme); {
	case hasScheme && scheme == VsphereScheme:
		return d.vsphere(ctx, at)
	case hasScheme && scheme == SSHScheme:
		return d.hypervisorBySSH(ctx, at)
	case hasScheme:
		return nil, fault.Usagef(hypervisorForms, "%s:// is not a hypervisor", scheme)
	case at == "" || at == control.Local:
		return agentOf(d.Local(ctx, true))
	}
	e, end, err := d.EndPoint(ctx, at)
	if err != nil && ctx.Err() == nil && fault.Code(err) == fault.Failed {
		hint := fault.Joined(fault.Hint(err), "for a vCenter or an ESXi host, use vsphere://USER@"+at)
		err = fault.Failf(hint, "%w", err)
	}
	return agentOf(e, end, err)
}

const hypervisorForms = "give vsphere://USER@HOST (vCenter or ESXi), ssh://root@HOST (ESXi, or Linux with QEMU), or an end point that runs QEMU"

// closing is a source whose Close also calls end.
type closing struct {
	hypervisor.Source
	end func()
}

// Close implements hypervisor.Source.
func (c closing) Close() error {
	err := c.Source.Close()
	c.end()
	return err
}

// agentOf returns the host of a connected end point as a source.
func agentOf(e *control.EndPoint, end func(), err error) (hypervisor.Source, error) {
	if err != nil {
		return nil, err
	}
	return closing{control.AgentSource(e), end}, nil
}

// hypervisorBySSH reads an ESXi host by its own commands, and any other by an agent.
func (d Dialer) hypervisorBySSH(ctx context.Context, at string) (hypervisor.Source, error) {
	d.Checks = true // nothing is measured: a system without an agent is read by its commands
	e, end, err := d.EndPoint(ctx, at)
	var other *OtherSystem
	if !errors.As(err, &other) {
		return agentOf(e, end, err)
	}
	destination, port, err := SSHTarget(at)
	if err != nil {
		return nil, err
	}
	if other.os != "esxi" {
		return nil, fault.Usagef(hypervisorForms, "remote: %s runs %s: thru cannot list its virtual machines", at, other.os)
	}
	r := platform.SSH(destination, port)
	return closing{esx.New(r, at), func() { r.Close() }}, nil
}

// vsphere logs in at a vCenter or an ESXi host.
func (d Dialer) vsphere(ctx context.Context, at string) (hypervisor.Source, error) {
	user, addr, err := vsphereTarget(at)
	if err != nil {
		return nil, err
	}
	c := vsphere.Config{URL: addr, User: user, Insecure: d.Insecure, Version: d.version}
	c.Password = d.Password("of "+user+" at "+addr, errNoLogin)
	if ask := c.Password; d.Asking != nil {
		c.Password = func() (string, error) { return d.Asking(ask) }
	}
	keys, err := bus.DefaultKeyring()
	if err != nil {
		return nil, err
	}
	c.Pin = d.pinFirst(keys)
	client, err := vsphere.Dial(ctx, c)
	if err != nil {
		return nil, err
	}
	return client, nil
}

// vsphereTarget parses vsphere://USER@HOST[:PORT]. The user may contain a domain
// (anna@corp.example): it ends at the last @. Errors omit what may be a password.
func vsphereTarget(at string) (user, addr string, err error) {
	const like = "use the form vsphere://reader@vsphere.local@vcenter.example or vsphere://root@esx1"
	_, rest, _ := strings.Cut(at, "://")
	rest, path, _ := strings.Cut(rest, "/")
	i := strings.LastIndex(rest, "@")
	if i >= 0 {
		user, addr = rest[:i], rest[i+1:]
		if strings.Contains(strings.ToLower(strings.ReplaceAll(user, ":", "%3a")), "%3a") || strings.Contains(path, "@") {
			return "", "", fault.Usagef("use THRU_PASSWORD or --password-stdin: all users can read a command line", "a password does not belong in the URL")
		}
		if user, err = url.PathUnescape(user); err != nil {
			return "", "", fault.Usagef(like+"; write %25 for a percent sign", "the user of the URL cannot be read")
		}
	}
	switch {
	case strings.ContainsAny(addr+path, "?#"):
		return "", "", fault.Usagef(like, "the URL of a vSphere server has no query")
	case strings.Contains(path, "@"):
		return "", "", fault.Usagef(like+"; give a password by THRU_PASSWORD or --password-stdin", "the URL has an @ after a slash")
	case path != "" && path != "sdk" && path != "sdk/":
		return "", "", fault.Usagef(like, "the URL of a vSphere server has no path")
	case user == "":
		return "", "", fault.Usagef(like, "the URL names no user")
	}
	host, port := addr, ""
	if h, p, err := net.SplitHostPort(addr); err == nil {
		host, port = h, p
	}
	n, perr := strconv.Atoi(port)
	switch {
	case strings.Trim(host, "[]") == "" || strings.ContainsAny(host, " \\") || strings.Contains(host, ":") && net.ParseIP(strings.Trim(host, "[]")) == nil:
		return "", "", fault.Usagef(like, "the URL names no host")
	case port != "" && (perr != nil || n < 1 || n > 65535):
		return "", "", fault.Usagef(like, "port %.20q is not valid", port)
	}
	return user, addr, nil
}
