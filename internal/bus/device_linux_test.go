package bus_test

import (
	"errors"
	"syscall"
	"testing"

	"thru/internal/bus"
	"thru/internal/bus/bustest"
)

// TestDevice binds both ends to the loopback device.
func TestDevice(t *testing.T) {
	s, _, err := bus.Listen(t.Context(), bus.ServerConfig{Addrs: []string{"127.0.0.1:0"}, Device: "lo"})
	if errors.Is(err, syscall.EPERM) {
		t.Skip("this kernel lets only root bind to a device:", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	v, err := bus.Serve(s, bustest.New())
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	conf := config(s)
	conf.Device, conf.LocalAddr = "lo", "127.0.0.1"
	c, err := bus.Dial(t.Context(), conf)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Hello(t.Context()); err != nil {
		t.Error(err)
	}
}
