package lab_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"thru/internal/watch/judge"
	"thru/internal/watch/record"
	"thru/lab"
)

// examples has what users start from.
const monitoringExamples = "../examples/monitoring/"

// TestMonitoringFiles has the programs check the examples, and test each alarm.
func TestMonitoringFiles(t *testing.T) {
	lab.Require(t, lab.Program("promtool"), lab.Program("amtool"))
	for _, args := range [][]string{
		{"promtool", "check", "config", monitoringExamples + "prometheus.yml"},
		{"promtool", "check", "rules", "--lint-fatal", monitoringExamples + "thru-rules.yml"},
		{"promtool", "test", "rules", "testdata/monitoring/rules.yml"},
		{"amtool", "check-config", monitoringExamples + "alertmanager.yml"},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// monitored is a host with an agent, a watch, and monitoring systems at the ports of the examples.
type monitored struct {
	*lab.Host
	t      *testing.T
	home   string
	client http.Client
	watch  *output
}

// The ports of the examples.
const (
	watchPort, agentPort, controllerPort                                        = "9469", "9479", "9489"
	prometheusPort, alertmanagerPort, victoriaPort, hookPort, otlpPort, oldPort = "9090", "9093", "8428", "9094", "4318", "9470"
)

// oldFigure is a metric of an exporter whose values are old.
const oldFigure = "old_figure"

// watchedPlan has one pair. It misses the first two objectives: the first without an alarm, the second would raise one after three minutes. Turns meet the third.
const watchedPlan = `thru: 1
end_points: [{name: b, at: 127.0.0.1}]
pairs: [{from: local, to: b}]
link_rate: 10G
watch:
  time: 1s
  budget: 1000T
  objectives: ["goodput >= 100T, 1% of days", "rtt <= 1ns, 99% of days", "goodput >= 1M, 95% of turns"]
  alarms: [{alertmanager: "http://127.0.0.1:9093"}]
`

// TestMonitoring runs a watch of an agent with real monitoring systems. The watch has been killed as its alarm was about to be raised, and no
// Alertmanager is there when it goes on.
func TestMonitoring(t *testing.T) {
	lab.Require(t, lab.Program("prometheus"), lab.Program("prometheus-alertmanager"), lab.Program("victoria-metrics"), lab.Program("promtool"))
	t.Parallel()
	m := &monitored{Host: lab.New(t).Host("m"), t: t, home: t.TempDir()}
	m.client.Transport = &http.Transport{DialContext: m.dial}
	m.client.Timeout = 10 * time.Second
	hook, pushed, old := &hooked{}, &otlpReceiver{}, &oldExporter{}
	m.listen(hookPort, hook)
	m.listen(otlpPort, pushed)
	m.listen(oldPort, old)
	agent := m.thru(agentPort, "serve", "--no-auth", "--metrics", "127.0.0.1:"+agentPort)
	lab.Eventually(t, 10*time.Second, "thru serve is ready", func() bool { return strings.Contains(agent.String(), "ready") })
	m.thru(controllerPort, "control", "--port", "5300", "--metrics", "127.0.0.1:"+controllerPort)
	m.startWatch()
	m.startSystems()
	lab.Eventually(t, 20*time.Second, "the watch says that an alarm waits", func() bool {
		return strings.Contains(m.watch.String(), "an alarm waits for alertmanager http://127.0.0.1:9093")
	})
	m.start(alertmanagerPort, "prometheus-alertmanager", "--config.file", m.copied("alertmanager.yml"), "--storage.path", t.TempDir(), "--web.listen-address", "127.0.0.1:"+alertmanagerPort, "--cluster.listen-address=")
	t.Run("alarm", func(t *testing.T) { m.checkRaised(t, hook) })
	t.Run("metrics", m.checkMetrics)
	t.Run("queries", m.checkQueries)
	t.Run("times", func(t *testing.T) { m.checkTimes(t, old) })
	t.Run("over", func(t *testing.T) { m.checkOver(t, hook) })
	t.Run("stored", m.checkStored)
	t.Run("pushed", func(t *testing.T) { m.checkPushed(t, pushed) })
	t.Run("away", m.checkAway)
	if said := agent.String(); !strings.Contains(said, "received ") || strings.Contains(said, "sent ") {
		t.Errorf("turns of one direction do not measure that one alone:\n%s", said)
	}
}

// dial connects from the host.
func (m *monitored) dial(ctx context.Context, _, address string) (c net.Conn, err error) {
	m.Inside(func() error {
		c, err = new(net.Dialer).DialContext(ctx, "tcp4", address)
		return nil
	})
	return c, err
}

// listen serves HTTP at a port of the host.
func (m *monitored) listen(port string, h http.Handler) {
	var l net.Listener
	m.Inside(func() (err error) {
		l, err = net.Listen("tcp4", "127.0.0.1:"+port)
		return err
	})
	s := &http.Server{Handler: h}
	go func() { _ = s.Serve(l) }() // it ends with Close
	m.t.Cleanup(func() { _ = s.Close() })
}

// start starts a program of the host, and waits until it listens.
func (m *monitored) start(port string, words ...string) *output {
	m.t.Helper()
	return place{host: m.Host}.run(m.t, port, words...)
}

// copied returns the path of a copy of an example, with other texts.
func (m *monitored) copied(name string, changes ...string) string {
	m.t.Helper()
	text, err := os.ReadFile(monitoringExamples + name)
	if err != nil {
		m.t.Fatal(err)
	}
	for i := 0; i+1 < len(changes); i += 2 {
		if !strings.Contains(string(text), changes[i]) {
			m.t.Fatalf("%s has no %q", name, changes[i])
		}
	}
	return config(m.t, m.home, name, strings.NewReplacer(changes...).Replace(string(text)))
}

// startWatch starts the watch, whose state is that of one that was killed.
func (m *monitored) startWatch() {
	m.t.Helper()
	plan := config(m.t, m.home, "plan.yaml", watchedPlan)
	if code := start(m.t, m.Host, m.home, "", "watch", plan, "--tcp", "0", "--for", "1.5").wait(m.t, 20*time.Second); code != 0 {
		m.t.Fatalf("thru watch ended with exit %d", code)
	}
	states, err := filepath.Glob(filepath.Join(m.home, ".local/state/thru/watch/*/state.json"))
	if err != nil || len(states) != 1 {
		m.t.Fatalf("%q, %v", states, err)
	}
	var state map[string]json.RawMessage
	text, err := os.ReadFile(states[0])
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	state["state"] = slices.Concat([]byte(`{"judge":`), aboutToAlarm(m.t, time.Now()), []byte("}"))
	if text, err = json.Marshal(state); err == nil {
		err = os.WriteFile(states[0], text, 0o600)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	m.watch = m.thru(watchPort, "watch", plan, "--json", "--tcp", "8640", "--metrics", "127.0.0.1:"+watchPort, "--otlp", "http://127.0.0.1:"+otlpPort)
}

// thru starts thru in the host, and waits until it listens.
func (m *monitored) thru(port string, args ...string) *output {
	m.t.Helper()
	return m.start(port, append([]string{"env", "HOME=" + m.home, "XDG_STATE_HOME=", "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", lab.Binary(m.t)}, args...)...)
}

// aboutToAlarm returns the state of a judge whose pair carries 1 kb/s since half an hour, which an objective forbids, and that waits for nothing any more.
func aboutToAlarm(t *testing.T, now time.Time) json.RawMessage {
	t.Helper()
	goal := record.Goal{Objective: "goodput >= 1M, 95% of turns", Metric: record.Goodput, Limit: 1e6, AtLeast: true, SharePct: 95, Per: record.PerTurn}
	j := judge.New(judge.Config{Goals: func(record.Pair) []record.Goal { return []record.Goal{goal} }})
	ago := func(minutes time.Duration) time.Time { return now.Add(-minutes * time.Minute) }
	for minute := range time.Duration(3) {
		j.Take(record.Sample{Pair: record.Pair{From: "local", To: "b"}, Layer: record.TCP, Begin: ago(33 - minute), Seconds: 1, State: record.Up, Values: map[record.Metric]float64{record.Goodput: 1e3}})
	}
	j.Tick(ago(30))
	if events := j.Tick(ago(28)); len(events) != 1 || events[0].Kind != record.Suspected {
		t.Fatalf("no alarm is suspected: %+v", events)
	}
	state, err := j.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// startSystems starts Prometheus and VictoriaMetrics.
func (m *monitored) startSystems() {
	m.start(victoriaPort, "victoria-metrics", "-storageDataPath", m.t.TempDir(), "-httpListenAddr", "127.0.0.1:"+victoriaPort)
	m.copied("thru-rules.yml")
	conf := m.copied("prometheus.yml", "scrape_interval: 15s", "scrape_interval: 1s", "evaluation_interval: 15s", "evaluation_interval: 1s", "#remote_write:", "remote_write:",
		`"127.0.0.1:`+watchPort+`"`, `"127.0.0.1:`+watchPort+`", "127.0.0.1:`+controllerPort+`"`, "scrape_configs:", "scrape_configs:\n  - {job_name: old, static_configs: [{targets: ['127.0.0.1:"+oldPort+"']}]}")
	m.start(prometheusPort, "prometheus", "--config.file", conf, "--storage.tsdb.path", m.t.TempDir(), "--web.listen-address", "127.0.0.1:"+prometheusPort)
}

// get returns what a server of the host answers.
func (m *monitored) get(t *testing.T, port, path string, query ...string) []byte {
	t.Helper()
	values := url.Values{}
	for i := 0; i+1 < len(query); i += 2 {
		values.Add(query[i], query[i+1])
	}
	reply, err := m.client.Get("http://127.0.0.1:" + port + path + "?" + values.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != http.StatusOK {
		t.Fatalf("%s of port %s with %q: %s, %v: %.500s", path, port, query, reply.Status, err, text)
	}
	return text
}

// decoded decodes JSON.
func decoded[T any](t *testing.T, text []byte) (x T) {
	t.Helper()
	if err := json.Unmarshal(text, &x); err != nil {
		t.Fatalf("%v: %.500s", err, text)
	}
	return x
}

// series is a series of Prometheus' API.
type series struct {
	Metric map[string]string
	Values [][2]any // of a range: time and value
}

// ask executes a query; more are parameters of the API.
func (m *monitored) ask(t *testing.T, path, query string, more ...string) []series {
	t.Helper()
	x := decoded[struct{ Data struct{ Result []series } }](t, m.get(t, prometheusPort, "/api/v1/"+path, append([]string{"query", query}, more...)...))
	return x.Data.Result
}

// turns returns what the watch has measured so far by a layer: values by the end of their measurement in milliseconds.
func (m *monitored) turns(t *testing.T, layer record.Layer, of record.Metric) map[int64]float64 {
	t.Helper()
	all := map[int64]float64{}
	for line := range strings.SplitSeq(m.watch.String(), "\n") {
		var x struct{ Sample record.Sample }
		if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &x) != nil { // the last may not be complete
			continue
		}
		if v, measured := x.Sample.Values[of]; measured && x.Sample.Layer == layer {
			all[x.Sample.Begin.Add(time.Duration(x.Sample.Seconds*float64(time.Second))).UnixMilli()] = v
		}
	}
	return all
}

// hooked takes the notifications of Alertmanager.
type hooked struct {
	mu  sync.Mutex
	all []notified
}

type notified struct {
	Status string
	Labels map[string]string
}

func (h *hooked) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var x struct{ Alerts []notified }
	if json.NewDecoder(r.Body).Decode(&x) == nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.all = append(h.all, x.Alerts...)
	}
}

// has reports whether somebody was notified of an alarm.
func (h *hooked) has(name, status string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.all, func(n notified) bool { return n.Labels["alertname"] == name && n.Status == status })
}

// checkRaised checks that the alarm of the watch, which waited, comes to Alertmanager and to the one whom that notifies, and those of the rules too.
func (m *monitored) checkRaised(t *testing.T, hook *hooked) {
	var found []struct {
		Labels, Annotations map[string]string
		StartsAt            time.Time
	}
	lab.Eventually(t, 30*time.Second, "Alertmanager has the alarm of the watch", func() bool {
		found = decoded[[]struct {
			Labels, Annotations map[string]string
			StartsAt            time.Time
		}](t, m.get(t, alertmanagerPort, "/api/v2/alerts", "filter", `alertname="thru_objective"`))
		return len(found) == 1
	})
	a := found[0]
	if a.Labels["from"] != "local" || a.Labels["to"] != "b" || a.Labels["severity"] != "warning" || a.Labels["alarm"] == "" || !strings.Contains(a.Annotations["summary"], "goodput") {
		t.Errorf("%+v", a)
	}
	if since := time.Since(a.StartsAt); since < 32*time.Minute || since > 40*time.Minute {
		t.Errorf("it began %v ago", since)
	}
	lab.Eventually(t, 20*time.Second, "the receiver is notified", func() bool { return hook.has("thru_objective", "firing") })
	lab.Eventually(t, 30*time.Second, "the same alarm of a rule is inhibited by it", func() bool {
		all := decoded[[]struct{ Status struct{ State string } }](t, m.get(t, alertmanagerPort, "/api/v2/alerts", "filter", `alertname="ThruGoodputBelowObjective"`))
		return len(all) == 1 && all[0].Status.State == "suppressed"
	})
}

// checkMetrics has promtool judge the names, types and units.
func (m *monitored) checkMetrics(t *testing.T) {
	for _, port := range []string{watchPort, agentPort, controllerPort} {
		cmd := exec.Command("promtool", "check", "metrics")
		cmd.Stdin = strings.NewReader(string(m.get(t, port, "/metrics")))
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("promtool check metrics of port %s: %v\n%s", port, err, out)
		}
	}
}

