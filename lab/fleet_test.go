package lab

import (
	"testing"
	"time"
)

func TestFleetIsASwitch(t *testing.T) {
	Require(t, Program("ping"))
	f := NewFleet(t, FleetOptions{Rates: []int64{1e9, 1e9, 0}, Control: true})
	stop := f.Watch(10 * time.Millisecond)
	before := f.Switch.Counters(f.Port(1))
	f.Hosts[0].Must("ping", "-c", "2", "-i", "0.1", "-s", "1000", f.Data(1).String())
	f.Hosts[2].Must("ping", "-c", "1", f.Control().String())
	if _, err := f.Controller.Output("ping", "-c", "1", "-W", "1", f.Data(0).String()); err == nil {
		t.Error("the controller reaches the network of the data")
	}
	got := f.Switch.Counters(f.Port(1)).Sub(before)
	if want := uint64(2 * 1042); got.TxBytes < want || got.RxBytes < want || got.TxBytes > want+500 {
		t.Errorf("the port to the second host has counted %+v, want %d bytes each way", got, want)
	}
	readings := stop()
	if len(readings) != 3 || len(readings[f.Port(2)]) < 2 {
		t.Errorf("%d ports were watched, %d times", len(readings), len(readings[f.Port(2)]))
	}
}

func TestPayload(t *testing.T) {
	// 1000 segments of 1448 bytes and 500 acknowledgements; and the same in 50 counted packets.
	if got := Payload(1000*1514+500*66, 1500); got != 1448000 {
		t.Errorf("single segments: %.0f", got)
	}
	if got := Payload(1448000+50*66, 50); got != 1448000 {
		t.Errorf("large packets: %.0f", got)
	}
}
