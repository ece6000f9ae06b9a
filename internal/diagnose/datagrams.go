package diagnose

// lostDatagrams judges the loss of a test by UDP.
func lostDatagrams(f *flow) *outcome {
	if f.cell.Datagrams == nil {
		return f.receiver.lacks("the count of datagrams")
	}
	return nil
}
