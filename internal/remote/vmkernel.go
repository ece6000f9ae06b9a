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
	p.Checking("asking " + s.destination + " how its iperf3 can be reached")
	told, err := s.askVMkernel()
	if err != nil {
		return nil, nil, err
	}
	door, err := d.choose(told, s.destination)
	if err != nil {
		return nil, nil, err
	}
	bind := cmp.Or(d.DataAddr, far.addr)
	if net.ParseIP(bind) == nil {
		return nil, nil, fault.Usagef("--data-addr takes the address of a VMkernel interface there", "%s is no address that iperf3 there can answer at", bind)
	}
	if door.Closed { // printed before it is done
		d.person.Line(fmt.Sprintf("%s: the firewall's rule set %s is enabled for this test and disabled after it; `%s` would do that by hand", s.destination, door, door.Disable()))
	}
	facts := factsBySSH(ctx, s)
	v := &vmkernel{ssh: s, door: door, stop: make(chan struct{})}
	if err := v.serve(bind); err != nil {
		<-facts
		return nil, nil, err
	}
	e := v.endPoint(name, bind, told["iperf3"])
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
		Unknown: []measure.NotChecked{{Fact: "end_points.cpu", Why: name + ": ESXi's own iperf3 tells of itself alone, not of the host's CPUs"}},
	}
	switch {
	case v.door.Closed:
		e.Notes = []string{fmt.Sprintf("the firewall of %s: the rule set %s was enabled for this test, and is disabled at its end", name, v.door)}
	case v.door.Ruleset != "":
		e.Notes = []string{fmt.Sprintf("the firewall of %s was left as it is: its rule set %s lets port %d pass", name, v.door, v.door.Port)}
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

// askVMkernel sends the script, and returns its report by keyword.
func (s *sshProcess) askVMkernel() (map[string]string, error) {
	defer s.within(vmkernelAnswerTime)()
	script := vmkernelScript(s.mark)
	if _, err := fmt.Fprintf(s.in, farScript+"%s", len(script), script); err != nil {
		return nil, s.explain("asking ESXi", err)
	}
	told, size := map[string]*strings.Builder{}, 0
	for {
		word, rest, err := s.line()
		switch {
		case err != nil:
			return nil, s.explain("asking ESXi", err)
		case word == "failed":
			return nil, fault.Failf("`thru check` reads the host without it", "remote: %s: looking for its iperf3: %s", s.destination, platform.Clean(rest))
		case word == "asked":
			all := map[string]string{}
			for w, b := range maps.All(told) {
				all[w] = b.String()
			}
			return all, nil
		}
		if size += len(rest); size > sshMostNoise {
			return nil, fmt.Errorf("remote: %s: asking ESXi: more than %d bytes", s.destination, sshMostNoise)
		}
		if told[word] == nil {
			told[word] = &strings.Builder{}
		}
		told[word].WriteString(rest + "\n")
	}
}

// choose chooses the port: one that the firewall passes, or one that it may be opened for.
func (d Dialer) choose(told map[string]string, destination string) (esx.Door, error) {
	client, _ := netip.ParseAddr(strings.TrimSpace(told["client"]))
	walls := esx.Walls{State: told["firewall"], Sets: told["sets"], Rules: told["rules"], Allowed: told["allowed"], Sockets: told["sockets"]}
	doors, err := esx.Doors(walls, client.Unmap(), vmkernelPort)
	if err != nil {
		return esx.Door{}, fmt.Errorf("remote: %s: %w", destination, err)
	}
	switch {
	case len(doors) == 0:
		return esx.Door{}, fault.Failf("`esxcli network firewall ruleset rule list` there shows them; `esxcli network firewall set --enabled false` there lets all pass until `... --enabled true`: that is yours to decide",
			"remote: %s: no rule set of its firewall lets TCP in at a port that iperf3 could take", destination)
	case doors[0].Closed && !d.Firewall:
		return esx.Door{}, fault.Failf(fmt.Sprintf("--esx-firewall enables the rule set %s for the test and disables it after; by hand: `%s`, and `%s` undoes it", doors[0].Ruleset, doors[0].Enable(), doors[0].Disable()),
			"remote: %s: its firewall lets nothing in to iperf3: the rule set %s would, and is disabled", destination, doors[0])
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
	return fault.Failf("ESXi 7 and 8 let it run after `esxcli system secpolicy domain set -n appDom -l disabled` (`... -l enforcing` undoes it), "+
		"ESXi 8 also needs `esxcli system settings advanced set -o /User/execInstalledOnly -i 0` (`... -i 1` undoes it): that is yours to decide", "%w", err)
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
		p.Line(fmt.Sprintf("warning: %s did not say that its firewall is as before: see `esxcli network firewall ruleset list -r %s` there; `%s` undoes it", v.ssh.destination, v.door.Ruleset, v.door.Disable()))
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
