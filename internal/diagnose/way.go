package diagnose

// wayRules are the causes of boxes and ways between the ends.
func wayRules() []Rule {
	return []Rule{}
}
