package measure

// States of a Gate.
const (
	GatePass       = "pass"
	GateWarn       = "warn"        // a measurement says something, but not all that the hardware or the path could do
	GateFail       = "fail"        // a measurement would not count
	GateNotChecked = "not_checked" // a fact is missing; Fact says which
)

// Gate is one condition that must hold before a measurement counts (C-33).
type Gate struct {
	ID        string   `json:"id"`                  // stable, kebab-case: "mtu-path"
	EndPoint  string   `json:"end_point,omitempty"` // whose fact it is; empty: of the path
	Interface string   `json:"interface,omitempty"` // where it is about one
	From      string   `json:"from,omitempty"`      // of the path: the direction
	To        string   `json:"to,omitempty"`        // of the path: the direction
	Status    string   `json:"status"`              // "pass", "warn", "fail" or "not_checked"
	Fact      string   `json:"fact"`                // what was found, with its figures; where it was not checked: why
	Why       string   `json:"why"`                 // why it matters, with the figure
	Advice    string   `json:"advice,omitempty"`    // what to do in words, where no command does it, or before one
	FixAt     string   `json:"remedy_at,omitempty"` // end point where the commands are to be run
	Fix       []string `json:"remedy,omitempty"`    // commands for this platform, in order; nothing else
	Risk      string   `json:"risk,omitempty"`      // of the remedy
	Cause     string   `json:"cause,omitempty"`     // id of the cause that it would be of a slow result (causes.md)
	Off       []string `json:"off,omitempty"`       // offloads that are off, by their knobs: "tso"
	Fixed     bool     `json:"fixed,omitempty"`     // the driver has none of these
	Checklist []string `json:"checklist,omitempty"` // lines of the checklist that it answers: "S-03"
}

// Worst is the worst status of gates; "" where there is none. What was not
// checked is no better and no worse than a pass.
func Worst(gates []Gate) string {
	worst := ""
	order := []string{"", GateNotChecked, GatePass, GateWarn, GateFail}
	rank := func(s string) int {
		for i, o := range order {
			if o == s {
				return i
			}
		}
		return 0
	}
	for _, g := range gates {
		if rank(g.Status) > rank(worst) {
			worst = g.Status
		}
	}
	return worst
}
