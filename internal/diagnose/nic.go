package diagnose

// nicRules are the causes of interfaces, their queues and drivers.
func nicRules() []Rule {
	return []Rule{}
}
