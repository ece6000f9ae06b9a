package host

import (
	"errors"
	"path"
	"strings"
	"sync"
	"syscall"

	"thru/internal/measure"
)

// survey is one reading of all interfaces. What one request returns for all
// interfaces is read when the first interface needs it.
type survey struct {
	*Host
	virtual    bool // this host is a guest
	links      []link
	named      map[string]*link
	interrupts func() (interruptTable, error)
	qdiscs     func() ([]qdisc, error)
	nodes      func() (map[int][]int, error)
}

// subject is one interface while it is described.
//
// Facts that make no sense for a kind of interface are left out without a
// note: for software interfaces (loopback, veth, bridge, bond, VLAN, tunnel
// and so on) everything that only a device has, from its bus to its
// interrupts; for virtual NICs all that belongs to a physical port or slot.
// Devices that are down are asked for little, with one note for all the rest.
type subject struct {
	*survey
	link
	device string // folder of its device, below FS.Root; empty for software
	info   driverInfo
	sysfs  error // why /sys/class/net does not show it; nil: it does
	vnic   string
	notes  notes
	gone   bool
	out    measure.Interface
}

// interfaces describes every interface of the calling thread's network
// namespace. One that disappears meanwhile is left out.
func (h *Host) interfaces(n *notes, virtual bool) []measure.Interface {
	s, err := h.survey(virtual)
	if err != nil {
		n.add("interfaces", err.Error())
		return nil
	}
	var all []measure.Interface
	cards := map[string][]int{}
	for _, l := range s.links {
		u := s.subject(l)
		u.describe()
		if u.gone {
			continue
		}
		if card := u.card(); card != "" {
			cards[card] = append(cards[card], len(all))
		}
		all = append(all, u.out)
		*n = append(*n, u.notes...)
	}
	joinPorts(all, cards)
	return all
}

// survey lists the interfaces.
func (h *Host) survey(virtual bool) (*survey, error) {
	list := h.fs.links
	qdiscs := func() ([]qdisc, error) { return nil, errors.New(onlyKernel) }
	if h.kernel != nil {
		list, qdiscs = h.kernel.links, h.kernel.qdiscs
	}
	links, err := list()
	if err != nil {
		return nil, err
	}
	s := &survey{
		Host: h, virtual: virtual, links: links, named: map[string]*link{},
		interrupts: sync.OnceValues(h.fs.interruptTable), qdiscs: sync.OnceValues(qdiscs), nodes: sync.OnceValues(h.fs.numaNodes),
	}
	for i := range links {
		s.named[links[i].name] = &links[i]
	}
	return s, nil
}

// subject finds out whether an interface is a device or software.
func (s *survey) subject(l link) *subject {
	u := &subject{survey: s, link: l, sysfs: s.fs.sameLink(l)}
	u.out = measure.Interface{Name: l.name, MTU: &u.mtu, Up: &u.up, Addrs: l.addrs}
	u.device = s.deviceOf(l, u.sysfs == nil)
	var err error
	if s.kernel != nil {
		u.info, err = s.kernel.info(l.name)
	}
	if u.gone = errors.Is(err, syscall.ENODEV); u.gone {
		return u
	}
	if at := pciDevices + u.info.bus; u.device == "" && l.kind == "" && u.info.bus != "" && s.fs.Exists(at) {
		u.device = s.fs.Target(at)
	}
	if u.info == (driverInfo{}) && u.device != "" {
		u.info = s.fs.driver(u.device)
	}
	u.vnic = vnic(u.info.driver, s.virtual)
	return u
}

// deviceOf returns the folder of an interface's device: by the link in
// /sys/class/net or, where /sys shows another network namespace, by
// rtnetlink. It is empty for software.
func (s *survey) deviceOf(l link, own bool) string {
	if own {
		if dir := path.Join("sys/class/net", l.name, "device"); s.fs.Exists(dir) {
			return s.fs.Target(dir)
		}
	}
	if dir := path.Join("sys/bus", l.bus, "devices", l.at); l.bus != "" && l.at != "" && s.fs.Exists(dir) {
		return s.fs.Target(dir)
	}
	return ""
}

