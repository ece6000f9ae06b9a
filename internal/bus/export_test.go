package bus

import "time"

// EndSilent ends clients that were silent for that time, as watch does.
func (v *Service) EndSilent(after time.Duration) { v.endSilent(after) }

// EndSilent ends clients of a fleet's agent that were silent for that time, as watch does.
func (p *Post) EndSilent(after time.Duration) { p.endSilent(after) }

// Parsers of untrusted bytes in a fleet.
func ParsePresence(b []byte) (Presence, error) { return parsePresence(b) }

// HostID returns the public nkey by which a fleet knows the agent of this state.
func (s *State) HostID() (string, error) {
	id, err := s.identity()
	return id.pub, err
}
