package host

import (
	"errors"

	"thru/internal/measure"
)

// QueueReader reads the packets of each queue of one interface again and
// again. It reads a name of the driver's counters once, which costs more than
// asking for them. It is for one goroutine.
type QueueReader struct {
	host  *Host
	iface string
	names queueNames
	known map[string]queueCount // those that are of a queue
	other map[string]bool
}

// Queues returns the reader of an interface's queues.
func (h *Host) Queues(iface string) *QueueReader {
	return &QueueReader{host: h, iface: iface, names: newQueueNames(), known: map[string]queueCount{}, other: map[string]bool{}}
}

// Read returns the counters of all queues since the driver was loaded, receive
// queues first; an error where its driver does not tell.
func (r *QueueReader) Read() ([]measure.QueueCounter, error) {
	if r.host.kernel == nil {
		return nil, errors.New("only the running kernel tells them")
	}
	driver, err := r.host.kernel.counters(r.iface)
	if err != nil {
		return nil, err
	}
	all := gatherQueues(driver, r.read)
	if len(all) == 0 {
		return nil, errors.New("its driver counts none")
	}
	return all, nil
}

// read is that of its names, remembered.
func (r *QueueReader) read(name string) (queueCount, bool) {
	if c, ok := r.known[name]; ok || r.other[name] {
		return c, ok
	}
	c, ok := r.names.read(name)
	if ok {
		r.known[name] = c
	} else {
		r.other[name] = true
	}
	return c, ok
}
