package diagnose

// cpuRules are the causes of CPUs that are full.
func cpuRules() []Rule {
	return []Rule{}
}

// threadBar is the share of time on a CPU or waiting for one above which a
// thread had no time to spare, in percent.
const threadBar = 88

// isFull tells whether the end's hot thread, or a CPU of its host by softirq
// work, had no time to spare.
func (e *end) isFull() bool {
	t, ok := e.threads()
	c, known := e.busiest()
	return ok && t.run+t.wait > threadBar || known && c.SoftIRQ > threadBar
}
