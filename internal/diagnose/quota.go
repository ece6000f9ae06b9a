package diagnose

// quotaRules are the causes of what the host gives to others.
func quotaRules() []Rule {
	return []Rule{}
}
