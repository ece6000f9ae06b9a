package wire

import "container/heap"

// buffer is the memory of one frame, shared by the parcels cut from it.
type buffer struct {
	data  []byte
	users int
}

// sizes are those of buffers: most frames are short, and a path may hold many.
// The last holds what a kernel hands over at most, 64 KB with all headers.
var sizes = [...]int{256, 2 << 10, 10 << 10, 32 << 10, 64<<10 + headMax}

// largest is the place of the last of sizes.
const largest = len(sizes) - 1

// parcel is what is on its way: a frame, or some segments of one under headers
// of their own.
type parcel struct {
	leaves int64  // when it is given to the other end, ns since the path began
	order  uint64 // of coming in, which decides among equals
	head   [headMax]byte
	headed int // bytes of head that are used
	body   []byte
	memory *buffer
	count  Count
}

// parcels is a heap of those on their way, the next to leave first.
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

// store holds the parcels on their way, and those and the buffers that are free
// again: once a path has filled, it allocates nothing.
type store struct {
	impairment parcels
	order      uint64
	parcels    []*parcel
	buffers    [len(sizes)][]*buffer
}

// class is the place in sizes of the smallest that holds n bytes.
func class(n int) int {
	for i, size := range sizes {
		if n <= size {
			return i
		}
	}
	return largest
}

// buffer returns one of a class, with one user.
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

// release says that a user of a buffer is gone.
func (s *store) release(b *buffer) {
	if b.users--; b.users == 0 {
		i := class(len(b.data))
		s.buffers[i] = append(s.buffers[i], b)
	}
}

// parcel returns one over a buffer, which has it as one more user.
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

// send puts a parcel on its way.
func (s *store) send(p *parcel) {
	s.order++
	p.order = s.order
	heap.Push(&s.impairment, p)
}

// next is when the next parcel leaves; ok is false where none is on its way.
func (s *store) next() (leaves int64, ok bool) {
	if len(s.impairment) == 0 {
		return 0, false
	}
	return s.impairment[0].leaves, true
}

// take takes the next parcel off its way. The caller hands it to done.
func (s *store) take() *parcel { return heap.Pop(&s.impairment).(*parcel) }

// done keeps a parcel that has left for the next one.
func (s *store) done(p *parcel) {
	s.release(p.memory)
	s.parcels = append(s.parcels, p)
}
