package sock

import (
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
)

// TestParseSYN reads segments as the kernel keeps them: IP and TCP headers.
func TestParseSYN(t *testing.T) {
	const (
		four = "4500003c1c4640004006b1e6 0a000001 0a000002"
		six  = "6000000000280640 fd000000000000000000000000000001 fd000000000000000000000000000002"
		// Ports, sequence numbers; then length and flags, window, checksum, urgent pointer.
		tcp  = "c35014510000000100000000"
		full = "a002 faf0 0000 0000 020405b4 0402 080a 00000001 00000000 01 030307"
	)
	for _, tt := range []struct{ name, in, want string }{
		{"IPv4, all options", four + tcp + full,
			`{"mss_bytes":1460,"window_scale":7,"has_window_scale":true,"sack":true,"timestamps":true,"ecn":false}`},
		{"IPv6, all options", six + tcp + full,
			`{"mss_bytes":1460,"window_scale":7,"has_window_scale":true,"sack":true,"timestamps":true,"ecn":false}`},
		{"stripped: padded with no-operations", four + tcp + "a002 faf0 0000 0000 02040550 0101 01010101010101010101 01 010101",
			`{"mss_bytes":1360,"has_window_scale":false,"sack":false,"timestamps":false,"ecn":false}`},
		{"ECN, MSS alone", four + tcp + "60c2 faf0 0000 0000 020405b4",
			`{"mss_bytes":1460,"has_window_scale":false,"sack":false,"timestamps":false,"ecn":true}`},
		{"no options, half of ECN", four + tcp + "5042 faf0 0000 0000",
			`{"has_window_scale":false,"sack":false,"timestamps":false,"ecn":false}`},
		{"an option that is cut", four + tcp + "6002 faf0 0000 0000 01 01 02 04",
			`{"has_window_scale":false,"sack":false,"timestamps":false,"ecn":false}`},
		{"an option of no length", four + tcp + "6002 faf0 0000 0000 02000000",
			`{"has_window_scale":false,"sack":false,"timestamps":false,"ecn":false}`},
		{"IPv4 with options", "4600003c1c4640004006b1e60a0000010a00000201010101" + tcp + "5002 faf0 0000 0000",
			`{"has_window_scale":false,"sack":false,"timestamps":false,"ecn":false}`},
		{"nothing", "", ""},
		{"UDP", strings.Replace(four, "4006", "4011", 1) + tcp + full, ""},
		{"no SYN", four + tcp + "5010 faf0 0000 0000", ""},
		{"cut", four + tcp, ""},
		{"a header longer than the segment", four + tcp + "f002 faf0 0000 0000", ""},
		{"another version", "5500" + four[4:] + tcp + full, ""},
	} {
		b, err := hex.DecodeString(strings.ReplaceAll(tt.in, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if s, err := ParseSYN(b); err == nil {
			j, _ := json.Marshal(s)
			got = string(j)
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func FuzzParseSYN(f *testing.F) {
	f.Add([]byte("E\x00\x00<\x1cF@\x00@\x06\xb1\xe6\n\x00\x00\x01\n\x00\x00\x02\xc3P\x14Q\x00\x00\x00\x01\x00\x00\x00\x00\x60\x02\xfa\xf0\x00\x00\x00\x00\x02\x04\x05\xb4"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseSYN(b)
		if err == nil && (s.SACK == nil || s.HasScale == nil || *s.HasScale != (s.WindowScale != nil)) {
			t.Errorf("%x: %+v", b, s)
		}
	})
}
