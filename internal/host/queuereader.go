package host

import (
	"errors"

	"thru/internal/measure"
)

// QueueReader reads the packet counters of each queue of one interface
// repeatedly. It parses the names of the driver's counters once, which costs
// more than reading the values. It is for one goroutine.
type QueueReader struct {
	host  *Host
	iface string
	names queueNames
	known map[string]queueCount // the names of queue counters
	other map[string]bool
}

// Queues returns a reader of an interface's queues.
func (h *Host) Queues(iface string) *QueueReader {
	return &QueueReader{host: h, iface: iface, names: newQueueNames(), known: map[string]queueCount{}, other: map[string]bool{}}
}

// Read returns the counters of all queues since the driver was loaded,
// receive queues first; an error where the driver has none.
func (r *QueueReader) Read() ([]measure.QueueCounter, error) {
	if r.host.kernel == nil {
		return nil, errors.New("only the running kernel reports them")
	}
	driver, err := r.host.kernel.counters(r.iface)
	if err != nil {
		return nil, err
	}
	all := gatherQueues(driver, r.read)
	if len(all) == 0 {
		return nil, errors.New("its driver has no such counters")
	}
	return all, nil
}

// read is queueNames.read with a cache.
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
