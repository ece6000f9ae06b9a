package plan

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseDSCP reads a number (also 0x2e) or a name of RFC 2474, 2597, 3246, 8622.
func ParseDSCP(s string) (int, error) {
	s = strings.ToLower(s)
	var class, drop int
	switch {
	case s == "ef":
		return 46, nil
	case s == "va": // RFC 5865
		return 44, nil
	case s == "le":
		return 1, nil
	case s == "lowdelay": // bits of the old type-of-service byte, with iperf's names
		return 4, nil
	case s == "throughput":
		return 2, nil
	case s == "reliability":
		return 1, nil
	case s == "default" || s == "be":
		return 0, nil
	case len(s) == 3 && s[:2] == "cs" && s[2] >= '0' && s[2] <= '7':
		return int(s[2]-'0') * 8, nil
	case len(s) == 4 && s[:2] == "af":
		class, drop = int(s[2]-'0'), int(s[3]-'0')
		if class >= 1 && class <= 4 && drop >= 1 && drop <= 3 {
			return class*8 + drop*2, nil
		}
	}
	n, err := strconv.ParseInt(s, 0, 16)
	if err != nil || n < 0 || n > 63 {
		return 0, fmt.Errorf("%q is not a code point", s)
	}
	return int(n), nil
}
