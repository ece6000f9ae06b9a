package bus

import "time"

// EndSilent ends clients that were silent for so long, as watch does.
func (v *Service) EndSilent(after time.Duration) { v.endSilent(after) }