// hardware reports whether the interface has a device, physical or virtual.
func (u *subject) hardware() bool { return u.device != "" || u.kind == "" && u.info.bus != "" }

// miss notes a fact that could not be read. It drops an interface that is
// gone.
func (u *subject) miss(key string, err error) {
	if errors.Is(err, syscall.ENODEV) {
		u.gone = true
	}
	u.notes.add("interfaces."+u.name+"."+key, err.Error())
}

// kept returns a pointer to the value, or notes the error.
func kept[T any](u *subject, key string) func(T, error) *T {
	return func(v T, err error) *T {
		if err != nil {
			u.miss(key, err)
			return nil
		}
		return &v
	}
}

// ask sends a request to the kernel.
func ask[T any](u *subject, question func(kernel, string) (T, error)) (T, error) {
	if u.kernel == nil {
		var none T
		return none, errors.New(onlyKernel)
	}
	return question(u.kernel, u.name)
}

// describe fills in u.out.
func (u *subject) describe() {
	if u.gone {
		return
	}
	u.describeLink()
	u.describeKind()
	u.describeDriver()
	u.describeSpeed()
	u.describeOffloads()
	u.describeStack()
	u.describeQueues()
	if !u.hardware() {
		return
	}
	u.describeSlot()
	if !u.up {
		u.miss("*", errors.New("it is down: channels, rings, coalescing, pause, rss, rps, xps, interrupts, queue_counters and the driver's errors are not read"))
		return
	}
	u.describeDevice()
	u.describeInterrupts()
	u.describeCounters()
}

// describeLink copies the facts from the list of interfaces.
func (u *subject) describeLink() {
	o := &u.out
	o.MaxMTU, o.Carrier, o.TxLength, o.VLAN = u.maxMTU, u.carrier, u.txLength, u.vlan
	if u.mac != "" {
		o.MAC = &u.mac
	} else if u.hardware() {
		u.miss("mac", errors.New("this kind of interface has none"))
	}
	if u.kernel == nil {
		u.miss("addresses", errors.New(onlyKernel))
	}
	if len(u.link.counters) > 0 {
		o.Errors = map[string]uint64{}
		for name, n := range u.link.counters {
			o.Errors[name] = n
		}
	}
	o.Qdisc = u.rootQdisc()
}

// describeKind sets the kind of the interface.
func (u *subject) describeKind() {
	kind := u.kind
	switch {
	case u.hardware():
		kind = u.deviceKind()
	case u.loop:
		kind = "loopback"
	case kind == "" && u.kernel == nil:
		u.miss("kind", errors.New(onlyKernel))
		return
	case kind == "":
		u.miss("kind", errors.New("the kernel does not report it"))
		return
	}
	u.out.Kind = &kind
}

// deviceKind returns the kind of a device.
func (u *subject) deviceKind() string {
	switch {
	case u.vnic != "":
		return u.vnic
	case u.fs.Exists(path.Join(u.device, "physfn")) || virtualFunction(u.info.driver, u.fs.Optional(path.Join(u.device, "device"))):
		return "virtual function"
	}
	return "physical"
}

// describeDriver sets driver, versions and bus.
func (u *subject) describeDriver() {
	firmware := u.info.firmware
	if firmware == "N/A" {
		firmware = ""
	}
	for _, v := range []struct {
		key, value string
		to         **string
	}{
		{"driver", u.info.driver, &u.out.Driver}, {"driver_version", u.info.version, &u.out.Version},
		{"bus", u.info.bus, &u.out.Bus}, {"firmware", firmware, &u.out.Firmware},
	} {
		switch {
		case v.key == "bus" && !u.hardware(): // "tap", "N/A"
		case v.value != "":
			*v.to = &v.value
		case !u.hardware() || v.key == "firmware" && u.vnic != "":
		case v.key == "firmware" && u.kernel == nil:
			u.miss(v.key, errors.New(onlyKernel))
		default:
			u.miss(v.key, errUnknown)
		}
	}
	if u.hardware() {
		u.out.InTree = kept[bool](u, "driver_of_kernel")(u.fs.ofKernel(u.device))
	}
}

