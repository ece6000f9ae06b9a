package diagnose

// mtuRules are the causes of sizes that do not pass.
func mtuRules() []Rule {
	return []Rule{}
}
