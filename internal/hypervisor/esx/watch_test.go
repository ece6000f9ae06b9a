package esx

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"thru/internal/measure"
)

// moving is a host with rising counters: each reading is 5 s after the one
// before by its counters.
type moving struct {
	sample
	rounds atomic.Int64
	begun  atomic.Int64      // how often esxtop was run
	top    func(w io.Writer) // output of esxtop; nil: it cannot be run
	mute   bool              // ports and NICs cannot be read
}

// Run adds the counter script to the sample's commands. The format of its
// parts: vsish as VMware's KB articles print it (1010071, 2039495), esxcli by
// its reference.
func (m *moving) Run(ctx context.Context, name string, args ...string) ([]byte, error) {
	if name != "/bin/sh" {
		return m.sample.Run(ctx, name, args...)
	}
	if m.mute {
		return nil, nil
	}
	n := m.rounds.Add(1)
	return fmt.Appendf(nil, `== clientStats 67108878
port client stats {
   pktsTxOK:%d
   bytesTxOK:%d
   droppedTx:0
   pktsRxOK:%d
   bytesRxOK:%d
   droppedRx:%d
}
== rxSummary 67108878
stats of a vmxnet3 vNIC rx queue {
   running out of buffers:%d
   1st ring size:512
   # of times the 1st ring is full:%d
}
== nic vmnic0
NIC statistics for vmnic0
   Packets received: %d
   Bytes received: %d
   Receive packets dropped: %d
   Total receive errors: 0
   Receive FIFO errors: 3
== queues vmnic0
device {
   -- General Statistics:
   rx_queue_0_packets: %d
   rxq1_pkts: 7
   Rx Packets:1
}
`, n*1000, n*1_000_000, n*500, n*2_500_000, n*10, n*4, n*3, n*5000, n*5_000_000, n*2, n*2500), nil
}

func (m *moving) Stream(ctx context.Context, name string, args ...string) (io.ReadCloser, error) {
	if m.top == nil {
		return nil, fmt.Errorf("running %s: refused", name)
	}
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { w.Close() })
	done := make(chan struct{})
	go func() { m.begun.Add(1); m.top(w); w.Close(); close(done) }()
	return program{r, done}, nil
}

// program is a running program with output; Close returns when it has ended.
type program struct {
	*io.PipeReader
	done chan struct{}
}

func (p program) Close() error {
	p.PipeReader.Close()
	<-p.done
	return nil
}

// topHeading is a part of the columns of esxtop -b on a host with two guests.
const topHeading = `"(PDH-CSV 4.0) (UTC)(0)","\\esx1.example\Memory\Memory Overcommit (1 Minute Avg)","\\esx1.example\Physical Cpu(_Total)\% Util Time","\\esx1.example\Physical Cpu(0)\% Util Time",` +
	`"\\esx1.example\Group Cpu(44561:web 1)\% Used","\\esx1.example\Group Cpu(44561:web 1)\% Ready","\\esx1.example\Group Cpu(44561:web 1)\% CoStop","\\esx1.example\Group Cpu(44561:web 1)\% Max Limited",` +
	`"\\esx1.example\Vcpu(44561:web 1:1051275:vmx-vcpu-0:web 1)\% Ready","\\esx1.example\Group Cpu(99:NetWorld-VM-1051275)\% Used","\\esx1.example\Group Cpu(99:NetWorld-VM-1051275)\% Ready","\\esx1.example\Group Cpu(7:db)\% Ready",` +
	`"\\esx1.example\Group Memory(44561:web 1)\Memctl MBytes","\\esx1.example\Network Port(vSwitch0:67108878:1051275:web 1)\% Outbound Packets Dropped","\\esx1.example\Network Port(vSwitch0:67108878:1051275:web 1)\% Received Packets Dropped"` + "\n"

// topLines prints a sample every 5 s.
func topLines(w io.Writer) {
	io.WriteString(w, topHeading)
	for n := 0; ; n++ {
		line := fmt.Sprintf(`"11/23/2026 03:00:%02d","1.0","50.0","75.0","210.5","40.0","8.0","4.0","12.5","88.0","1.0","99.0","16.0","0.5","2.5"`+"\n", n%60)
		if n == 0 {
			line = strings.ReplaceAll(line, "40.0", "99999.0") // since the host was started
		}
		if _, err := io.WriteString(w, line); err != nil {
			return
		}
		time.Sleep(every)
	}
}

