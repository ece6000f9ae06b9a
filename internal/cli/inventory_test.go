package cli

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"thru/internal/fault"
	"thru/internal/hypervisor"
	"thru/internal/measure"
)

// guestList is a source of guests and hosts.
type guestList struct{ v measure.Inventory }

func (guestList) Name() string { return "fake" }
func (guestList) Close() error { return nil }
func (l guestList) Inventory(_ context.Context, want func(*measure.Guest) bool, hosts func(*measure.GuestHost) bool) (measure.Inventory, error) {
	v := l.v
	hypervisor.Choose(&v, want, hosts)
	return v, nil
}
func (guestList) Watch(context.Context, []string) (hypervisor.Watch, error) { return nil, nil }

// TestChosenGuests: patterns choose by name and id, without regard to case, and the totals are those of the
// source.
func TestChosenGuests(t *testing.T) {
	var v measure.Inventory
	for i := range 6 {
		v.Guests = append(v.Guests, measure.Guest{ID: fmt.Sprintf("vm-%d", i), Name: fmt.Sprintf("Web%d", i), Host: fmt.Sprintf("host-%d", i%2)})
	}
	v.Hosts = []measure.GuestHost{{ID: "host-0", Name: "esx0"}, {ID: "host-1", Name: "esx1"}}
	for _, tt := range []struct {
		vms, hosts     []string
		guests, on     int
		guestsTotal    bool
		wrong, because string
	}{
		{nil, nil, 6, 2, false, "", ""},
		{[]string{"web?"}, nil, 6, 2, true, "", ""},
		{[]string{"WEB0", "vm-2"}, nil, 2, 1, true, "", ""},
		{nil, []string{"esx1"}, 3, 1, true, "", ""},
		{nil, []string{"host-0"}, 3, 1, true, "", ""},
		{[]string{"web[01]"}, []string{"esx1"}, 1, 1, true, "", ""},
		{[]string{"db*"}, nil, 0, 0, true, "has no VM db*", "there are Web0"},
		{[]string{"web9"}, nil, 0, 0, true, "has no VM web9", "did you mean Web"},
		{nil, []string{"esx9"}, 0, 0, true, "has no host esx9", "did you mean esx"},
	} {
		c := &inventoryCmd{VM: tt.vms, Host: tt.hosts}
		got, err := c.read(t.Context(), guestList{v})
		if tt.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), tt.wrong) || !strings.Contains(fault.Hint(err), tt.because) {
				t.Errorf("%q %q: %v (%s)", tt.vms, tt.hosts, err, fault.Hint(err))
			}
			continue
		}
		if err != nil || len(got.Guests) != tt.guests || len(got.Hosts) != tt.on || tt.guestsTotal != (got.GuestsTotal != nil) || tt.guestsTotal && *got.GuestsTotal != 6 {
			t.Errorf("%q %q: %d guests on %d hosts of %v: %v", tt.vms, tt.hosts, len(got.Guests), len(got.Hosts), got.GuestsTotal, err)
		}
	}
}
