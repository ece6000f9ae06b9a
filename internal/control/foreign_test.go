package control

import (
	"slices"
	"testing"

	"thru/internal/bus"
	"thru/internal/measure"
	"thru/internal/plan"
)

// withForeign returns a local agent and a foreign end point.
func withForeign(local *fakeAgent) map[string]*EndPoint {
	ends := pairOf(local, nil)
	ends["peer"] = &EndPoint{Name: "peer", Addr: "10.0.0.2:5201", Foreign: true, Port: 5201, Token: "call", DataHosts: []string{"10.0.0.2"}}
	return ends
}

// reports adds the far end's evidence to an agent's.
func reports(r *bus.CollectReply) {
	r.Far = &measure.Evidence{Reported: "iperf3 3.12", Sends: !r.Evidence.Sends, MeasuredNs: 1e9, Bytes: 900}
	if r.Evidence.Sends {
		r.FarBack = &measure.Evidence{Reported: "iperf3 3.12", Sends: true, MeasuredNs: 1e9, Bytes: 700}
		r.Back = &measure.Evidence{MeasuredNs: 1e9, Bytes: 690}
	}
}

func TestForeignEndIsNotAsked(t *testing.T) {
	local := newAgent("local")
	local.evidence = reports
	p, err := plan.Test(request())
	if err != nil {
		t.Fatal(err)
	}
	r := Runner{Ends: withForeign(local), Watch: &quiet{}}
	doc, err := r.Run(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"reserve", "dial sender 10.0.0.2:5201 ", "start localsender 2s", "collect localsender", "release"}; !slices.Equal(local.asked()[:len(want)], want) {
		t.Errorf("forward: asked %q", local.asked())
	}
	if len(doc.Cells) != 2 || doc.Cells[0].Goodput == nil || doc.Cells[0].Goodput.Value != 7200 {
		t.Errorf("the goodput is not what the far end received: %+v", doc.Cells)
	}
	back := doc.Cells[1].Runs[0].Flows[0]
	if back.Sender == nil || back.Sender.EndPoint != "peer" || back.Receiver.EndPoint != Local {
		t.Errorf("reverse: %+v", back)
	}
	if e := doc.EndPoints[1]; e.Name != "peer" || e.Speaks != "iperf3 3.12" || e.Facts != nil {
		t.Errorf("the end point is %+v", e)
	}
}

// A foreign client has dialled already: only the listening end is prepared, and gets
// the token of the call. Two directions are one session.
func TestForeignEndCalls(t *testing.T) {
	local := newAgent("local")
	local.evidence = reports
	spec := measure.Spec{From: Local, To: "peer", Engine: measure.IPerf3, Protocol: measure.TCP, Streams: 1, Duration: 1e9, Interval: 1e9, NoRamp: true, Duplex: true}
	back := spec
	back.From, back.To, back.DialFrom = spec.To, spec.From, true
	r := Runner{Ends: withForeign(local), Watch: &quiet{}}
	doc, err := r.Run(t.Context(), plan.Plan{Command: "serve", Repeat: plan.Repeat{Min: 1, Max: 1}, Steps: []plan.Step{{Specs: []measure.Spec{spec, back}}}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"reserve", "listen sender call", "start localsender 0s", "collect localsender", "release"}; !slices.Equal(local.asked(), want) {
		t.Errorf("asked %q", local.asked())
	}
	var got []int64
	for _, c := range doc.Cells {
		f := c.Runs[0].Flows[0]
		got = append(got, f.Sender.Bytes, f.Receiver.Bytes)
	}
	if want := []int64{1000, 900, 700, 690}; !slices.Equal(got, want) {
		t.Errorf("bytes of the four ends are %v, want %v", got, want)
	}
}
