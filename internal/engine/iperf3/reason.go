package iperf3

import (
	"errors"
	"net"
	"syscall"

	"thru/internal/fault"
	"thru/internal/sock"
)

// Reasons for a failed test with a server. Packages that explain iperf3 failures use them.
const (
	ReasonRefused    fault.Reason = "connection refused"
	ReasonNoRoute    fault.Reason = "no route to host"
	ReasonNoNetwork  fault.Reason = "network unreachable"
	ReasonNoName     fault.Reason = "no such host"
	ReasonNoAddress  fault.Reason = "no such source address"
	ReasonNoDevice   fault.Reason = "no such device"
	ReasonCongestion fault.Reason = "no such congestion control"
	ReasonWindow     fault.Reason = "window not granted"
	ReasonBusy       fault.Reason = "server busy"
	ReasonLogin      fault.Reason = "login refused"
	ReasonTerminated fault.Reason = "server ended"
	ReasonLeft       fault.Reason = "client ended"
	ReasonClosed     fault.Reason = "connection closed"
)

// connecting adds the reason to a dialling error.
func connecting(err error) error {
	for number, reason := range map[syscall.Errno]fault.Reason{
		syscall.ECONNREFUSED: ReasonRefused, syscall.EHOSTUNREACH: ReasonNoRoute, syscall.ENETUNREACH: ReasonNoNetwork,
		syscall.EADDRNOTAVAIL: ReasonNoAddress, syscall.ENODEV: ReasonNoDevice,
		syscall.ENOENT: ReasonCongestion, // from the socket option
	} {
		if sock.Is(err, number) {
			return fault.Because(reason, err)
		}
	}
	if unknown := (*net.DNSError)(nil); errors.As(err, &unknown) {
		return fault.Because(ReasonNoName, err)
	}
	return err
}
