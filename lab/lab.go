// Package lab builds test networks from Linux network namespaces: hosts joined by veth pairs, with rates,
// sizes and failures that a test chooses. Nothing it sends leaves the machine.
//
// It runs the programs `ip` and `tc` of iproute2 (ip-netns(8), veth(4), tc-tbf(8)), needs root, and removes
// what it made when the test ends. The next test process removes the remains of a killed one.
//
// A test states its needs by Require. On a user's machine a test with unmet needs is skipped with the reason;
// with THRU_REQUIRE_LAB=1, as in CI, it fails instead.
package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// prefix begins the name of every namespace of a lab: thru-lab-PID-SERIAL-HOST.
const prefix = "thru-lab-"

// programTimeout limits each call of ip, tc and the like; they take milliseconds.
const programTimeout = 20 * time.Second

// Lab is the set of hosts of one test.
type Lab struct {
	t      testing.TB
	prefix string
	hosts  []*Host
}

// New returns an empty lab that is removed when the test ends, whether it passed or not. It first removes
// labs of processes that no longer run.
func New(t testing.TB) *Lab {
	t.Helper()
	Require(t, Root(), Program("ip"), Program("tc"), Namespaces())
	sweep(t)
	l := &Lab{t: t, prefix: newPrefix()}
	t.Cleanup(l.remove)
	return l
}

// newPrefix returns a unique prefix of namespace names, with the process id that sweep reads.
func newPrefix() string {
	return fmt.Sprintf("%s%d-%x-", prefix, os.Getpid(), time.Now().UnixNano()&0xffffffff)
}

// Host adds a host: a namespace with its own interfaces, routes and ports.
// Its loopback interface is up.
func (l *Lab) Host(name string) *Host {
	l.t.Helper()
	h := &Host{lab: l, Name: name, netns: l.prefix + name}
	l.must("ip", "netns", "add", h.netns)
	l.hosts = append(l.hosts, h)
	h.IP("link", "set", "lo", "up")
	return h
}

// remove ends every process in the hosts and deletes them. It continues after an error, since a partly
// removed lab is worse than more messages.
func (l *Lab) remove() {
	for _, h := range l.hosts {
		if err := removeNamespace(h.netns); err != nil {
			l.t.Errorf("%v", err)
		}
	}
}

// must runs a program that sets up the lab and fails the test if it fails.
func (l *Lab) must(name string, args ...string) string {
	l.t.Helper()
	out, err := run(name, args...)
	if err != nil {
		l.t.Fatalf("%v", err)
	}
	return out
}

// sweep removes namespaces of labs whose process no longer runs.
func sweep(t testing.TB) {
	out, err := run("ip", "netns", "list")
	if err != nil {
		t.Fatalf("%v", err)
	}
	for _, name := range stale(out, running) {
		t.Logf("lab: removing %s, whose process is gone", name)
		if err := removeNamespace(name); err != nil {
			t.Logf("%v", err)
		}
	}
}

// stale returns the lab namespaces in the output of `ip netns list` whose process is not alive. A line is
// "NAME" or "NAME (id: N)".
func stale(list string, alive func(pid int) bool) []string {
	var names []string
	for _, line := range strings.Split(list, "\n") {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest, ours := strings.CutPrefix(name, prefix)
		if !ours {
			continue
		}
		number, _, _ := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(number)
		if err == nil && !alive(pid) {
			names = append(names, name)
		}
	}
	return names
}

// running reports whether a process with that id exists.
func running(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return err == nil
}

// removeNamespace kills the processes in a namespace and deletes it. A surviving process would keep the
// namespace and its links alive.
func removeNamespace(name string) error {
	pids, err := namespacePids(name)
	for _, pid := range pids {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill() // an error means that it has ended already
		}
	}
	if _, deleteErr := run("ip", "netns", "delete", name); deleteErr != nil {
		return deleteErr
	}
	return err
}

// namespacePids lists the processes in a namespace (ip-netns(8), pids).
func namespacePids(name string) ([]int, error) {
	out, err := run("ip", "netns", "pids", name)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, field := range strings.Fields(out) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			return nil, fmt.Errorf("lab: reading the process ids in %s: %w", name, err)
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// run runs a program with a time limit and returns its output. The error contains the command line and the
// program's message.
func run(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), programTimeout)
	defer cancel()
	return output(exec.CommandContext(ctx, name, args...))
}

// output runs cmd and returns its standard output.
func output(cmd *exec.Cmd) (string, error) {
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("lab: %s: %w: %s",
			strings.Join(cmd.Args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}
