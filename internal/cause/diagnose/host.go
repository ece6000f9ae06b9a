package diagnose

import (
	"thru/internal/measure"
)

// Route of the end towards the other; nil where it is not known.
func (e *End) Route() *measure.Route {
	if e.Seen == nil {
		return nil
	}
	return e.Seen.Route
}
