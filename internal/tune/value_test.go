package tune

import (
	"strings"
	"testing"

	"thru/internal/cause/knob"
)

// forms are all forms of values that need no driver.
func forms() map[string]func(string) (string, error) {
	return map[string]func(string) (string, error){
		"one number": numbers(1), "three numbers": numbers(3), "amount": amounts(1), "word": word, "on or off": onOff, "mask": mask, "cpus": cpus,
		"table": queueTable, "masks": pairsOf(mask), "lists": pairsOf(cpus), "words": pairsOf(word),
	}
}

func TestForms(t *testing.T) {
	for _, c := range []struct{ form, value, want string }{
		{"one number", " 007\n", "7"}, {"one number", "-1", "-1"}, {"one number", "", ""}, {"one number", "1 2", ""}, {"one number", "1e3", ""},
		{"one number", "9223372036854775808", ""},
		{"amount", "007", "7"}, {"amount", "-1", ""}, {"amount", "x", ""},
		{"three numbers", "4096\t131072\t6291456", "4096 131072 6291456"}, {"three numbers", "4096 131072", ""},
		{"word", "fq_codel\n", "fq_codel"}, {"word", "a b", ""}, {"word", "../x", ""}, {"word", "", ""}, {"word", strings.Repeat("a", 33), ""},
		{"on or off", "on", "on"}, {"on or off", "ON", ""},
		{"mask", "00000000,0000000F", "f"}, {"mask", "0", "0"}, {"mask", "00000000,00000000", "0"}, {"mask", "1,0", "1,00000000"},
		{"mask", "ff,00000001,80000000", "ff,00000001,80000000"}, {"mask", "", ""}, {"mask", "g", ""}, {"mask", "1,,2", ""}, {"mask", "123456789", ""},
		{"cpus", "0,1,2,4", "0-2,4"}, {"cpus", "0-3,8,10-11\n", "0-3,8,10-11"}, {"cpus", "3,1", ""}, {"cpus", "", ""}, {"cpus", "0-99999999", ""},
		{"table", "0 1 02 3", "0 1 2 3"}, {"table", "", ""}, {"table", "0 -1", ""}, {"table", "70000", ""},
		{"masks", "rx-0 03  rx-1 0", "rx-0 3 rx-1 0"}, {"masks", "rx-0", ""}, {"masks", "", ""}, {"masks", "rx-0 1 rx-0 2", ""}, {"masks", "rx-0 z", ""},
		{"lists", "24 0,1 25 2-3", "24 0-1 25 2-3"},
	} {
		got, err := forms()[c.form](c.value)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s of %.60q: %q, %v; want %q", c.form, c.value, got, err, c.want)
		}
	}
}

func TestInForce(t *testing.T) {
	for _, c := range []struct {
		knob, asked, found string
		want               bool
	}{
		{knob.TCPRmem, "1 2 3", "1 2 3", true}, {knob.TCPRmem, "1 2", "1 2 3", false},
		{knob.RPS, "rx-1 3", "rx-0 0 rx-1 3", true}, {knob.RPS, "rx-1 3", "rx-0 3 rx-1 0", false}, {knob.RPS, "rx-2 0", "rx-0 0", false},
		{knob.Coalescing, "rx-usecs 50", "adaptive-rx on rx-usecs 50", true}, {knob.Coalescing, "rx-usecs 50", "", false},
		{knob.Governor, "performance", "performance", true}, {knob.Governor, "performance", "cpu0 powersave cpu1 performance", false},
		{knob.Governor, "cpu0 performance cpu1 performance", "performance", true}, {knob.Governor, "cpu0 performance cpu1 powersave", "performance", false},
		{knob.RSSTable, "0 1", "0 1 0 1", false}, {knob.TSO, "on", "on a=on b=off", false},
	} {
		if got := inForce(c.knob, c.asked, c.found); got != c.want {
			t.Errorf("%s: %q asked, %q found: %v", c.knob, c.asked, c.found, got)
		}
	}
}

// The form of a canonical value is the value itself, and a form is at most
// longer by the zeros in a mask.
func FuzzForms(f *testing.F) {
	for _, s := range []string{"4096 131072 6291456", "rx-0 3 rx-1 ff,00000000", "0-3,8", "24 0-1", "off tx-x=on", "0 1 2", "fq", "1,1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, form := range forms() {
			once, err := form(s)
			if err != nil {
				continue
			}
			if twice, err := form(once); err != nil || twice != once || len(once) > 9*len(s)+9 {
				t.Errorf("%s of %q: %q, then %q, %v", name, s, once, twice, err)
			}
		}
	})
}
