package diagnose

// timeRules are the causes of what changes in time.
func timeRules() []Rule {
	return []Rule{}
}
