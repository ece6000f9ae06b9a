package measure

import "testing"

func TestUUID(t *testing.T) {
	for text, want := range map[string]string{
		"42012345-6789-ABCD-EF01-23456789ABCD":                             "42012345-6789-abcd-ef01-23456789abcd",
		"{42012345-6789-abcd-ef01-23456789abcd}\n":                         "42012345-6789-abcd-ef01-23456789abcd",
		"42 01 23 45 67 89 ab cd-ef 01 23 45 67 89 ab cd":                  "42012345-6789-abcd-ef01-23456789abcd", // uuid.bios of a .vmx
		"0x42 0x1 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x1": "42010000-0000-0000-0000-000000000001", // esxcli
		"00000000-0000-0000-0000-000000000000":                             "",
		"ffffffff-ffff-ffff-ffff-ffffffffffff":                             "",
		"03000200-0400-0500-0006-000700080009":                             "",
		"00000000-0000-0000-0000-00000SECRET2":                             "",
		"Not Settable":                                                     "",
		"":                                                                 "",
		"420123456789abcdef0123456789abcd":                                 "42012345-6789-abcd-ef01-23456789abcd",
		"420123456789abcdef0123456789abcd00":                               "",
	} {
		if got := UUID(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestSwapUUID(t *testing.T) {
	const a, b = "42012345-6789-abcd-ef01-23456789abcd", "45230142-8967-cdab-ef01-23456789abcd"
	if got := SwapUUID(a); got != b {
		t.Errorf("%s, want %s", got, b)
	}
	if got := SwapUUID(b); got != a {
		t.Errorf("%s back, want %s", got, a)
	}
	if got := SwapUUID("none"); got != "" {
		t.Errorf("of no UUID: %s", got)
	}
}

func FuzzUUID(f *testing.F) {
	for _, s := range []string{"42012345-6789-abcd-ef01-23456789abcd", "0x42 0x1", "{}", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u := UUID(s)
		if u != "" && (UUID(u) != u || SwapUUID(SwapUUID(u)) != u && UUID(SwapUUID(u)) != "") {
			t.Errorf("%q: %q, swapped %q", s, u, SwapUUID(u))
		}
	})
}
