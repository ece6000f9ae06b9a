package runner

import "testing"

// TestMemoryIsBounded limits the memory of all clients together.
func TestMemoryIsBounded(t *testing.T) {
	for _, clients := range []int{1, 2, 4, 7, 64} {
		each := len(Memory(clients).(*memory).kept)
		if each > memoryBytes || each*clients > memoryTotal || each < 4<<20 {
			t.Errorf("%d clients hold %d bytes each", clients, each)
		}
	}
}
