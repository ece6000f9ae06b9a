package measure

import (
	"encoding/hex"
	"strings"
)

// UUID parses the UUID of a machine as firmware, system or hypervisor write it: 16 bytes in hexadecimal, with hyphens, spaces, braces or 0x between them. It
// returns the usual form, lower case with hyphens. It returns "" for other text, and for a UUID that makers leave in every machine.
func UUID(text string) string {
	text = strings.ToLower(strings.Trim(strings.TrimSpace(text), "{}"))
	var digits strings.Builder
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '-' || r == ':' }) {
		word, short := strings.CutPrefix(word, "0x")
		if short && len(word) == 1 {
			digits.WriteByte('0')
		}
		digits.WriteString(word)
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil || len(b) != 16 || blankUUID(b) {
		return ""
	}
	return formatUUID(b)
}

// SwapUUID returns the UUID with its first three fields in the other byte order. SMBIOS before 2.6 did not specify the order, so two programs may read the
// same firmware differently (DSP0134, section 7.2.1). It returns "" where the text is no UUID.
func SwapUUID(text string) string {
	u := UUID(text)
	if u == "" {
		return ""
	}
	b, err := hex.DecodeString(strings.ReplaceAll(u, "-", ""))
	if err != nil {
		return ""
	}
	return formatUUID([]byte{b[3], b[2], b[1], b[0], b[5], b[4], b[7], b[6], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]})
}

// blankUUID reports whether a UUID identifies nothing: all bytes are equal, or the maker of the board set none.
func blankUUID(b []byte) bool {
	const unset = "03000200040005000006000700080009"
	return hex.EncodeToString(b) == unset || strings.Count(string(b), string(b[:1])) == len(b)
}

func formatUUID(b []byte) string {
	h := hex.EncodeToString(b)
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

// SameUUID compares two UUIDs, in either byte order. Text that is no UUID equals nothing.
func SameUUID(a, b string) bool {
	a, b = UUID(a), UUID(b)
	return a != "" && (a == b || SwapUUID(a) == b)
}
