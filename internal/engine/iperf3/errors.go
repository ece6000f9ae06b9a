package iperf3

import (
	"errors"
	"fmt"
	"syscall"

	"thru/internal/fault"
)

// Numbers of iperf3's errors that this package sends or explains.
const (
	codeDuration   = 5
	codeStreams    = 6
	codeLength     = 7
	codeWindow     = 8
	codeMSS        = 10
	codeOmit       = 12
	codeDatagram   = 20
	codeTOS        = 21
	codeRate       = 27
	codeTooLong    = 37
	codeMessage    = 110
	codeParameters = 114
	codeResults    = 117
	codeBusy       = 121
	codeProtocol   = 131
	codeAffinity   = 132
	codeAuth       = 142
	codeNoData     = 144
	codeExpired    = 160
	codeAccept     = 204
)

// refusal is an error that the client receives as iperf3's error number.
type refusal struct {
	code int32
	err  error
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// refuse returns an error that the client receives as that number.
func refuse(code int32, format string, args ...any) error {
	return &refusal{code, fmt.Errorf("iperf3: "+format, args...)}
}

// codeOf returns the number that the client receives for err; false where it has none.
func codeOf(err error) (int32, bool) {
	var r *refusal
	if errors.As(err, &r) {
		return r.code, true
	}
	return 0, false
}

// meaning describes an error number of a server, with a hint.
type meaning struct{ text, hint string }

// explain turns a server's error numbers into an error for a client; anonymous is set where the client gave no login.
func explain(code, errno int32, anonymous bool) error {
	known := map[int32]meaning{
		codeDuration:   {"the test is too long for it", "use a smaller -t"},
		codeStreams:    {"there are too many streams for it", "use a smaller -P"},
		codeLength:     {"the length is out of its range", "use -l up to 1M"},
		codeWindow:     {"the window is out of its range", "use a smaller -w"},
		codeMSS:        {"the MSS is out of its range", "omit -M"},
		codeOmit:       {"the omitted time is too long for it", "use a shorter -O"},
		codeDatagram:   {"the length of the datagrams is out of its range", "use -l 16 to 65507"},
		codeTOS:        {"it rejects the DSCP", "omit --dscp"},
		codeRate:       {"the rate exceeds the server's limit", "use a smaller -b (all streams and both directions count)"},
		codeTooLong:    {"the test exceeds the server's time limit", "use a smaller -t, or a shorter -O"},
		codeMessage:    {"it received an unexpected message", ""},
		codeParameters: {"it could not read the parameters", "upgrade the iperf3 there: it may be very old"},
		codeResults:    {"it could not read the results", "upgrade the iperf3 there: it may be very old"},
		codeBusy:       {"it is busy with another test", busyHint},
		codeProtocol:   {"it does not support the protocol", ""},
		codeAffinity:   {"it cannot use that CPU", "omit the peer's CPU from -A"},
		codeAuth:       {"it rejects this user", "check user, password and public key, and the clocks of both hosts, which may differ by 10 s; a server before 3.17 needs --use-pkcs1-padding"},
		codeNoData:     {"no data reached it", "check the firewalls: they may allow the control connection but not the data"},
		codeExpired:    {"the test did not end in time", ""},
		124:            {"it could not set the socket buffers", "use a smaller -w, or raise net.core.rmem_max and wmem_max there"},
		141:            {"its kernel grants no window of that size", "use a smaller -w, or raise net.core.rmem_max and wmem_max there"},
		134:            {"it does not have that congestion control", "use another -C, or none"},
		123:            {"it could not set the MSS", "omit -M"},
	}
	s, ok := known[code]
	if !ok {
		s = meaning{fmt.Sprintf("its error %d", code), "read the output of the iperf3 there"}
	}
	if code == codeAuth && anonymous {
		s = meaning{"it requires a login", "give --username NAME --rsa-public-key-path FILE"}
	}
	if errno > 0 && errno < 4096 {
		s.text += ", " + syscall.Errno(errno).Error()
	}
	reason := map[int32]fault.Reason{codeAuth: ReasonLogin, codeBusy: ReasonBusy, 141: ReasonWindow}[code]
	return fault.Because(reason, fault.Failf(s.hint, "iperf3: the server refused or ended the test: %s", s.text))
}

func errBusy() error {
	return fault.Because(ReasonBusy, fault.Failf(busyHint, "iperf3: the server is busy with another test"))
}

// Hints that several errors share.
const (
	busyHint = "wait, or start another iperf3 server on another port (iperf3 -s -p PORT): it runs one test at a time; thru serve --iperf runs several"
	notHint  = "start an iperf3 server there: iperf3 -s, or thru serve --iperf, by default on port 5201; use iperf2:// for iperf2 (port 5001), and no scheme for a thru end point"
)
