package diagnose

// optionRules are the causes of options of TCP that are off.
func optionRules() []Rule {
	return []Rule{}
}
