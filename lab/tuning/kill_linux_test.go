package tuning

import (
	"maps"
	"slices"
	"testing"
	"time"
)

// TestKills: the same seed gives the same moments, in whatever parts they are
// asked for, and each of the four is killed as often.
func TestKills(t *testing.T) {
	whole := Kills(1, 0, 40, 8*time.Second, 20)
	parts := append(Kills(1, 0, 15, 8*time.Second, 20), Kills(1, 15, 25, 8*time.Second, 20)...)
	who := map[string]int{}
	for i, k := range whole {
		if k.String() != parts[i].String() || !slices.Equal(k.Args, parts[i].Args) {
			t.Errorf("kill %d: %s and %s", i, k, parts[i])
		}
		if (k.Write > 0) == (k.After > 0) {
			t.Errorf("kill %d is at two moments or none: %+v", i, k)
		}
		who[k.Who]++
	}
	if want := map[string]int{Controller: 10, Agent: 10, Both: 10, PowerCut: 10}; !maps.Equal(who, want) {
		t.Errorf("killed %v", who)
	}
}
