package transfer

import "context"

// FetchEnding ends the name that Fetch writes to until a file is whole.
const FetchEnding = ".fetch"

// Outside is a Session of a program of its own: the bytes of its files do not pass
// through this process. Its Get and Put go by way of a file on this machine, and
// count that; Fetch and Send do not.
type Outside interface {
	Session
	// Fetch writes a file of the server to a local path, which it replaces when all has
	// come to the name with FetchEnding, which is left by one that is killed; or to
	// nowhere where that is empty. Where progress is not nil, it hears 0 when the
	// program is called that brings it, and then how many bytes have come so far.
	// Fetch returns how many there were.
	Fetch(ctx context.Context, path, local string, progress func(bytes int64)) (int64, error)
	// Send makes a file of a local one, as Put does.
	Send(ctx context.Context, local, path string, overwrite bool, progress func(bytes int64)) error
}