// TestMain verifies that no watch leaves a goroutine.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func seriesOf(all []measure.Series, of, instance, counter string) *measure.Series {
	for i, s := range all {
		if s.Of == of && s.Instance == instance && s.Counter == counter {
			return &all[i]
		}
	}
	return nil
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(&moving{sample: load(t, "esxi-8"), top: topLines}, "esx1")
		w, err := h.Watch(t.Context(), []string{"1", "9", "ha-host", "nobody"})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		time.Sleep(11 * time.Second)
		all, lacks := w.End(t.Context())
		for _, want := range []struct {
			of, instance, counter, native string
			value                         float64
		}{
			{"1", "67108878", measure.CounterTxPps, "pktsTxOK", 200},
			{"1", "67108878", measure.CounterRxBps, "bytesRxOK", 4e6},
			{"1", "67108878", measure.CounterRxDropped, "droppedRx", 10},
			{"1", "67108878", measure.CounterNoBuffer, "running out of buffers", 4},
			{"1", "67108878", measure.CounterRingFull, "# of times the 1st ring is full", 3},
			{"1", "67108878", measure.CounterTxDropPct, "% Outbound Packets Dropped", 0.5},
			{"1", "67108878", measure.CounterRxDropPct, "% Received Packets Dropped", 2.5},
			{"1", "", measure.CounterReady, "% Ready", 10},
			{"1", "", measure.CounterCoStop, "% CoStop", 2},
			{"1", "", measure.CounterUsed, "% Used", 210.5},
			{"1", "", measure.CounterBalloon, "Memctl MBytes", 16 << 20},
			{"1", "0", measure.CounterReady, "% Ready", 12.5},
			{"ha-host", "", measure.CounterUsage, "% Util Time", 50},
			{"ha-host", "0", measure.CounterUsage, "% Util Time", 75},
			{"ha-host", "NetWorld-VM-1051275", measure.CounterThread, "% Used", 88},
			{"ha-host", "vmnic0", measure.CounterRxPps, "Packets received", 1000},
			{"ha-host", "vmnic0", measure.CounterRxDropped, "Receive packets dropped", 2},
			{"ha-host", "vmnic0:0", measure.CounterQueueRx, "rx_queue_0_packets", 500},
		} {
			s := seriesOf(all, want.of, want.instance, want.counter)
			if s == nil || len(s.Samples) < 2 || s.Samples[0].Value != want.value || s.Native != want.native {
				t.Errorf("%+v: %+v", want, s)
				continue
			}
			if !s.Samples[0].EndedAt.Equal(begin.Add(every)) {
				t.Errorf("%s of %s: the first sample ended after %v", want.counter, want.of, s.Samples[0].EndedAt.Sub(begin))
			}
		}
		if top := seriesOf(all, "1", "", measure.CounterReady); top == nil || len(top.Samples) != 3 || top.EveryNs != every.Nanoseconds() {
			t.Errorf("esxtop was not waited for until a sample reached the end: %+v", top)
		}
		if s := seriesOf(all, "7", "", measure.CounterReady); s != nil {
			t.Errorf("db is not watched: %+v", s)
		}
		said := values(t, lacks)
		for _, want := range []string{`"fact":"counters.9","why":"it did not run"`, `"fact":"counters.nobody"`} {
			if !strings.Contains(said, want) {
				t.Errorf("nothing of %s in %s", want, said)
			}
		}
	})
}

// What cannot be read is reported, and the rest is read.
func TestWatchLacks(t *testing.T) {
	for name, tt := range map[string]struct {
		host *moving
		want string
		some bool
	}{
		"no esxtop":       {&moving{}, `"fact":"counters of esxtop","why":"running esxtop: refused"`, true},
		"another esxtop":  {&moving{top: func(w io.Writer) { io.WriteString(w, "usage: esxtop\n") }}, `it is not output of esxtop -b`, true},
		"no vsish":        {&moving{mute: true, top: topLines}, "neither vsish nor esxcli reports them", true},
		"nothing of both": {&moving{mute: true}, "neither vsish nor esxcli reports them", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.host.sample = load(t, "esxi-8")
				w, err := New(tt.host, "esx1").Watch(t.Context(), []string{"1"})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(7 * time.Second)
				all, lacks := w.End(t.Context())
				if said := values(t, lacks); !strings.Contains(said, tt.want) || (len(all) > 0) != tt.some {
					t.Errorf("%d series, %s", len(all), said)
				}
			})
		})
	}
}

// A test that ends before two readings has no counters, and reports it.
func TestWatchIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := New(&moving{sample: load(t, "esxi-8"), top: topLines, mute: false}, "esx1").Watch(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		all, lacks := w.End(t.Context())
		if len(all) > 0 || !strings.Contains(values(t, lacks), "two readings take 5s") {
			t.Errorf("%d series, %s", len(all), values(t, lacks))
		}
	})
}

