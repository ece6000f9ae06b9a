package transfer

import "context"

// FetchEnding is the suffix of the name that Fetch writes to until a file is
// complete.
const FetchEnding = ".fetch"

// Outside is a Session of a separate program: the bytes of its files do not
// pass through this process. Get and Put use a file on this machine, and
// count that; Fetch and Send do not.
type Outside interface {
	Session
	// Fetch writes a file of the server to a local path, or discards it where
	// the path is empty. It writes to the name with FetchEnding, which a
	// killed program leaves, and replaces the local path when the file is
	// complete. progress, where not nil, gets 0 when the program is started,
	// and then the number of bytes so far. Fetch returns the number of bytes.
	Fetch(ctx context.Context, path, local string, progress func(bytes int64)) (int64, error)
	// Send creates a file from a local one, like Put.
	Send(ctx context.Context, local, path string, overwrite bool, progress func(bytes int64)) error
}
