package trace

import "thru/internal/measure"

// Volume is the payload of one direction of a connection over time.
type Volume struct {
	FirstNs int64   // time of the first byte, since 1970
	LastNs  int64   // time of the last one
	Total   int64   // bytes
	step    int64   // ns
	from    int64   // when the first step begins
	before  []int64 // bytes before each step
}

// Until returns how many bytes had passed until a time since 1970, evenly
// spread within a step.
func (v Volume) Until(ns int64) int64 {
	switch {
	case ns >= v.LastNs:
		return v.Total
	case v.Total == 0 || ns <= v.FirstNs:
		return 0
	case v.step == 0: // only the total is known
		return int64(float64(v.Total) * float64(ns-v.FirstNs) / float64(v.LastNs-v.FirstNs))
	}
	i := int((ns - v.from) / v.step)
	upto := v.Total
	if i+1 < len(v.before) {
		upto = v.before[i+1]
	}
	begin := v.from + int64(i)*v.step
	end := min(begin+v.step, v.LastNs)
	begin = max(begin, v.FirstNs)
	if end <= begin {
		return upto
	}
	return v.before[i] + int64(float64(upto-v.before[i])*float64(ns-begin)/float64(end-begin))
}

// Volumes returns the payload that a connection's sender sent for the first
// time, and the payload that its receiver acknowledged, as they passed the
// capture. back is for the data from Connection.To to From.
func (r *Recorder) Volumes(c *measure.Connection, back bool) (sent, acked Volume) {
	x, direction := r.find(c)
	if x == nil {
		return Volume{}, Volume{}
	}
	if back {
		direction = 1 - direction
	}
	return x.directions[direction].sent.volume(), x.directions[direction].acked.volume()
}

// meter counts bytes in steps of time. A step is a power of two of ns, and
// doubles when there would be too many.
type meter struct {
	first, last int64 // times of the first and the latest byte
	total       int64
	shift       uint  // a step is 1<<shift ns
	from        int64 // number of the first step since 1970
	bytes       []int64
}

// Limits of a meter. A connection with little payload must not cost much.
const (
	finest     = 24 // 17 ms
	fewBins    = 256
	manyBins   = 8192
	muchVolume = 1 << 20 // bytes
)

func (m *meter) add(at, bytes int64) {
	if bytes <= 0 {
		return
	}
	if m.total == 0 {
		m.first, m.last, m.shift = at, at, finest
		m.from = at >> m.shift
	}
	m.last, m.total = max(m.last, at), m.total+bytes
	most := int64(fewBins)
	if m.total > muchVolume {
		most = manyBins
	}
	step := max(at>>m.shift-m.from, 0) // the clock went back
	for step >= most {
		m.double()
		step = max(at>>m.shift-m.from, 0)
	}
	for int64(len(m.bytes)) <= step {
		m.bytes = append(m.bytes, 0)
	}
	m.bytes[step] += bytes
}

// double doubles the length of the steps.
func (m *meter) double() {
	from := m.from >> 1
	half := m.bytes[:0]
	for i, b := range m.bytes {
		if to := (m.from+int64(i))>>1 - from; to < int64(len(half)) {
			half[to] += b
		} else {
			half = append(half, b)
		}
	}
	m.bytes, m.from, m.shift = half, from, m.shift+1
}

func (m *meter) volume() Volume {
	v := Volume{FirstNs: m.first, LastNs: m.last, Total: m.total, step: 1 << m.shift, from: m.from << m.shift, before: make([]int64, len(m.bytes))}
	var n int64
	for i, b := range m.bytes {
		v.before[i] = n
		n += b
	}
	return v
}
