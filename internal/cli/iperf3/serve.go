package iperf3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"thru/internal/agent"
	"thru/internal/bus"
	"thru/internal/cli/console"
	"thru/internal/control"
	"thru/internal/engine"
	"thru/internal/engine/iperf3"
	"thru/internal/engine/worker"
	"thru/internal/fault"
	"thru/internal/iperfdoc"
	"thru/internal/measure"
	"thru/internal/node"
)

// serve runs the server: it answers iperf3 clients one after the other and prints each test as iperf3 does.
// `thru serve --iperf` serves several at once.
func (o *original) serve(ctx context.Context, e Host, out io.Writer) error {
	limits := agent.DefaultLimits()
	limits.RateBps = o.maxRate
	if o.maxTime > 0 {
		limits.DurationNs = int64(min(o.maxTime, measure.MaxDuration))
	}
	prog, err := worker.Self()
	if err != nil {
		return originalError(e.Err, "error", err)
	}
	defer prog.Close()
	listen := o.listen()
	calls, err := o.openServer(ctx, e, listen, limits)
	if err != nil {
		return originalError(e.Err, "error", err)
	}
	server, err := bus.Memory()
	if err != nil {
		return originalError(e.Err, "error", err)
	}
	defer server.Close()
	a := node.NewAgent(e.Version, node.Hostname(), calls.Engines(prog), limits, nil, listen)
	defer a.Close()
	service, err := bus.Serve(server, a)
	if err != nil {
		return originalError(e.Err, "error", err)
	}
	defer service.Close()
	a.Publisher(service.Publish)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := &originalServer{o: o, e: e, out: out, stop: stop, turn: make(chan struct{}, 1)}
	s.r = node.Reception{Version: e.Version, Connect: server.Client, Watch: s.watch, OnResult: s.end}
	s.listening()
	err = calls.Serve(ctx, func(call engine.Call) { s.take(ctx, call) })
	s.r.Wait()
	if err != nil {
		return originalError(e.Err, "error", err)
	}
	if words := endedBySignal(ctx, "server"); words != "" {
		fmt.Fprintf(e.Err, "iperf3: %s\n", words)
	}
	return s.failure
}

// listen returns the addresses to listen at.
func (o *original) listen() engine.Listen {
	l := engine.Listen{Device: o.Request.BindDev}
	switch {
	case o.Request.BindAddr != "":
		l.Addrs = []string{o.Request.BindAddr}
	case o.Request.Family == 4:
		l.Addrs = []string{"0.0.0.0"}
	case o.Request.Family == 6:
		l.Addrs = []string{"::"}
	}
	return l
}

// openServer opens the port; a port in use is an error here.
func (o *original) openServer(ctx context.Context, e Host, at engine.Listen, l bus.Limits) (node.Answering, error) {
	f := node.Calls{IPerf3Port: o.port, Login: node.Login{Users: o.users, PrivateKey: o.privateKey, PKCS1: o.Request.Login.PKCS1, Skew: o.skew}}
	d, warnings, err := f.Open(ctx, at, l, func(addr string, reason error) { e.Refused(addr, reason) })
	if err == nil && d.Three == nil {
		err = fault.Failf("end the program that holds the port, or choose another: -p PORT", "%s", strings.Join(warnings, "; "))
	}
	return d, err
}

// originalServer prints the tests of its clients.
type originalServer struct {
	o    *original
	e    Host
	out  io.Writer
	stop context.CancelFunc
	r    node.Reception

	turn    chan struct{} // holds one item while a test runs and until its output ends
	view    *originalView // of that test
	served  int
	failure error // of the only test with -1
}

// listening prints that the server waits for the next client.
func (s *originalServer) listening() {
	if !s.o.json && !s.o.jsonStream {
		iperfdoc.NewLayout(s.out, s.o.layout()).Listening(s.o.port, s.served+1)
	}
}

// turnWait is how long a client waits for the previous test to end: a client that starts right after its own
// last test must not find the server busy, nor on a busy host.
const turnWait = 5 * time.Second

// take runs a client's test unless another one runs.
func (s *originalServer) take(ctx context.Context, call engine.Call) {
	s.r.Tests.Go(func() {
		select {
		case s.turn <- struct{}{}:
			s.begin(ctx, call)
		case <-time.After(turnWait):
			call.Refuse(engine.ErrBusy)
		}
	})
}

func (s *originalServer) begin(ctx context.Context, call engine.Call) {
	for i := range call.Specs {
		spec := &call.Specs[i]
		spec.EachStream, spec.Interval = true, int64(s.o.Request.Interval)
		cpu := &spec.SenderCPU
		if spec.From != control.Local {
			cpu = &spec.ReceiverCPU
		}
		*cpu = cmp.Or(*cpu, s.o.Request.LocalCPU) // the client's choice takes precedence
	}
	s.view = newOriginalView(s.o, s.out, s.e.Version)
	s.view.called(call)
	s.r.Take(ctx, call)
}

func (s *originalServer) watch(engine.Call) control.Observer { return s.view }

// end ends the output of a test.
func (s *originalServer) end(_ engine.Call, doc *measure.Document, _ string, err error) {
	if doc == nil {
		doc = &measure.Document{Thru: s.e.Version}
	}
	werr := s.view.end(doc, err)
	if err != nil && !s.view.reportsErrors() {
		kind := "error - "
		if fault.ReasonOf(err) == iperf3.ReasonLeft {
			kind = ""
		}
		fmt.Fprintf(s.e.Err, "iperf3: %s%s\n", kind, originalWords(err))
	}
	s.served++
	if s.o.oneOff {
		if err = errors.Join(err, werr); err != nil {
			s.failure = console.Printed(fault.New(fault.Failed, "", "%w", err))
		}
		s.stop()
		return
	}
	s.listening()
	<-s.turn
}

// called notes the address of the client.
func (v *originalView) called(call engine.Call) {
	v.test.Host = call.Addr
	if host, port, err := net.SplitHostPort(call.Addr); err == nil {
		v.test.Host = host
		v.test.Port, _ = strconv.Atoi(port)
	}
}
