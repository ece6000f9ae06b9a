package measure

// States of a Gate.
const (
	GatePass       = "pass"
	GateWarn       = "warn"        // a measurement is valid, but may not reach what the hardware or the path could do
	GateFail       = "fail"        // a measurement would be invalid
	GateNotChecked = "not_checked" // a fact is missing; Fact names it
)

// Gate is one condition that must hold before a measurement is valid (C-33).
type Gate struct {
	ID        string   `json:"id"`                  // stable, kebab-case: "mtu-path"
	EndPoint  string   `json:"end_point,omitempty"` // end point of the fact; empty: of the path
	Interface string   `json:"interface,omitempty"` // interface that it concerns
	From      string   `json:"from,omitempty"`      // for the path: the direction
	To        string   `json:"to,omitempty"`        // for the path: the direction
	Status    string   `json:"status"`              // "pass", "warn", "fail" or "not_checked"
	Fact      string   `json:"fact"`                // what was found, with its figures; or why it was not checked
	Why       string   `json:"why"`                 // why it matters, with the figure
	Advice    string   `json:"advice,omitempty"`    // what to do in words, where no command does it, or to read before the commands
	FixAt     string   `json:"remedy_at,omitempty"` // end point where to run the commands
	Fix       []string `json:"remedy,omitempty"`    // commands for this platform, in order; only commands
	Risk      string   `json:"risk,omitempty"`      // of the fix
	Cause     string   `json:"cause,omitempty"`     // id of the cause of a slow result that it would be (causes.md)
	Off       []string `json:"off,omitempty"`       // offloads that are off, by their knobs: "tso"
	Fixed     bool     `json:"fixed,omitempty"`     // the driver supports none of these
	Checklist []string `json:"checklist,omitempty"` // checklist lines that it answers: "S-03"
}
