package fault

import "testing"

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"bus: dialing b: sock: connecting: refused":        "dialing b: connecting: refused",
		"bus: this is no join string":                      "this is no join string",
		"-w abc: unit: no size":                            "-w abc: no size",
		"control: beginning at b: agent: tune: it is held": "beginning at b: it is held",
		"disk: a block of 1 bytes is too small":            "a block of 1 bytes is too small",
		Named("web") + ": connection refused":              `"web": connection refused`, // an end point of that name
		"control: " + Named("db") + ": refused":            "db: refused",
		"store: importing: it has no end":                  "importing: it has no end",
		"plan.yaml:3:1: planfile: no such key":             "plan.yaml:3:1: no such key",
		"the bus: b tunes: it is busy":                     "the bus: b tunes: it is busy",
		"":                                                 "",
	} {
		if got := Plain(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