// checkOver checks that the alarm ends when the goodput is back.
func (m *monitored) checkOver(t *testing.T, hook *hooked) {
	lab.Eventually(t, time.Minute, "the receiver is notified that the alarm is over", func() bool { return hook.has("thru_objective", "resolved") })
	if left := decoded[[]any](t, m.get(t, alertmanagerPort, "/api/v2/alerts", "filter", `alertname="thru_objective"`)); len(left) > 0 {
		t.Errorf("Alertmanager still has %v", left)
	}
	if text := string(m.get(t, watchPort, "/metrics")); !strings.Contains(text, "\nthru_alarms 0\n") {
		t.Errorf("the watch has alarms:\n%s", text)
	}
}

// checkAway ends the watch, and checks what Prometheus then knows.
func (m *monitored) checkAway(t *testing.T) {
	for _, pid := range m.Pids() {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it may have ended
		if strings.Contains(string(line), "\x00watch\x00") {
			if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		}
	}
	lab.Eventually(t, 20*time.Second, "the exporter is away", func() bool { return len(m.ask(t, "query", `up{job=~"thru|thru-agents"} == 0`)) == 1 })
	for query, want := range map[string]int{"thru_state": 0, "pair:thru_goodput_bytes_per_second:last": 0, "thru_loss_ratio": 1} {
		lab.Eventually(t, 10*time.Second, fmt.Sprintf("%d series of %s", want, query), func() bool { return len(m.ask(t, "query", query)) == want })
	}
}