// Lines of megabytes are read without being kept, and a cut line is dropped.
func TestTopIsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(`"(PDH-CSV 4.0) (UTC)(0)"`)
	for n := range 50_000 {
		fmt.Fprintf(&b, `,"\\esx1\Group Cpu(%d:guest%d)\%% Ready"`, n, n)
	}
	b.WriteString("\n\"now\"")
	for n := range 50_000 {
		fmt.Fprintf(&b, `,"%d.5"`, n)
	}
	b.WriteString("\n\"then\",\"1\"")
	top, err := newTop(strings.NewReader(b.String()), func(_, of string) bool { return of == "777:guest777" })
	if err != nil || len(top.columns) != 1 {
		t.Fatalf("%v, %d columns", err, len(top.columns))
	}
	if v, err := top.next(); err != nil || v[0] != 777.5 {
		t.Errorf("%v, %v", v, err)
	}
	if v, err := top.next(); err == nil {
		t.Errorf("half a line gives %v", v)
	}
}

// Two guests of one name: the worlds in the headings show the guest of a
// group; where they do not, there are no values for either.
func TestWatchTwins(t *testing.T) {
	const columns = `"(PDH-CSV 4.0) (UTC)(0)","\\esx1\Group Cpu(100:web 1)\% Ready","\\esx1\Group Memory(100:web 1)\Memctl MBytes","\\esx1\Group Cpu(200:web 1)\% Ready","\\esx1\Group Memory(200:web 1)\Memctl MBytes",` +
		`"\\esx1\Vcpu(100:web 1:1051301:vmx-vcpu-0:web 1)\% Ready","\\esx1\Vcpu(200:web 1:1051275:vmx-vcpu-0:web 1)\% Ready"`
	const worlds = `,"\\esx1\Vcpu(100:web 1:1051299:vmx)\% Used","\\esx1\Vcpu(200:web 1:1051272:vmx)\% Used"`
	print := func(more string) func(io.Writer) {
		return func(w io.Writer) {
			io.WriteString(w, columns+more+"\n")
			line := `"now","90","1","40","16","91","12.5"` + strings.Repeat(`,"1"`, strings.Count(more, ",")) + "\n"
			for {
				if _, err := io.WriteString(w, line); err != nil {
					return
				}
				time.Sleep(every)
			}
		}
	}
	for name, tt := range map[string]struct {
		more string
		want map[string]float64
		lack bool
	}{
		"worlds tell": {worlds, map[string]float64{" " + measure.CounterReady: 10, " " + measure.CounterBalloon: 16 << 20, "0 " + measure.CounterReady: 12.5}, false},
		"none does":   {"", map[string]float64{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &moving{sample: load(t, "esxi-8"), mute: true, top: print(tt.more)}
				list := h.sample["vim-cmd vmsvc/getallvms"]
				h.sample["vim-cmd vmsvc/getallvms"] = strings.Replace(list, "7      db ", "7      web 1 ", 1)
				if h.sample["vim-cmd vmsvc/getallvms"] == list {
					t.Fatal("the fixture has no guest db")
				}
				w, err := New(h, "esx1").Watch(t.Context(), []string{"1"})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(11 * time.Second)
				all, lacks := w.End(t.Context())
				for _, s := range all {
					if v, ok := tt.want[s.Instance+" "+s.Counter]; !ok || s.Of != "1" || s.Samples[0].Value != v {
						t.Errorf("%+v", s)
					}
				}
				said := strings.Contains(values(t, lacks), `"fact":"counters of esxtop of web 1"`)
				if len(all) != len(tt.want) || said != tt.lack {
					t.Errorf("%d series, %s", len(all), values(t, lacks))
				}
			})
		})
	}
}

// esxtop is restarted after its hour; the end of the context or of the source
// ends all, and what was counted before is returned.
func TestWatchLasts(t *testing.T) {
	hour := func(w io.Writer) {
		io.WriteString(w, topHeading)
		for range mostTops {
			if _, err := fmt.Fprintln(w, `"now","1.0","50.0","75.0","210.5","40.0","8.0","4.0","12.5","88.0","1.0","99.0","16.0","0.5","2.5"`); err != nil {
				return
			}
			time.Sleep(every)
		}
	}
	for name, end := range map[string]func(h *Host, cancel func()){
		"context": func(_ *Host, cancel func()) { cancel() },
		"source":  func(h *Host, _ func()) { h.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &moving{sample: load(t, "esxi-8"), top: hour}
				h := New(m, "esx1")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				w, err := h.Watch(ctx, []string{"1", "ha-host"})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(150 * time.Minute)
				end(h, cancel)
				synctest.Wait()
				begun := m.rounds.Load()
				time.Sleep(time.Hour)
				if n := m.rounds.Load(); n != begun || m.begun.Load() != 3 {
					t.Errorf("%d readings afterwards, esxtop begun %d times", n-begun, m.begun.Load())
				}
				all, lacks := w.End(t.Context())
				s := seriesOf(all, "1", "", measure.CounterReady)
				if port := seriesOf(all, "1", "67108878", measure.CounterTxPps); port == nil || port.EveryNs != every.Nanoseconds() {
					t.Errorf("an hour in which nothing was read is in %+v", port)
				}
				if s == nil || len(s.Samples) < 1790 || len(lacks) > 0 {
					t.Errorf("%d series, %s", len(all), values(t, lacks))
				}
			})
		})
	}
}

