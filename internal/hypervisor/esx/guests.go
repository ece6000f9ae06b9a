package esx

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"thru/internal/host/platform"
	"thru/internal/measure"
	"thru/internal/unit"
)

// guest is a virtual machine with the identifiers that commands use.
type guest struct {
	measure.Guest
	file   string // configuration file, below /vmfs/volumes
	world  string // that runs it; "": it does not run
	cartel string // number of its first world (vmx)
}

// filesAtOnce is how many configurations of a few kB each one command prints.
const filesAtOnce = 40

// guests lists the registered virtual machines, with their identity: id,
// names, UUIDs, power, adapters, and for some running ones their addresses.
func (r *reading) guests() []guest {
	list := readGuestList(r.ask("guests", "vim-cmd", "vmsvc/getallvms"))
	if len(list) > mostGuests {
		r.lacks("guests", fmt.Sprintf("%d more guests than the limit of %d", len(list)-mostGuests, mostGuests))
		list = list[:mostGuests]
	}
	running := map[string]platform.Row{}
	for _, w := range r.blocks("guests.power", "esxcli", "vm", "process", "list") {
		running[short(w["configfile"])] = w
	}
	for i := range list {
		g := &list[i]
		g.Host = hostID
		w := running[short(g.file)]
		if w == nil {
			w = byName(running, g)
		}
		if g.world = w["worldid"]; g.world != "" {
			g.Power, g.UUID, g.cartel = "on", measure.UUID(w["uuid"]), w["vmxcartelid"]
			if n, err := strconv.Atoi(g.world); err == nil { // the thread that moves its packets has this number: NetWorld-VM-1051273
				g.PID = &n
			}
		}
	}
	r.files(list)
	r.askEach(list)
	for i := range list {
		r.explain(&list[i])
	}
	return list
}

// askEach runs the commands for single guests: for running ones their ports
// and the report of their tools, for others their power state. Each kind has
// a limit.
func (r *reading) askEach(list []guest) {
	var some []*guest
	on, off := 0, 0
	for i := range list {
		g := &list[i]
		n := &off
		if g.world != "" {
			n = &on
		}
		if *n++; *n > mostAsked || g.world != "" && !platform.Plain(g.world) {
			g.NotChecked = append(g.NotChecked, measure.NotChecked{Fact: "state", Why: fmt.Sprintf("%d others were read before; reading more would take too long", mostAsked)})
			continue
		}
		some = append(some, g)
	}
	each(len(some), func(i int) {
		g := some[i]
		if g.world == "" {
			r.power(g)
			return
		}
		for _, w := range r.blocks("guests.nics.port", "esxcli", "network", "vm", "port", "list", "-w", g.world) {
			if w["portid"] != "" {
				r.port(g, w)
			}
		}
		r.tools(g)
	})
}

// explain notes the reason for each missing fact that every guest should
// have.
func (r *reading) explain(g *guest) {
	tools, file := "it does not run", "its .vmx file could not be read"
	if g.world != "" {
		tools = "VMware Tools do not report it"
	}
	for _, x := range []struct {
		missing bool
		fact    string
		why     string
	}{
		{g.UUID == "", "uuid", file}, {g.CPUs == nil, "cpus", file}, {g.Memory == nil, "memory_bytes", file}, {g.Power == "", "power", "not queried"},
		{len(g.Addrs) == 0, "addresses", tools}, {g.Hostname == nil, "hostname", tools}, {g.OSRuns == nil, "os_running", tools},
		{g.Disks == nil, "disks", "not in its .vmx file, or the file could not be read"},
	} {
		if x.missing {
			g.NotChecked = append(g.NotChecked, measure.NotChecked{Fact: x.fact, Why: x.why})
		}
	}
	for _, n := range g.NICs {
		if n.MAC == nil {
			g.NotChecked = append(g.NotChecked, measure.NotChecked{Fact: "nics." + n.Name + ".mac", Why: "neither in its file nor at its port"})
		}
		if n.Model == nil {
			g.NotChecked = append(g.NotChecked, measure.NotChecked{Fact: "nics." + n.Name + ".model", Why: file})
		}
	}
}

// byName finds a running guest whose file has another name: a datastore's
// folder has two names, and the process list shows the other one.
func byName(running map[string]platform.Row, g *guest) platform.Row {
	end := g.file[strings.Index(g.file, "/")+1:]
	for file, w := range running {
		if _, rest, _ := strings.Cut(file, "/"); rest == end && w["displayname"] == g.Name {
			return w
		}
	}
	return nil
}

// short returns the path of a file below /vmfs/volumes.
func short(file string) string { return strings.TrimPrefix(file, "/vmfs/volumes/") }

// listed matches a line of "vim-cmd vmsvc/getallvms": Vmid, Name, [Datastore]
// File, Guest OS, Version, Annotation; an annotation may continue on lines of
// its own.
var listed = unit.Pattern(`^(\d+)\s+(.*?)\s+\[([^\]]+)\] (.+?\.vmx)\s+(\S+)\s+(vmx-\d+)(\s|$)`)

