package clients

import (
	"strings"
	"testing"

	"thru/internal/fault"
	"thru/internal/transfer"
)

func TestOf(t *testing.T) {
	for _, p := range All() {
		got, err := Of(p.Name)
		if err != nil || got.Name != p.Name || got.Port == "" || p.Name != Thru && got.New(transfer.Config{}) == nil {
			t.Errorf("%s: %+v, %v", p.Name, got, err)
		}
	}
	_, err := Of("ftsp")
	if fault.Code(err) != fault.Usage || !strings.Contains(fault.Hint(err), "://") {
		t.Errorf("%v, hint %q", err, fault.Hint(err))
	}
}
