package advise

import ()

// Receiving is the host whose packets a request is about: its own, else the
// receiver of the direction.
func (r Request) Receiving() *Host {
	if r.At != nil {
		return r.At
	}
	return r.Way.To
}
