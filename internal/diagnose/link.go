package diagnose

// linkRules are the causes of the link itself.
func linkRules() []Rule {
	return []Rule{}
}
