package cli

import (
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"time"

	"thru/internal/agent"
	"thru/internal/bus"
	"thru/internal/engine/worker"
	"thru/internal/fault"
	"thru/internal/sock"
	"thru/internal/watch/metrics"
)

// offer offers metrics at an address until stop is called; at "" it offers none.
func offer(address string, sources ...func() []metrics.Family) (stop func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	_, port, err := net.SplitHostPort(address)
	if _, wrong := strconv.ParseUint(port, 10, 16); err != nil || wrong != nil {
		return nil, fault.Usagef("such as --metrics 127.0.0.1:9469", "--metrics %s is not ADDRESS:PORT", address)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fault.Failf("choose another port, or an address of this host, such as --metrics 127.0.0.1:9469", "--metrics %s: %w", address, sock.Cause(err))
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics.Handler(sources...))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(l) // it ends with Close
	}()
	return func() { _ = server.Close(); <-ended }, nil
}

// processFamilies returns the figures that each command has.
func processFamilies(version string) []metrics.Family {
	all := []metrics.Family{metrics.One("thru_build", metrics.Info, "", "Version of thru, and of the Go that built it.", 1, "version", version, "goversion", runtime.Version())}
	if t := worker.CPUTime(); t > 0 {
		all = append(all, metrics.One("process_cpu_seconds", metrics.Counter, "seconds", "CPU time of this process, without the processes that move test traffic.", t.Seconds()))
	}
	return all
}

// agentFamilies returns the figures of an agent.
func agentFamilies(version string, s agent.Stats, last lastTest) []metrics.Family {
	all := append(processFamilies(version),
		metrics.One("thru_sessions", metrics.Gauge, "", "Ends of flows that are open now.", float64(s.Sessions)),
		metrics.One("thru_sessions_opened", metrics.Counter, "", "Ends of flows that were opened since the start.", float64(s.Opened)))
	if s.Waiting != nil {
		all = append(all, metrics.One("thru_results_waiting", metrics.Gauge, "", "Results that no controller has yet.", float64(*s.Waiting)))
	}
	probes := []metrics.Family{
		{Name: "thru_probes_sent", Kind: metrics.Counter, Help: "Probes of watches whose fate is known, by the receiver's name."},
		{Name: "thru_probes_received", Kind: metrics.Counter, Help: "Probes of watches that were answered."},
		{Name: "thru_probes_lost", Kind: metrics.Counter, Help: "Probes of watches that were not answered in time."},
	}
	for _, to := range slices.Sorted(maps.Keys(s.Probes)) {
		for i, n := range []int64{s.Probes[to].Sent, s.Probes[to].Received, s.Probes[to].Lost} {
			probes[i].Points = append(probes[i].Points, metrics.Point{Labels: []string{"peer", to}, Value: float64(n)})
		}
	}
	goodput := metrics.Family{Name: "thru_test_goodput_bytes_per_second", Kind: metrics.Gauge, Unit: "bytes_per_second", Help: "Payload rate of the last test, at this end."}
	for _, direction := range slices.Sorted(maps.Keys(last.bps)) {
		goodput.Points = append(goodput.Points, metrics.Point{Labels: []string{"direction", direction}, Value: last.bps[direction] / 8, At: last.at})
	}
	return append(append(all, probes...), goodput)
}

// fleetFamilies returns the figures of a controller that has stored so many results.
func fleetFamilies(version string, hosts []bus.Host, stored int64) []metrics.Family {
	counts, waiting := map[string]int{}, 0
	for _, h := range hosts {
		waiting += h.Waiting
		switch {
		case h.Refused != "":
			counts["refused"]++
		case !h.Online:
			counts["offline"]++
		case h.Busy != "":
			counts["busy"]++
		default:
			counts["free"]++
		}
	}
	states := metrics.Family{Name: "thru_hosts", Kind: metrics.Gauge, Help: "Hosts of the fleet, by state."}
	for _, state := range []string{"free", "busy", "offline", "refused"} {
		states.Points = append(states.Points, metrics.Point{Labels: []string{"state", state}, Value: float64(counts[state])})
	}
	return append(processFamilies(version), states,
		metrics.One("thru_results_waiting", metrics.Gauge, "", "Results that wait at hosts.", float64(waiting)),
		metrics.One("thru_results_stored", metrics.Counter, "", "Results of hosts that were stored since the start.", float64(stored)))
}
