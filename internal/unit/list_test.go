package unit

import (
	"slices"
	"testing"
)

func TestParseList(t *testing.T) {
	for in, want := range map[string][]int{
		"0": {0}, "0-3,8": {0, 1, 2, 3, 8}, " 2,4 \n": {2, 4}, "9": {9},
		"": nil, "10": nil, "3-1": nil, "1,1": nil, "1,0": nil, "a": nil, "-1": nil, "0-": nil, "0,,1": nil, "99999999999999999999": nil,
	} {
		got, err := ParseList(in, 9)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: %v, %v, want %v", in, got, err, want)
		}
		if want != nil && List(got) != List(want) {
			t.Errorf("%q is written %q", in, List(got))
		}
	}
}
