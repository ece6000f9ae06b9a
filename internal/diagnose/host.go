package diagnose

// hostRules are the causes of conditions of a host that may cost something.
func hostRules() []Rule {
	return []Rule{}
}
