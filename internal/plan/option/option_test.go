package option

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
)

// TestTable checks that each option and each flag exists once, and has what a front end needs to show it.
func TestTable(t *testing.T) {
	ids, flags, theirs := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, o := range Table() {
		if ids[o.ID] || o.Set == nil || len(o.Flags)+len(o.IPerf) == 0 && o.Key == NoKey {
			t.Errorf("%s: there twice, without a setter, or without a face", o.ID)
		}
		ids[o.ID] = true
		for list, seen := range map[string]map[string]bool{"thru": flags, "iperf3": theirs} {
			of := o.Flags
			if list == "iperf3" {
				of = o.IPerf
			}
			for _, f := range of {
				for _, name := range strings.Fields(f.Names) {
					if seen[name] || !strings.HasPrefix(name, "-") {
						t.Errorf("%s: %s is there twice, or no flag", list, name)
					}
					seen[name] = true
				}
				if (f.Value == "") != (f.Place != "") || f.Value != "" && o.Kind != Truth && o.Set(&plan.Request{}, f.Value) != nil {
					t.Errorf("%s: %s stands for %q and shows %q", list, f.Names, f.Value, f.Place)
				}
			}
		}
	}
}

func TestSet(t *testing.T) {
	for given, want := range map[string]func(*plan.Request){
		"protocol udp":       func(r *plan.Request) { r.Protocol = measure.UDP },
		"kind bulk":          func(*plan.Request) {},
		"kind rr":            func(r *plan.Request) { r.Traffic = measure.RR },
		"direction bidir":    func(r *plan.Request) { r.Bidir = true },
		"direction forward":  func(r *plan.Request) { r.OneWay = true },
		"direction both":     func(*plan.Request) {},
		"streams 128":        func(r *plan.Request) { r.Streams = 128 },
		"window 1M/256K":     func(r *plan.Request) { r.Window = measure.Pair{Send: 1 << 20, Recv: 256 << 10} },
		"window default":     func(*plan.Request) {},
		"time 0.5":           func(r *plan.Request) { r.Duration = 500 * time.Millisecond },
		"ramp 0":             func(r *plan.Request) { r.RampSet = true },
		"bitrate 0":          func(r *plan.Request) { r.RateSet = true },
		"bytes 1K":           func(r *plan.Request) { r.Amount = 1024 },
		"rate 0.5":           func(r *plan.Request) { r.PerSecond = 0.5 },
		"io lean":            func(r *plan.Request) { r.IO = measure.IOLean },
		"io copy":            func(r *plan.Request) { r.IO, r.IOForced = measure.IOCopy, true },
		"congestion default": func(*plan.Request) {},
		"dscp af41":          func(r *plan.Request) { r.DSCP = 34 },
		"ip 6":               func(r *plan.Request) { r.Family = 6 },
		"affinity 3":         func(r *plan.Request) { r.LocalCPU, r.PeerCPU = new(3), new(3) },
		"affinity 3,5":       func(r *plan.Request) { r.LocalCPU, r.PeerCPU = new(3), new(5) },
		"affinity off":       func(r *plan.Request) { r.Unplaced = true },
		"latency true":       func(r *plan.Request) { r.Latency = true },
		"precision 2.5%":     func(r *plan.Request) { r.PrecisionPct = 2.5 },
	} {
		id, value, _ := strings.Cut(given, " ")
		var got, wanted plan.Request
		want(&wanted)
		if err := Find(id).Set(&got, value); err != nil || shown(got) != shown(wanted) {
			t.Errorf("%s: %v, %+v", given, err, got)
		}
	}
}

// shown returns a request as text, with the CPUs that it names.
func shown(r plan.Request) string {
	text := ""
	for _, cpu := range []*int{r.LocalCPU, r.PeerCPU} {
		if cpu != nil {
			text += fmt.Sprint(*cpu, " ")
		}
	}
	r.LocalCPU, r.PeerCPU = nil, nil
	return text + fmt.Sprintf("%+v", r)
}

func TestRefuses(t *testing.T) {
	for _, given := range strings.Split("protocol sctp,direction up,streams 0,streams 129,streams x,window 0,window 1T,length 65M,time 0,time 48h,time soon,ramp -1,ramp 1h,"+
		"bytes 0,blocks 1.5,rate 0,rate NaN,mss 87,mss 32768,dscp 64,ip 5,io magic,affinity x,affinity 1024,congestion a b,latency on,precision 80%,precision 0,repeat 1001,client_port 0,cpus 1025,interval 2h,capture_packets 0", ",") {
		id, value, _ := strings.Cut(given, " ")
		o := Find(id)
		if err := o.Set(&plan.Request{}, value); err == nil || !strings.HasPrefix(o.Hint("--x", value), "--x takes ") && !strings.Contains(o.Hint("--x", value), "did you mean") {
			t.Errorf("%s: %v, %q", given, err, o.Hint("--x", value))
		}
	}
}

// TestClash: two flags of one option, and two options of a choice, exclude each other; each front end words
// that itself.
func TestClash(t *testing.T) {
	for _, c := range []struct {
		given            []Given
		key, flag, iperf string
	}{
		{[]Given{{"time", ""}, {"bytes", ""}}, "time and bytes contradict each other (take one of bytes, blocks and time)", "-t and -n contradict each other (take one of -n, -k and -t)", "-t and -n contradict each other (take one of -n, -k and -t)"},
		{[]Given{{"io", "sendfile"}, {"io", ""}}, "io: sendfile and io contradict each other (take one of io: sendfile, io: lean and io)", "-Z and --io contradict each other (take one of -Z, --lean and --io)", "-Z and --io contradict each other (take one of -Z, --lean and --io)"},
		{[]Given{{"ip", "4"}, {"ip", "6"}}, "ip: 4 and ip: 6 contradict each other (take one of ip: 4 and ip: 6)", "-4 and -6 contradict each other (take one of -4 and -6)", "-4 and -6 contradict each other (take one of -4 and -6)"},
		{given: []Given{{"time", ""}, {"streams", ""}, {"time", ""}, {"ip", "4"}}},
	} {
		err := Clash(c.given)
		for want, as := range map[string]func(id, value string) string{c.key: AsKey, c.flag: AsFlag, c.iperf: AsIPerf} {
			var refused *plan.Refused
			if said := Spelled(err, as); want == "" && err != nil || want != "" && (!errors.As(err, &refused) || fmt.Sprintf("%v (%s)", said, fault.Hint(said)) != want) {
				t.Errorf("%v: %v (%s)", c.given, said, fault.Hint(said))
			}
		}
	}
}

func TestSpelled(t *testing.T) {
	err := plan.Refuse("take {streams=4}, or {cpus}", "{latency}, {device} and {io=gso} do not go with {protocol=udp}")
	for want, as := range map[string]func(id, value string) string{
		"latency, device and io: gso do not go with protocol: udp (take streams: 4, or cpus)": AsKey,
		"--latency, --bind-dev and --io gso do not go with -u (take -P 4, or cpus)":           AsFlag,
	} {
		if said := Spelled(err, as); fmt.Sprintf("%v (%s)", said, fault.Hint(said)) != want || fault.Code(said) != fault.Usage {
			t.Errorf("%v (%s), want %s", said, fault.Hint(said), want)
		}
	}
	if other := errors.New("another"); Spelled(other, AsFlag) != other {
		t.Error("another error was changed")
	}
}
