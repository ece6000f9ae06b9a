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

// said is the meaning of a server's error number, and what to do about it.
type said struct{ text, hint string }

// explain turns a server's error numbers into an error for a client; anonymous is set where the client gave no login.
func explain(code, errno int32, anonymous bool) error {
	known := map[int32]said{
		codeDuration:   {"the test is too long for it", "a smaller -t"},
		codeStreams:    {"there are too many streams for it", "a smaller -P"},
		codeLength:     {"the length is out of its range", "iperf3 takes -l up to 1M"},
		codeWindow:     {"the window is out of its range", "a smaller -w"},
		codeMSS:        {"the MSS is out of its range", "leave -M out"},
		codeOmit:       {"the time that is not counted is too long for it", "a shorter -O"},
		codeDatagram:   {"the length of the datagrams is out of its range", "-l 16 to 65507"},
		codeTOS:        {"it does not take the DSCP", "leave --dscp out"},
		codeRate:       {"the rate is above what the server allows", "a smaller -b (all streams and both directions count)"},
		codeTooLong:    {"the test is longer than the server allows", "a smaller -t, or a shorter -O"},
		codeMessage:    {"it did not understand what it was told", ""},
		codeParameters: {"it could not read the parameters", "its iperf3 may be very old"},
		codeResults:    {"it could not read the results", "its iperf3 may be very old"},
		codeBusy:       {"it is busy with another test", busyHint},
		codeProtocol:   {"it does not know the protocol", ""},
		codeAffinity:   {"it cannot use that CPU", "leave the peer's CPU out of -A"},
		codeAuth:       {"it does not let this user in", "check user, password and public key, and the clocks of both hosts, which may differ by 10 s; a server before 3.17 wants --use-pkcs1-padding"},
		codeNoData:     {"no data reached it", "a firewall lets the control connection through, and not the data?"},
		codeExpired:    {"the test did not end in time", ""},
		124:            {"it could not set the socket buffers", "a smaller -w, or larger net.core.rmem_max and wmem_max there"},
		141:            {"its kernel grants no window of that size", "a smaller -w, or larger net.core.rmem_max and wmem_max there"},
		134:            {"it has not got that congestion control", "another -C, or none"},
		123:            {"it could not set the MSS", "leave -M out"},
	}
	s, ok := known[code]
	if !ok {
		s = said{fmt.Sprintf("its error %d", code), "the iperf3 there says more on its own screen"}
	}
	if code == codeAuth && anonymous {
		s = said{"it lets in only users that it knows", "--username NAME --rsa-public-key-path FILE"}
	}
	if errno > 0 && errno < 4096 {
		s.text += ", " + syscall.Errno(errno).Error()
	}
	reason := map[int32]fault.Reason{codeAuth: ReasonLogin, codeBusy: ReasonBusy, 141: ReasonWindow}[code]
	return fault.Because(reason, fault.Failf(s.hint, "iperf3: the server has refused or ended the test: %s", s.text))
}

func errBusy() error {
	return fault.Because(ReasonBusy, fault.Failf(busyHint, "iperf3: the server is busy with another test"))
}

// Hints that several errors share.
const (
	busyHint = "an iperf3 server does one test at a time: wait, or start another one on another port (iperf3 -s -p PORT); thru serve --iperf does several"
	notHint  = "an iperf3 server is wanted there: iperf3 -s, or thru serve --iperf, by default on port 5201; 5001 is iperf2's (iperf2://), and thru's own end point is named without iperf3://"
)
