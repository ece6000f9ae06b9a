package wire

import "container/heap"

// buffer is the memory of one frame, shared by the parcels cut from it.
type buffer struct {
	data  []byte
	users int
}

// sizes are the sizes of buffers: most frames are short, and a path may hold many. The last holds the largest
// frame of a kernel, 64 KB with all headers.
var sizes = [...]int{256, 2 << 10, 10 << 10, 32 << 10, 64<<10 + headMax}

// largest is the index of the last size.
const largest = len(sizes) - 1

// parcel is a queued frame, or some segments of one with their own headers.
type parcel struct {
	leaves int64  // when it reaches the other end, ns since the path began
	order  uint64 // order of arrival, which decides between equal times
	head   [headMax]byte
	headed int // used bytes of head
	body   []byte
	memory *buffer
	count  Count
}

// parcels is a heap of queued parcels, the next to leave first.
type parcels []*parcel

func (p parcels) Len() int      { return len(p) }
func (p parcels) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p *parcels) Push(x any)   { *p = append(*p, x.(*parcel)) }
func (p parcels) Less(i, j int) bool {
	return p[i].leaves < p[j].leaves || p[i].leaves == p[j].leaves && p[i].order < p[j].order
}

func (p *parcels) Pop() any {
	last := len(*p) - 1
	x := (*p)[last]
	(*p)[last] = nil
	*p = (*p)[:last]
	return x
}

// store holds the queued parcels, and free parcels and buffers: a filled path allocates nothing more.
type store struct {
	impairment parcels
	order      uint64
	parcels    []*parcel
	buffers    [len(sizes)][]*buffer
}

// class returns the index in sizes of the smallest buffer that holds n bytes.
func class(n int) int {
	for i, size := range sizes {
		if n <= size {
			return i
		}
	}
	return largest
}

// buffer returns a buffer of a class, with one user.
func (s *store) buffer(class int) *buffer {
	free := s.buffers[class]
	if len(free) == 0 {
		return &buffer{data: make([]byte, sizes[class]), users: 1}
	}
	b := free[len(free)-1]
	s.buffers[class] = free[:len(free)-1]
	b.users = 1
	return b
}

// release removes a user of a buffer.
func (s *store) release(b *buffer) {
	if b.users--; b.users == 0 {
		i := class(len(b.data))
		s.buffers[i] = append(s.buffers[i], b)
	}
}

// parcel returns a parcel over a buffer, and adds a user to it.
func (s *store) parcel(b *buffer) *parcel {
	b.users++
	if len(s.parcels) == 0 {
		return &parcel{memory: b}
	}
	p := s.parcels[len(s.parcels)-1]
	s.parcels = s.parcels[:len(s.parcels)-1]
	p.memory, p.headed, p.body = b, 0, nil
	return p
}

// send queues a parcel.
func (s *store) send(p *parcel) {
	s.order++
	p.order = s.order
	heap.Push(&s.impairment, p)
}

// next returns when the next parcel leaves; ok is false if none is queued.
func (s *store) next() (leaves int64, ok bool) {
	if len(s.impairment) == 0 {
		return 0, false
	}
	return s.impairment[0].leaves, true
}

// take removes the next parcel from the queue. The caller passes it to done.
func (s *store) take() *parcel { return heap.Pop(&s.impairment).(*parcel) }

// done keeps a parcel that has left for reuse.
func (s *store) done(p *parcel) {
	s.release(p.memory)
	s.parcels = append(s.parcels, p)
}
