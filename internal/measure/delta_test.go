package measure

import (
	"encoding/json"
	"math"
	"testing"
)

// A counter that was not read at the start or the end, or that went back, has no delta: it is never zero, whole or negative.
func TestDelta(t *testing.T) {
	at := func(n uint32) *TCPInfo { return &TCPInfo{Retrans: &n} }
	for _, x := range []struct {
		name    string
		streams []Stream
		n       uint64
		why     string
	}{
		{"both read", []Stream{{TCPStart: at(3), TCP: at(10)}}, 7, ""},
		{"it did not move", []Stream{{TCPStart: at(3), TCP: at(3)}}, 0, ""},
		{"of several", []Stream{{TCPStart: at(3), TCP: at(10)}, {TCPStart: at(0), TCP: at(5)}}, 12, ""},
		{"made within the time", []Stream{{TCPStart: at(5).AtBirth(), TCP: at(5)}}, 5, ""},
		{"no start", []Stream{{TCP: at(10)}}, 0, notRead},
		{"no end", []Stream{{TCPStart: at(3)}}, 0, notRead},
		{"start without it", []Stream{{TCPStart: &TCPInfo{}, TCP: at(10)}}, 0, notRead},
		{"end without it", []Stream{{TCPStart: at(3), TCP: &TCPInfo{}}}, 0, notRead},
		{"it went back", []Stream{{TCPStart: at(10), TCP: at(3)}}, 0, wasReset},
		{"one of several lacks it", []Stream{{TCPStart: at(3), TCP: at(10)}, {TCP: at(5)}}, 0, notRead},
		{"no stream", nil, 0, notRead},
	} {
		if d, want := (&Evidence{Streams: x.streams}).Delta(Retransmits), (Delta{x.n, x.why == "", x.why}); d != want {
			t.Errorf("%s: %+v, want %+v", x.name, d, want)
		}
	}
	if d := (*Evidence)(nil).Delta(Retransmits); d.Known || d.Signed() != nil {
		t.Errorf("of no evidence: %+v", d)
	}
}

func TestSecondDelta(t *testing.T) {
	at := func(n uint32) TCPInfo { return TCPInfo{Retrans: &n} }
	start := at(2)
	e := &Evidence{Streams: []Stream{{TCPStart: &start}, {}}, Bins: []StreamBin{{TCP: []TCPInfo{at(5), at(1)}}, {TCP: []TCPInfo{at(6), at(0)}}, {}}}
	for _, x := range []struct {
		second, stream int
		want           Delta
	}{
		{0, 0, Delta{N: 3, Known: true}}, {1, 0, Delta{N: 1, Known: true}}, {0, 1, Delta{Why: notRead}}, {1, 1, Delta{Why: wasReset}}, {2, 0, Delta{Why: notRead}}, {0, 9, Delta{Why: notRead}},
	} {
		if d := e.SecondDelta(x.second, x.stream, Retransmits); d != x.want {
			t.Errorf("second %d of stream %d: %+v, want %+v", x.second, x.stream, d, x.want)
		}
	}
}

func TestDeltaSums(t *testing.T) {
	known := func(n uint64) Delta { return Delta{N: n, Known: true} }
	if d := known(math.MaxUint64).Plus(known(5)); d != known(math.MaxUint64) || *d.Signed() != math.MaxInt64 {
		t.Errorf("a sum wraps: %+v", d)
	}
	if pct, ok := known(1).Pct(known(4)); !ok || pct != 25 {
		t.Errorf("%v, %v", pct, ok)
	}
	for _, none := range []Delta{{}, known(0)} {
		if _, ok := known(1).Pct(none); ok {
			t.Errorf("a share of %+v is known", none)
		}
	}
	e := &Evidence{Host: &HostSpan{Proto: map[string]uint64{"a": 3, "b": 4}}}
	if d := e.Protocol("a", "b", "c"); d != known(7) {
		t.Errorf("%+v", d)
	}
	e.Host.Missing = []NotChecked{{Fact: "protocol.a", Why: "it wrapped"}, {Fact: "protocol.c", Why: "it was reset"}}
	if d := e.Protocol("a", "b"); d != known(7) {
		t.Errorf("of one that wrapped: %+v", d)
	}
	if d := e.Protocol("a", "c"); d != (Delta{Why: "it was reset"}) {
		t.Errorf("of one that was reset: %+v", d)
	}
	if d := (&Evidence{Host: &HostSpan{}}).Protocol("a"); d.Known || d.Why == "" {
		t.Errorf("of counters that were not read: %+v", d)
	}
}

// Transfers of earlier versions leave out the start of connections that opened within a run.
func TestDecodeAddsBirths(t *testing.T) {
	text, _ := json.Marshal(&Document{Schema: Schema, Transfer: &Transfer{Runs: []TransferRun{{Sockets: []Stream{{TCP: &TCPInfo{Retrans: new(uint32(3))}}, {}}, There: []Stream{
		{TCPStart: &TCPInfo{Retrans: new(uint32(4))}, TCP: &TCPInfo{Retrans: new(uint32(9))}}}}}}})
	d, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	r := d.Transfer.Runs[0]
	if n := r.Sockets[0].Delta(Retransmits); n != (Delta{N: 3, Known: true}) || r.Sockets[1].TCPStart != nil {
		t.Errorf("%+v, %+v", n, r.Sockets[1])
	}
	if n := r.There[0].Delta(Retransmits); n != (Delta{N: 5, Known: true}) {
		t.Errorf("%+v", n)
	}
}
