package planfile

import (
	"reflect"
	"testing"
	"time"

	"thru/internal/watch/record"
)

const watched = `thru: 1
end_points: [{name: a, labels: {site: east}}, {name: b, labels: {site: west}}]
pairs: [{type: mesh, among: all}]
link_rate: 10G
watch:
  probes: 500ms
  tcp: 8
  time: 5s
  load: 40%
  budget: 50G
  hours: ["22:00-06:00"]
  segments: [{name: wan, between: {site: east}, and: {site: west}}]
  objectives: ["goodput >= 9G,  99% of days", "rtt <= 5ms, 99.9% of hours", availability >= 99.95%]
  maintenance: [{begin: 2027-01-09T22:00:00Z, end: 2027-01-10T02:00:00Z, every_days: 7, hosts: [a], why: new switch}]
  alarms: [{alertmanager: http://10.0.0.9:9093}, {webhook: "https://hooks.example/x", secret: /etc/thru/key}, {exec: [/bin/page, noc]}, {mail: noc@example.net}, {journal: journal}]
`

func TestWatch(t *testing.T) {
	f, err := Parse("watch.yaml", []byte(watched))
	if err != nil {
		t.Fatal(err)
	}
	if err := valid(schema(t), watched); err != nil {
		t.Errorf("the schema refuses it: %v", err)
	}
	w := f.Watch()
	segments := w.Segments
	w.Segments = nil
	begin := time.Date(2027, 1, 9, 22, 0, 0, 0, time.UTC)
	want := Watch{
		Probes: 500 * time.Millisecond, TCP: 8, Time: 5 * time.Second, Load: 0.4, Budget: 50 << 30, Hours: []DayHours{{22 * time.Hour, 6 * time.Hour}},
		Objectives: []record.Goal{
			{Objective: "goodput >= 9G, 99% of days", Metric: record.Goodput, Limit: 9e9, AtLeast: true, SharePct: 99, Per: record.PerDay},
			{Objective: "rtt <= 5ms, 99.9% of hours", Metric: record.RTTMedian, Limit: 5e6, SharePct: 99.9, Per: record.PerHour},
			{Objective: "availability >= 99.95%", Metric: record.Availability, Limit: 0.9995, AtLeast: true, SharePct: 99.95, Per: record.PerTime},
		},
		Maintenance: []record.MaintenanceWindow{{Begin: begin, End: begin.Add(4 * time.Hour), EveryDays: 7, Hosts: []string{"a"}, Why: "new switch"}},
		Alarms: []Sink{
			{Kind: SinkAlertmanager, To: "http://10.0.0.9:9093"}, {Kind: SinkWebhook, To: "https://hooks.example/x", Secret: "/etc/thru/key"},
			{Kind: SinkExec, Args: []string{"/bin/page", "noc"}}, {Kind: SinkMail, To: "noc@example.net"}, {Kind: SinkJournal, To: "journal"},
		},
	}
	if !reflect.DeepEqual(w, want) {
		t.Errorf("got  %+v\nwant %+v", w, want)
	}
	east, west := map[string]string{"site": "east"}, map[string]string{"site": "west"}
	if s := segments[0]; len(segments) != 1 || s.Name != "wan" || !s.Crossed(west, east) || s.Crossed(east, east) {
		t.Errorf("%+v", segments)
	}
}

// TestWithoutWatch: each plan can be watched.
func TestWithoutWatch(t *testing.T) {
	f, err := Parse("plan.yaml", []byte("thru: 1\npairs: [{from: local, to: local}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if w := f.Watch(); w.Probes != time.Second || w.TCP != Auto || w.Time != 3*time.Second {
		t.Errorf("%+v", w)
	}
}
