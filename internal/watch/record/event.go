package record

import "time"

// EventKind is what an event is about.
type EventKind string

// The kinds of events.
const (
	StateChanged EventKind = "state"
	OutageBegan  EventKind = "outage-began"
	OutageEnded  EventKind = "outage-ended"
	Suspected    EventKind = "suspected" // an alarm is being prepared; explain runs once for it
	AlarmRaised  EventKind = "alarm-raised"
	AlarmUpdated EventKind = "alarm-updated"
	AlarmOver    EventKind = "alarm-over"
	DayOver      EventKind = "day-over" // the summary of a pair's day is final
)

// Event is something that a watch found out. It has what its kind needs.
type Event struct {
	Kind   EventKind `json:"event"`
	At     time.Time `json:"at"`
	Pair   *Pair     `json:"pair,omitempty"`
	State  State     `json:"state,omitempty"`
	Reason Reason    `json:"reason,omitempty"`
	Before State     `json:"before,omitempty"`
	Outage *Outage   `json:"outage,omitempty"`
	Alarm  *Alarm    `json:"alarm,omitempty"`
	Day    *Summary  `json:"day,omitempty"`
}
