package diagnose

import (
	"strings"
)

// PacesItself tells the congestion controls whose segments leave at a rate of their own.
func PacesItself(control string) bool { return strings.HasPrefix(control, "bbr") }
