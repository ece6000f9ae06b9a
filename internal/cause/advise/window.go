package advise

import ()

// Both ends of the direction, each once.
func Both(w *Way) []*Host {
	if w.Local() {
		return []*Host{w.From}
	}
	return []*Host{w.From, w.To}
}
