package diagnose

// measurementRules are the causes of contradictions between the ends, and figures that cannot be.
func measurementRules() []Rule {
	return []Rule{}
}
