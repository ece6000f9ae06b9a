package remote

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/host/platform"
	"thru/internal/hypervisor/esx"
	"thru/internal/measure"
)

// Time limits of an ESXi host that measures with its own iperf3. Its commands take a
// second each; its keeper process gives up after 21 s without input.
const (
	vmkernelAnswerTime = 60 * time.Second
	vmkernelBeat       = 3 * time.Second
	vmkernelUndoTime   = 20 * time.Second
)

// vmkernelPort is the preferred port of iperf3, if the firewall passes it.
const vmkernelPort = 5201

// vmkernel is an ESXi host with its own iperf3 as server: it measures the TCP stack of
// the VMkernel, which carries vMotion and storage, without any guest (C-25).
type vmkernel struct {
	ssh  *sshProcess
	door esx.Door
	stop chan struct{} // closed to end it
	beat sync.WaitGroup
}

// vmkernel starts an ESXi host's own iperf3, reads the host's facts by its commands
// meanwhile, and connects the end point. It enables a rule set of the host's firewall
// only if that is allowed (Firewall).
func (d Dialer) vmkernel(ctx context.Context, s *sshProcess, name string, far farEnd) (*control.EndPoint, func(), error) {
	p := d.person.Progress()
	defer p.Clear()
	p.Checking("reading the firewall and iperf3 of " + s.destination)
	report, err := s.readVMkernel()
	if err != nil {
		return nil, nil, err
	}
	door, err := d.choose(report, s.destination)
	if err != nil {
		return nil, nil, err
	}
	bind := cmp.Or(d.DataAddr, far.addr)
	if net.ParseIP(bind) == nil {
		return nil, nil, fault.Usagef("give the address of a VMkernel interface there: --data-addr", "iperf3 there cannot listen on %s", bind)
	}
	if door.Closed { // printed before it is done
		d.person.Line(fmt.Sprintf("%s: thru enables the firewall rule set %s for this test and disables it afterwards (manually: `%s`)", s.destination, door, door.Disable()))
	}
	facts := factsBySSH(ctx, s)
	v := &vmkernel{ssh: s, door: door, stop: make(chan struct{})}
	if err := v.serve(bind); err != nil {
		<-facts
		return nil, nil, err
	}
	e := v.endPoint(name, bind, report["iperf3"])
	p.Checking("reading " + s.destination + " (esxi)")
	read := <-facts
	e.Known = read.facts
	if read.err != nil {
		e.Unknown = append(e.Unknown, measure.NotChecked{Fact: "end_points.facts", Why: name + ": " + platform.Why(read.err)})
	}
	return e, func() { v.close(d.person) }, nil
}

// endPoint returns the end point of that iperf3.
func (v *vmkernel) endPoint(name, bind, version string) *control.EndPoint {
	e := &control.EndPoint{
		Name: name, Addr: net.JoinHostPort(bind, strconv.Itoa(v.door.Port)), Foreign: true, Engine: measure.IPerf3,
		Port: v.door.Port, DataHosts: []string{bind}, Speaks: iperf3Version(version),
		Unknown: []measure.NotChecked{{Fact: "end_points.cpu", Why: name + ": ESXi's own iperf3 reports only its own CPU use, not the host's"}},
	}
	switch {
	case v.door.Closed:
		e.Notes = []string{fmt.Sprintf("thru enabled the firewall rule set %s of %s for this test, and disables it afterwards", v.door, name)}
	case v.door.Ruleset != "":
		e.Notes = []string{fmt.Sprintf("the firewall of %s was not changed: its rule set %s allows port %d", name, v.door, v.door.Port)}
	}
	return e
}

// iperf3Version returns "iperf3 3.1.6" for "iperf 3.1.6 (cJSON 1.5.2)".
func iperf3Version(line string) string {
	w := strings.Fields(platform.Clean(line))
	if len(w) < 2 || w[0] != "iperf" {
		return "iperf3"
	}
	return fmt.Sprintf("iperf3 %.20s", w[1])
}

// readVMkernel sends the script, and returns its report by keyword.
func (s *sshProcess) readVMkernel() (map[string]string, error) {
	defer s.within(vmkernelAnswerTime)()
	script := vmkernelScript(s.mark)
	if _, err := fmt.Fprintf(s.in, farScript+"%s", len(script), script); err != nil {
		return nil, s.explain("reading ESXi", err)
	}
	report, size := map[string]*strings.Builder{}, 0
	for {
		word, rest, err := s.line()
		switch {
		case err != nil:
			return nil, s.explain("reading ESXi", err)
		case word == "failed":
			return nil, fault.Failf("read the host without it: thru check", "remote: %s: looking for its iperf3: %s", s.destination, platform.Clean(rest))
		case word == "asked":
			all := map[string]string{}
			for w, b := range maps.All(report) {
				all[w] = b.String()
			}
			return all, nil
		}
		if size += len(rest); size > sshMostNoise {
			return nil, fmt.Errorf("remote: %s: reading ESXi: more than %d bytes", s.destination, sshMostNoise)
		}
		if report[word] == nil {
			report[word] = &strings.Builder{}
		}
		report[word].WriteString(rest + "\n")
	}
}