// readGuestList reads that list.
func readGuestList(in string) []guest {
	var list []guest
	for line := range strings.Lines(in) {
		m := listed().FindStringSubmatch(line)
		if m == nil {
			continue
		}
		g := guest{file: m[3] + "/" + m[4]}
		g.ID, g.Name, g.OS, g.Hardware = m[1], m[2], said(m[5]), said(m[6])
		list = append(list, g)
	}
	return list
}

// files reads the configurations of all guests, several with each command:
// grep prefixes each line with its file.
func (r *reading) files(list []guest) {
	values := map[string]map[string]string{}
	for rest := list; len(rest) > 0; {
		some := rest[:min(len(rest), filesAtOnce)]
		rest = rest[len(some):]
		args := []string{"-H", "=", "--"}
		for _, g := range some {
			args = append(args, "/vmfs/volumes/"+g.file)
		}
		out, err := r.run.Run(r.ctx, "grep", args...)
		if err != nil {
			r.lacks("guests", "some configuration files: "+platform.Why(err))
		}
		readFiles(platform.Clean(string(out)), values)
	}
	for i := range list {
		g := &list[i]
		if v := values[g.file]; v != nil {
			fill(&g.Guest, v)
			r.disks(g, v)
			for i := range g.NICs {
				if n := &g.NICs[i]; n.Network != nil {
					n.PortGroup = r.portGroup(*n.Network)
				}
			}
		} else {
			g.NotChecked = append(g.NotChecked, measure.NotChecked{Fact: "configuration", Why: "its .vmx file could not be read"})
		}
	}
}

// readFiles reads lines "FILE:KEY = "VALUE"" of .vmx files, by file and key in
// lower case.
func readFiles(in string, values map[string]map[string]string) {
	for line := range strings.Lines(in) {
		file, line, ok := strings.Cut(line, ".vmx:")
		key, value, ok2 := strings.Cut(line, "=")
		if !ok || !ok2 {
			continue
		}
		file = short(file + ".vmx")
		if values[file] == nil {
			values[file] = map[string]string{}
		}
		values[file][strings.ToLower(strings.TrimSpace(key))] = unescape(strings.Trim(strings.TrimSpace(value), `"`))
	}
}

// escaped matches a character that a .vmx file writes as its number: |22 is a
// quote.
var escaped = unit.Pattern(`\|[0-9A-Fa-f]{2}`)

func unescape(text string) string {
	return escaped().ReplaceAllStringFunc(text, func(e string) string {
		n, _ := strconv.ParseUint(e[1:], 16, 8)
		if n < 0x20 || n > 0x7e {
			return " "
		}
		return string(rune(n))
	})
}

// fill sets a guest's facts from its .vmx file.
func fill(g *measure.Guest, v map[string]string) {
	if id := measure.UUID(v["uuid.bios"]); id != "" {
		g.UUID = id
	}
	g.InstanceUUID = measure.UUID(v["vc.uuid"])
	g.CPUs, g.PerSocket = cmp.Or(platform.Count(v["numvcpus"]), new(1)), platform.Count(v["cpuid.corespersocket"]) // the default of the file is 1
	g.Memory = amount(v["memsize"], 1<<20)
	g.Firmware = cmp.Or(said(v["firmware"]), new("bios"))
	g.HotAddCPU = cmp.Or(platform.Truth(v["vcpu.hotadd"]), new(false))
	g.Latency = said(v["sched.cpu.latencysensitivity"])
	g.CPUShare = allocation(v, "sched.cpu", 1_000_000, "")
	g.MemoryShare = allocation(v, "sched.mem", 1<<20, "size")
	if a := v["sched.cpu.affinity"]; a != "" && a != "all" {
		for _, w := range platform.Words(a) {
			if n := platform.Count(w); n != nil {
				g.Affinity = append(g.Affinity, *n)
			}
		}
	}
	g.NICs = adapters(v)
	for key, value := range v {
		if bears(key) {
			measure.Put(&g.Advanced, key, value)
		}
	}
}

// bears reports whether a setting affects a guest's traffic.
func bears(key string) bool {
	return slices.ContainsFunc([]string{".ctxperdev", ".pnicfeatures", ".coalescingscheme", ".coalescingparams", ".udprss", ".rss", ".emurxmode"},
		func(end string) bool { return strings.HasPrefix(key, "ethernet") && strings.HasSuffix(key, end) }) ||
		slices.Contains([]string{"numa.nodeaffinity", "numa.autosize", "sched.cpu.htsharing", "monitor.suspend_on_triplefault"}, key)
}

// allocation reads sched.cpu.* (MHz) or sched.mem.* (MB).
func allocation(v map[string]string, of string, unit int64, minimum string) *measure.Allocation {
	a := &measure.Allocation{Reserved: amount(v[of+".min"+minimum], unit)}
	if a.Reserved == nil && v[of+".min"] != "" {
		a.Reserved = amount(v[of+".min"], unit)
	}
	a.Limit = amount(v[of+".max"], unit) // none where it is absent or "unlimited"
	a.Limited = new(a.Limit != nil)
	switch shares := v[of+".shares"]; shares {
	case "":
	case "low", "normal", "high":
		a.Level = &shares
	default:
		if a.Shares = amount(shares, 1); a.Shares != nil {
			a.Level = new("custom")
		}
	}
	return a
}

