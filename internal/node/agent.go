// Package node is thru on this machine: the agent with its engines and packet capture, the tuner with
// the guard that reverts the changes of a killed process, and the servers for iperf clients.
package node

import (
	"os"
	"runtime"

	"thru/internal/agent"
	"thru/internal/bus"
	"thru/internal/capture/live"
	"thru/internal/engine"
	"thru/internal/host"
	"thru/internal/hypervisor/kvm"
)

// NewAgent returns an agent with the engines of this program; more adjusts its Config.
func NewAgent(version, name string, engines engine.Table, l bus.Limits, dataAddrs []string, listen engine.Listen, more ...func(*agent.Config)) *agent.Agent {
	c := agent.Config{
		Name: name, Version: version, Engines: engines, Host: host.New(),
		Limits: l, DataAddrs: dataAddrs, Addrs: func() []string { return bus.HostAddrs("") }, Listen: listen, Capture: KernelRing{}, Hypervisor: kvm.New(name),
	}
	for _, set := range more {
		set(&c)
	}
	return agent.New(c)
}

// Hostname returns the name of this machine, or that of its operating system.
func Hostname() string {
	if h, err := os.Hostname(); err == nil && h != "" {
		return h
	}
	return runtime.GOOS
}

// KernelRing captures packets with this host's kernel. It implements agent.Capturer.
type KernelRing struct{}

// Possible implements agent.Capturer.
func (KernelRing) Possible() error { return live.Possible() }

// Start implements agent.Capturer.
func (KernelRing) Start(c live.Config) (agent.Ring, error) {
	r, err := live.Start(c)
	if err != nil {
		return nil, err
	}
	return r, nil
}