// choose chooses the port: one that the firewall passes, or one that it may be opened for.
func (d Dialer) choose(report map[string]string, destination string) (esx.Door, error) {
	client, _ := netip.ParseAddr(strings.TrimSpace(report["client"]))
	walls := esx.Walls{State: report["firewall"], Sets: report["sets"], Rules: report["rules"], Allowed: report["allowed"], Sockets: report["sockets"]}
	doors, err := esx.Doors(walls, client.Unmap(), vmkernelPort)
	if err != nil {
		return esx.Door{}, fmt.Errorf("remote: %s: %w", destination, err)
	}
	switch {
	case len(doors) == 0:
		return esx.Door{}, fault.Failf("list the rules there: `esxcli network firewall ruleset rule list`; to disable the firewall, which is your decision: `esxcli network firewall set --enabled false`, to enable it again: `... --enabled true`",
			"remote: %s: no firewall rule set allows inbound TCP to a free port for iperf3", destination)
	case doors[0].Closed && !d.Firewall:
		return esx.Door{}, fault.Failf(fmt.Sprintf("let thru enable the rule set %s for the test and disable it afterwards: --esx-firewall; manually: `%s`, to revert: `%s`", doors[0].Ruleset, doors[0].Enable(), doors[0].Disable()),
			"remote: %s: its firewall blocks iperf3: the rule set %s, which allows it, is disabled", destination, doors[0])
	}
	return doors[0], nil
}

// serve starts iperf3 at an address of the host, and keeps sending the far end
// keepalives of this process.
func (v *vmkernel) serve(bind string) error {
	rule := "-"
	if v.door.Closed {
		rule = v.door.Ruleset
	}
	if _, err := fmt.Fprintf(v.ssh.in, "%s %d %s\n", rule, v.door.Port, bind); err != nil {
		return v.ssh.explain("starting iperf3 there", err)
	}
	if _, err := v.ssh.expect("serving", "starting iperf3 there", vmkernelAnswerTime); err != nil {
		return notInstalledOnly(err)
	}
	v.beat.Go(func() {
		tick := time.NewTicker(vmkernelBeat)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-v.stop:
				return
			case <-tick.C:
				fmt.Fprintf(v.ssh.in, "%d\n", n) // if this fails, the test fails by itself
			}
		}
	})
	return nil
}

// notInstalledOnly adds the hint for builds that run only installed programs (ESXi 8:
// VMkernel.Boot.execInstalledOnly, /User/execInstalledOnly).
func notInstalledOnly(err error) error {
	if !strings.Contains(strings.ToLower(err.Error()), "not permitted") {
		return err
	}
	return fault.Failf("allow it on ESXi 7 and 8, if you decide so: `esxcli system secpolicy domain set -n appDom -l disabled` (to revert: `... -l enforcing`); "+
		"ESXi 8 also needs `esxcli system settings advanced set -o /User/execInstalledOnly -i 0` (to revert: `... -i 1`)", "%w", err)
}

// close ends iperf3 there, and waits until the host is restored.
func (v *vmkernel) close(p person) {
	close(v.stop)
	v.ssh.in.Close()
	end := time.AfterFunc(vmkernelUndoTime, func() { v.ssh.cmd.Process.Kill() })
	v.beat.Wait()
	word := ""
	for word != "restored" && word != "left" {
		w, _, err := v.ssh.line()
		if err != nil {
			break
		}
		word = w
	}
	if end.Stop(); v.door.Closed && word != "restored" {
		p.Line(fmt.Sprintf("warning: %s did not confirm that its firewall is restored: check with `esxcli network firewall ruleset list -r %s` there; to restore it: `%s`", v.ssh.destination, v.door.Ruleset, v.door.Disable()))
	}
	v.ssh.close()
}

// factsOfHost holds the facts that a host's own commands give.
type factsOfHost struct {
	facts *measure.Facts
	err   error
}

// factsBySSH reads the facts over its own login, which asks no user.
func factsBySSH(ctx context.Context, s *sshProcess) <-chan factsOfHost {
	got := make(chan factsOfHost, 1)
	go func() {
		r := platform.SSH(s.destination, s.port)
		defer r.Close()
		facts, err := platform.Read(ctx, "esxi", r)
		if err != nil {
			got <- factsOfHost{err: err}
			return
		}
		got <- factsOfHost{facts: &facts}
	}()
	return got
}