// adapters returns the guest's adapters by the keys "ethernetN." of its file,
// in order.
func adapters(v map[string]string) []measure.GuestNIC {
	var numbers []int
	for key := range v {
		rest, ok := strings.CutPrefix(key, "ethernet")
		number, field, _ := strings.Cut(rest, ".")
		if n, err := strconv.Atoi(number); ok && err == nil && field == "present" && n >= 0 && n < 32 {
			numbers = append(numbers, n)
		}
	}
	sort.Ints(numbers)
	var nics []measure.GuestNIC
	for _, n := range numbers {
		of := fmt.Sprintf("ethernet%d.", n)
		if on, _ := platform.Flag(v[of+"present"]); !on {
			continue
		}
		nic := measure.GuestNIC{
			Name: fmt.Sprintf("Network adapter %d", n+1), Network: said(v[of+"networkname"]),
			Model:   cmp.Or(said(v[of+"virtualdev"]), new("pcnet32")), // the default of the file: vlance
			AtStart: cmp.Or(platform.Truth(v[of+"startconnected"]), new(true)),
		}
		for _, key := range []string{"address", "generatedaddress"} {
			if mac := strings.ToLower(v[of+key]); mac != "" && nic.MAC == nil {
				nic.MAC = &mac
			}
		}
		nics = append(nics, nic)
	}
	return nics
}

// port adds a block of "network vm port list" to the adapter with its MAC.
func (r *reading) port(g *guest, w platform.Row) {
	mac := strings.ToLower(w["macaddress"])
	n := slices.IndexFunc(g.NICs, func(x measure.GuestNIC) bool { return x.MAC != nil && *x.MAC == mac })
	if n < 0 {
		g.NICs = append(g.NICs, measure.GuestNIC{Name: "port " + w["portid"], MAC: said(mac)})
		n = len(g.NICs) - 1
	}
	x := &g.NICs[n]
	x.Connected, x.Key = new(true), w["portid"]
	if x.Port = said(w["portid"]); said(w["dvportid"]) != nil {
		x.Port = said(w["dvportid"])
	}
	if name := said(w["portgroup"]); name != nil {
		x.Network = name
	}
	if x.PortGroup = ""; x.Network != nil {
		x.PortGroup = r.portGroup(*x.Network)
	}
	if x.PortGroup == "" && r.Switch(switchID(w["vswitch"])) != nil {
		x.Switch = switchID(w["vswitch"]) // a distributed switch: only vCenter names its port groups
	}
	if up := said(w["teamuplink"]); up != nil && *up != "void" { // void: no fixed uplink
		x.Uplink = up
	}
	if a := w["ipaddress"]; a != "" && a != "0.0.0.0" {
		x.Addrs = append(x.Addrs, a)
		g.Addrs = append(g.Addrs, a)
	}
}

// power reads the power state of a guest that does not run.
func (r *reading) power(g *guest) {
	out := strings.ToLower(r.ask("guests.power", "vim-cmd", "vmsvc/power.getstate", g.ID))
	switch {
	case strings.Contains(out, "suspended"):
		g.Power = "suspended"
	case strings.Contains(out, "powered off"):
		g.Power = "off"
	}
}

// tools reads what VMware Tools in a guest report.
func (r *reading) tools(g *guest) {
	v := readTree(r.ask("guests.tools", "vim-cmd", "vmsvc/get.guest", g.ID))
	g.OSRuns, g.Hostname = said(v["guestFullName"]), said(v["hostName"])
	if len(v) > 0 {
		g.Tools = &measure.GuestTools{Version: said(v["toolsVersion"]), Running: new(v["toolsRunningStatus"] == "guestToolsRunning")}
		if s := map[string]string{"guestToolsCurrent": "current", "guestToolsNeedUpgrade": "old", "guestToolsNotInstalled": "not installed", "guestToolsUnmanaged": "unmanaged"}[v["toolsVersionStatus"]]; s != "" {
			g.Tools.Status = &s
		}
	}
	if a := v["ipAddress"]; a != "" && !slices.Contains(g.Addrs, a) {
		g.Addrs = append(g.Addrs, a)
	}
}

// readTree reads the outermost values of a tree of vim-cmd: lines "   NAME = VALUE,".
func readTree(in string) map[string]string {
	v := map[string]string{}
	for line := range strings.Lines(in) {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		key, value, ok := strings.Cut(strings.TrimSpace(line), " = ")
		if !ok || indent > 4 || strings.HasSuffix(value, "{") || strings.HasSuffix(value, "[") {
			continue
		}
		value = strings.Trim(strings.TrimSuffix(strings.TrimSpace(value), ","), `"`)
		if _, twice := v[key]; !twice && value != "<unset>" && value != "(null)" {
			v[key] = value
		}
	}
	return v
}