// A broken connection costs the counters of that time, which is reported, and
// End does not wait for them meanwhile.
func TestWatchBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &moving{sample: load(t, "esxi-8")}
		m.top = func(w io.Writer) {
			io.WriteString(w, topHeading)
			for range 3 {
				fmt.Fprintln(w, `"now","1.0","50.0","75.0","210.5","40.0","8.0","4.0","12.5","88.0","1.0","99.0","16.0","0.5","2.5"`)
				time.Sleep(every)
			}
			io.WriteString(w, `"cut`)
			w.(*io.PipeWriter).CloseWithError(fmt.Errorf("the connection ended"))
		}
		w, err := New(m, "esx1").Watch(t.Context(), []string{"1"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(75 * time.Second) // 15 s of it, 40 s, 15 s again, and away
		begin := time.Now()
		all, lacks := w.End(t.Context())
		if s := seriesOf(all, "1", "", measure.CounterReady); s == nil || len(s.Samples) != 4 || m.begun.Load() != 2 || time.Since(begin) > 0 {
			t.Errorf("%+v, begun %d times, waited %v", s, m.begun.Load(), time.Since(begin))
		}
		if said := values(t, lacks); !strings.Contains(said, "the connection ended") {
			t.Error(said)
		}
	})
}

// stuck is a host whose counters are read twice, and then hang.
type stuck struct{ moving }

func (s *stuck) Run(ctx context.Context, name string, args ...string) ([]byte, error) {
	if name != "/bin/sh" || s.rounds.Load() < 2 {
		return s.moving.Run(ctx, name, args...)
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// A hanging command delays no caller beyond its context, and costs no
// counters that exist.
func TestWatchHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := New(&stuck{moving{sample: load(t, "esxi-8")}}, "esx1").Watch(t.Context(), []string{"1"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(12 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		begin := time.Now()
		all, _ := w.End(ctx)
		if s := seriesOf(all, "1", "67108878", measure.CounterTxPps); s == nil || time.Since(begin) > 3*time.Second {
			t.Errorf("%d series after %v", len(all), time.Since(begin))
		}
	})
}

// However long a watch lasts, its memory is limited, and no count is lost.
func TestKeeper(t *testing.T) {
	late := newKeeper()
	for n := range 10 {
		late.add(measure.Series{Of: "1"}, every+time.Duration(n)*time.Millisecond, measure.Reading{EndedAt: time.Unix(int64(n), 0)})
	}
	if s := late.all(); len(s) != 1 || s[0].EveryNs != every.Nanoseconds() {
		t.Errorf("a few milliseconds late: %+v", s)
	}
	k, at := newKeeper(), time.Unix(1_000_000, 0)
	drops := measure.Series{Of: "1", Instance: "p", Counter: measure.CounterRxDropped}
	for range 10_000 {
		at = at.Add(every)
		x := measure.Reading{EndedAt: at, Value: 2}
		k.add(drops, every, x)
		for n := range 64 {
			k.add(measure.Series{Of: hostID, Instance: fmt.Sprint(n), Counter: measure.CounterUsage}, every, x)
		}
		for n := range 30 {
			k.add(measure.Series{Of: "1", Instance: fmt.Sprint(n), Counter: measure.CounterReady}, every, x)
		}
	}
	samples := map[bool]int{}
	for _, s := range k.all() {
		ofCPU, sum := s.Counter == measure.CounterUsage, 0.0
		samples[ofCPU] += len(s.Samples)
		for i, x := range s.Samples {
			sum += x.Value
			if s.Counter != measure.CounterRxDropped && x.Value != 2 || i > 0 && x.EndedAt.Sub(s.Samples[i-1].EndedAt) != time.Duration(s.EveryNs) {
				t.Fatalf("%s: sample %d of %d ns: %+v", s.Counter, i, s.EveryNs, x)
			}
		}
		if s.Counter == measure.CounterRxDropped && sum < 2*(10_000-4) {
			t.Errorf("%v of 20000 drops", sum)
		}
		if want := map[bool]time.Duration{false: 4 * every, true: 32 * every}[ofCPU]; time.Duration(s.EveryNs) != want {
			t.Errorf("%s: a sample covers %v, not %v", s.Counter, time.Duration(s.EveryNs), want)
		}
	}
	if samples[false] > mostSamples || samples[true] > mostOfCPUs {
		t.Errorf("samples %v", samples)
	}
}
