package host

import (
	"slices"
	"strings"
	"testing"

	"thru/internal/measure"
)

const tcpTable = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1001 1 0000000000000000 100 0 0 10 0
   1: 0200000A:C350 0100000A:0369 01 00000000:00000000 02:00000000 00000000     0        0 1002 2 0000000000000000 20 4 30 10 -1
   2: 0200000A:C351 0100000A:0369 01 00000000:00000000 02:00000000 00000000     0        0 1003 2 0000000000000000 20 4 30 10 -1
   3: 0200000A:C352 0100000A:0369 08 00000000:00000000 02:00000000 00000000     0        0 1002 2
`

const tcp6Table = `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0000000000000000FFFF00000200000A:C360 0000000000000000FFFF00000100000A:0369 01 00000000:00000000 00:00000000 00000000     0        0 1004 1
   1: 000000FD000000000000000002000000:C361 000000FD000000000000000001000000:0369 01 00000000:00000000 00:00000000 00000000     0        0 1002 1
`

// TestChildConnections finds the connections of a program's processes.
func TestChildConnections(t *testing.T) {
	h := Host{fs: files(t, map[string]string{
		"proc/10/task/10/children": "20 ", "proc/10/task/11/children": "", "proc/20/task/20/children": "30", "proc/40/task/40/children": "",
		"proc/20/fd/3": "-> socket:[1002]", "proc/30/fd/4": "-> socket:[1004]", "proc/40/fd/3": "-> socket:[1003]",
		"proc/thread-self/net/tcp": strings.TrimSuffix(tcpTable, "\n"), "proc/thread-self/net/tcp6": strings.TrimSuffix(tcp6Table, "\n"),
	})}
	want := []measure.Addresses{
		{Local: "10.0.0.2:50000", Peer: "10.0.0.1:873"}, {Local: "10.0.0.2:50016", Peer: "10.0.0.1:873"}, {Local: "[fd00::2]:50017", Peer: "[fd00::1]:873"},
	}
	if !littleEndianHost() {
		t.Skip("the tables are those of a little-endian machine")
	}
	known := map[uint32]bool{}
	if got, err := h.ChildConnections(10, known); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := h.ChildConnections(10, known); err != nil || len(got) != 0 {
		t.Errorf("connections that are known: %v, %v", got, err)
	}
	delete(known, 1004)
	if got, err := h.ChildConnections(10, known); err != nil || !slices.Equal(got, want[1:2]) {
		t.Errorf("after another process has connected: %v, %v", got, err)
	}
	for _, pid := range []int{40, 99} {
		if got, err := h.ChildConnections(pid, known); err != nil || len(got) != 0 {
			t.Errorf("%d: %v, %v", pid, got, err)
		}
	}
}

func littleEndianHost() bool {
	a, _ := hexAddr("0100007F:0001")
	return a.Addr().String() == "127.0.0.1"
}

func FuzzConnectionsOf(f *testing.F) {
	f.Add([]byte(tcpTable))
	f.Add([]byte(tcp6Table))
	read := connectionsOf(map[uint32]bool{1002: true, 1004: true}, map[uint32]bool{})
	f.Fuzz(func(t *testing.T, b []byte) {
		all, _ := read(string(b))
		for _, c := range all {
			if c.Local == "" || c.Peer == "" || strings.Contains(c.Local+c.Peer, "invalid") {
				t.Errorf("%q: %+v", b, c)
			}
		}
	})
}
