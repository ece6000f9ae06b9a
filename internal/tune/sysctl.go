package tune

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"thru/internal/cause/knob"
)

// sysctl is a knob of one file of /proc/sys.
type sysctl struct {
	knob, name string // "net/ipv4/tcp_rmem"
	form       func(string) (string, error)
	possible   string
}

// sysctls lists those of Linux (Documentation/networking/ip-sysctl.rst,
// Documentation/admin-guide/sysctl/net.rst).
func sysctls() []sysctl {
	one, three, bytes := numbers(1), amounts(3), amounts(1)
	return []sysctl{
		{knob.TCPRmem, "net/ipv4/tcp_rmem", three, ""},
		{knob.TCPWmem, "net/ipv4/tcp_wmem", three, ""},
		{knob.RmemMax, "net/core/rmem_max", bytes, ""},
		{knob.WmemMax, "net/core/wmem_max", bytes, ""},
		{knob.WindowScaling, "net/ipv4/tcp_window_scaling", one, "0 1"},
		{knob.SACK, "net/ipv4/tcp_sack", one, "0 1"},
		{knob.Timestamps, "net/ipv4/tcp_timestamps", one, "0 1 2"},
		{knob.MTUProbing, "net/ipv4/tcp_mtu_probing", one, "0 1 2"},
		{knob.Congestion, "net/ipv4/tcp_congestion_control", word, ""},
		{knob.SlowStartIdle, "net/ipv4/tcp_slow_start_after_idle", one, "0 1"},
		{knob.NoMetricsSave, "net/ipv4/tcp_no_metrics_save", one, "0 1"},
		{knob.DefaultQdisc, "net/core/default_qdisc", word, ""},
		{knob.Backlog, "net/core/netdev_max_backlog", one, ""},
		{knob.Budget, "net/core/netdev_budget", one, ""},
	}
}

// row returns the row of a sysctl. Files below /proc/sys/net are those of the
// network namespace of the calling thread.
func (s sysctl) row(f files) row {
	name := path.Join("proc/sys", s.name)
	r := row{
		knob: s.knob, scope: knob.OfHost, form: s.form,
		read: func(string) (string, error) {
			text, err := f.Text(name)
			if err != nil {
				return "", err
			}
			return s.form(text)
		},
		set:    func(_, _, value string) error { return f.write(name, value) },
		states: func(string, string) (string, string) { return s.possible, f.refusal(name) },
	}
	if s.knob == knob.Congestion {
		r.set = func(_, _, value string) error { return setCongestion(f, name, value) }
		r.states = func(_, value string) (string, string) { return congestionState(f, name, value) }
	}
	return r
}

// setCongestion sets the congestion control of new connections. Only the
// host's own network namespace may use one that is not open to everybody
// (net/ipv4/tcp_cong.c, tcp_set_default_congestion_control).
func setCongestion(f files, name, value string) error {
	err := f.write(name, value)
	if known := congestions(f); err != nil && len(known) > 0 && !slices.Contains(known, value) {
		return fmt.Errorf("%w: possible values here: %s", err, strings.Join(known, " "))
	}
	return err
}

// congestionState returns the congestion controls that the host can use.
func congestionState(f files, name, value string) (possible, refused string) {
	known := congestions(f)
	if refused = f.refusal(name); refused == "" && len(known) == 1 && known[0] == value {
		refused = "this network namespace has no other one; set it for a route instead (" + knob.RouteCongestion + ")"
	}
	return strings.Join(known, " "), refused
}

// congestions lists the congestion controls that this network namespace may
// use: all available ones in the host's own, otherwise those open to
// everybody.
func congestions(f files) []string {
	name := "proc/sys/net/ipv4/tcp_available_congestion_control"
	if f.isolated() {
		name = "proc/sys/net/ipv4/tcp_allowed_congestion_control"
	}
	text, err := f.Text(name)
	if err != nil {
		return nil
	}
	return strings.Fields(text)
}

// isolated reports whether this is a network namespace other than the host's
// own: it has no backlog of its own (net/core/sysctl_net_core.c,
// netns_core_table).
func (f files) isolated() bool { return !f.Exists("proc/sys/net/core/netdev_max_backlog") }
