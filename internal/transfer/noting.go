package transfer

import "io"

// Noting is a writer that counts, and remembers whether it was it that failed:
// libraries wrap the errors of both ends alike.
type Noting struct {
	W   io.Writer
	N   int64 // bytes that were taken
	Err error // of the last Write
}

// Write passes on.
func (n *Noting) Write(b []byte) (int, error) {
	k, err := n.W.Write(b)
	n.N, n.Err = n.N+int64(k), err
	return k, err
}
