package report

import "strings"

// Plain is the text of an error without the names of the packages that have passed
// it on: "control: beginning at b: tune: it is taken" is "control: beginning at b:
// it is taken". That by which it begins stays.
func Plain(text string) string {
	for _, part := range []string{"agent", "bus", "control", "tune"} {
		for strings.Contains(text, ": "+part+": ") {
			text = strings.ReplaceAll(text, ": "+part+": ", ": ")
		}
	}
	return text
}

// reasonText is what a part of the program says as a reason, without its name, ready to print.
func reasonText(text string) string { return strings.TrimPrefix(Plain(": "+clean(text)), ": ") }
