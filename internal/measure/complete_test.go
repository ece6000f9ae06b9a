package measure

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// Without samples a document keeps what each flow carried in each second and all totals, and names what it lacks. The original keeps all.
func TestWithoutSamples(t *testing.T) {
	end := func() *Evidence {
		return &Evidence{
			Streams: []Stream{{TCP: &TCPInfo{RTT: new(int64(7))}}}, PerSec: []HostSpan{{At: 1}},
			Bins: []StreamBin{{Bytes: 5, Streams: []int64{5}, TCP: []TCPInfo{{}}, Datagrams: &Datagrams{Packets: 3}}},
		}
	}
	d := &Document{Cells: []Cell{{Runs: []Run{{Flows: []Flow{{Sender: end(), Receiver: end()}, {}}}}}}, Missing: []NotChecked{{Fact: "x"}}}
	was, _ := json.Marshal(d)
	bare := WithoutSamples(d)
	if now, _ := json.Marshal(d); string(now) != string(was) {
		t.Error("the original has changed")
	}
	text, _ := json.Marshal(bare)
	for _, gone := range []string{"host_per_second", "stream_bytes", `"bins":[{"at_ns":0,"length_ns":0,"bytes":5,"tcp"`} {
		if strings.Contains(string(text), gone) {
			t.Errorf("%s is still there", gone)
		}
	}
	e := bare.Cells[0].Runs[0].Flows[0].Receiver
	if e.Bins[0].Bytes != 5 || e.Bins[0].Datagrams.Packets != 3 || *e.Streams[0].TCP.RTT != 7 || len(bare.Missing) != 2 || bare.Missing[1].Fact != "samples" {
		t.Errorf("%s", text)
	}
	if again := WithoutSamples(bare); len(again.Missing) != 2 {
		t.Errorf("nothing was left out, and it says %+v", again.Missing)
	}
}

// fillPointers sets every pointer of a value. Required lists stay nil; lists that JSON omits when empty get one element.
func fillPointers(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillPointers(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillPointers(v.Index(0))
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !isList(f) {
				fillPointers(v.Field(i))
			}
		}
	}
}

// A complete document has no null, wherever a list in it is nil, and the original keeps its lists.
func TestComplete(t *testing.T) {
	d := &Document{}
	fillPointers(reflect.ValueOf(d).Elem())
	d.Cells = []Cell{{}}
	fillPointers(reflect.ValueOf(&d.Cells[0]).Elem())
	d.Cells[0].Runs = []Run{{Flows: []Flow{{Sender: &Evidence{Streams: []Stream{{}}}, Captures: []Capture{{Conns: []Connection{{Timeline: &Trace{}}}}}}}}}
	was, _ := json.Marshal(d)
	text, _ := json.Marshal(Complete(d))
	if now, _ := json.Marshal(d); string(now) != string(was) || !strings.Contains(string(was), ":null") {
		t.Errorf("the original has changed, or had all lists: %s", now)
	}
	if _, after, found := strings.Cut(string(text), ":null"); found {
		t.Errorf("there is a null before %.80s", after)
	}
	if c := Complete(&Document{}); c.Schema != Schema || c.EndPoints == nil || c.Cells == nil || c.Tuning != nil {
		t.Errorf("%+v", c)
	}
}