// describeSpeed sets speed and duplex, and for a port the fastest speeds that
// it supports and that its partner advertises.
func (u *subject) describeSpeed() {
	u.out.Nominal = u.nominal()
	var s linkSettings
	var err error
	switch {
	case !u.up:
		err = errors.New("it is down")
	case u.kernel != nil:
		s, err = u.kernel.settings(u.name)
	}
	if err != nil || u.kernel == nil {
		s, err = u.speedOfSysfs(err)
	}
	if err != nil {
		if u.hardware() {
			u.miss("speed_bps", err)
			u.miss("duplex", err)
		}
		return
	}
	u.out.SpeedBps, u.out.Duplex = known(u, "speed_bps", s.speedBps), known(u, "duplex", s.duplex)
	if !u.hardware() || u.vnic != "" {
		return
	}
	if u.kernel == nil {
		u.miss("speed_max_bps", errors.New(onlyKernel))
		return
	}
	u.out.Autoneg = &s.autoneg
	u.out.MaxBps, u.out.Port = known(u, "speed_max_bps", s.maxBps), known(u, "port", s.port)
	switch {
	case s.peerBps > 0:
		u.out.PeerBps = &s.peerBps
	case !s.autoneg:
		u.miss("speed_peer_max_bps", errors.New("autonegotiation is off"))
	default:
		u.miss("speed_peer_max_bps", errors.New("the driver does not report what the link partner advertises"))
	}
}

// known returns a pointer to a value, or adds a note and returns nil where it
// is zero.
func known[T comparable](u *subject, key string, v T) *T {
	var zero T
	if v != zero {
		return &v
	}
	if u.hardware() {
		u.miss(key, errUnknown)
	}
	return nil
}

// speedOfSysfs reads speed and duplex where the driver cannot be asked. why
// is the reason; speedOfSysfs returns it where /sys has no value either.
func (u *subject) speedOfSysfs(why error) (s linkSettings, err error) {
	if u.sysfs != nil || !u.up {
		return s, errors.Join(why, u.sysfs)
	}
	s.speedBps, err = u.fs.speed(u.name)
	s.duplex, _ = u.fs.duplex(u.name)
	if err != nil && s.duplex == "" {
		return s, err
	}
	return s, nil
}

// describeOffloads requests the features that a test depends on.
func (u *subject) describeOffloads() {
	if !u.up && !u.hardware() {
		return
	}
	if f := kept[map[string]feature](u, "offloads")(ask(u, kernel.features)); f != nil {
		u.out.Offloads, u.out.Fixed = offloads(*f)
	}
}

// describeStack sets the lower and upper interfaces.
func (u *subject) describeStack() {
	if u.master != "" {
		u.out.Master = &u.master
	}
	u.out.Lower = u.lower
	if u.elsewhere && !paired(u.kind) {
		u.miss("lower", errors.New("its lower interface is in another network namespace"))
	}
	if u.kind == "bond" {
		u.out.Bond = kept[measure.Bond](u, "bond")(u.bond())
	}
	if u.link.bridge != nil {
		u.out.Bridge = u.bridgeFacts()
	}
	if u.kind == "ppp" {
		u.tunnel = parsePPPoE([]byte(u.fs.Optional("proc/net/pppoe")))
	}
	if u.tunnel == nil {
		return
	}
	u.out.Tunnel = u.tunnel
	if !u.up {
		return
	}
	if u.tunnel.Overhead == 0 {
		u.miss("tunnel.overhead_bytes", overheadUnknown(u.kind))
	}
	if u.tunnel.Lower == "" {
		u.miss("tunnel.lower", errors.New("the tunnel does not show its lower interface"))
	}
}

// rootQdisc returns the queueing discipline at the root, with its children
// where the root is that of a multi-queue device.
func (u *subject) rootQdisc() *string {
	if u.qdisc == "" {
		if u.up {
			u.miss("qdisc", errors.New(onlyKernel))
		}
		return nil
	}
	name := u.qdisc
	if name == "mq" || name == "mqprio" {
		if all, err := u.qdiscs(); err == nil {
			name = strings.Join(append([]string{name}, kindsBelow(all, int32(u.index))...), " ")
		}
	}
	return &name
}
