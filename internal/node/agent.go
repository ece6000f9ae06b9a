// Package node is thru on this machine: the agent with its engines and its ring of packets, the tuner
// with the guard that undoes what a killed process has set, and the ports where clients of iperf call.
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

// NewAgent is an agent with the engines of this program; more changes what it is told.
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

// Hostname of this machine, or its system's name.
func Hostname() string {
	if h, err := os.Hostname(); err == nil && h != "" {
		return h
	}
	return runtime.GOOS
}

// KernelRing is the capture of this host's kernel. It implements agent.Capturer.
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
