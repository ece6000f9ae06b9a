package kvm

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"thru/internal/measure"
	"thru/internal/unit"
)

// disks returns the disks of a command line, without empty drives for
// removable media.
func (c commandLine) disks() (all []measure.GuestDisk) {
	used := map[string]bool{}
	for _, d := range c.of("device") {
		id := d.get("drive")
		adapter := c.diskAdapter(d)
		if id == "" || adapter == "" {
			continue
		}
		used[id] = true
		source := c.byID("drive", "id", id)
		if source == nil {
			source = c.node(id)
		}
		disk := c.disk(source, d)
		disk.Name, disk.Adapter = clean(cmp.Or(d.get("id"), id)), &adapter
		all = append(all, disk)
	}
	for i, d := range c.of("drive") { // "if=" makes the device too
		if used[d.get("id")] && d.get("id") != "" || slices.Contains([]string{"none", "pflash", "sd", "mtd"}, d.get("if")) {
			continue
		}
		disk := c.disk(d, nil)
		disk.Name, disk.Adapter = clean(cmp.Or(d.get("id"), "drive"+strconv.Itoa(i))), new(cmp.Or(simpleAdapter(d.get("if")), "default of the machine type"))
		all = append(all, disk)
	}
	for _, o := range c {
		if name := o.name; name == "hda" || name == "hdb" || name == "hdc" || name == "hdd" {
			disk := c.disk(o.props, nil)
			disk.Name, disk.Adapter = name, new("default of the machine type")
			all = append(all, disk)
		}
	}
	return slices.DeleteFunc(all, func(d measure.GuestDisk) bool { return d.Path == nil && d.Type != nil && *d.Type == "cdrom" })
}

// simpleAdapter returns the adapter of "-drive if=".
func simpleAdapter(kind string) string {
	return map[string]string{"virtio": "virtio-blk", "ide": "ide", "scsi": "scsi", "floppy": "floppy"}[kind]
}

// diskAdapter returns the adapter of a disk; "" where the device is no disk.
func (c commandLine) diskAdapter(d props) string {
	driver := d.get("driver")
	switch {
	case strings.HasPrefix(driver, "virtio-blk"):
		return "virtio-blk"
	case driver == "nvme" || driver == "nvme-ns":
		return "nvme"
	case strings.HasPrefix(driver, "ide-"):
		return "ide"
	case strings.HasPrefix(driver, "usb-storage"):
		return "usb"
	case driver == "floppy":
		return "floppy"
	case !strings.HasPrefix(driver, "scsi-"):
		return ""
	}
	bus, _, _ := strings.Cut(d.get("bus"), ".")
	controller := c.byID("device", "id", bus).get("driver")
	for _, known := range []string{"virtio-scsi", "lsi", "megasas", "mptsas", "pvscsi"} {
		if strings.HasPrefix(controller, known) {
			return known
		}
	}
	return "scsi"
}

// node collects the settings of a -blockdev node with those of the nodes that
// its "file" names; the upper ones take precedence.
func (c commandLine) node(name string) props {
	var chain []props
	for range maxDepth {
		p := c.byID("blockdev", "node-name", name)
		if p == nil {
			break
		}
		chain = append(chain, p)
		if name = p.first("file", "file.file"); name == "" {
			break
		}
	}
	slices.Reverse(chain) // get returns the last
	return slices.Concat(chain...)
}

// disk describes the storage of a disk; device is nil where -drive has all
// settings.
func (c commandLine) disk(source, device props) measure.GuestDisk {
	var d measure.GuestDisk
	drivers := source.below("driver")
	file := cmp.Or(source.deepest("filename", "image", "path"), source.get("file"))
	if strings.HasPrefix(file, "json:") {
		inner := parseJSON(strings.TrimPrefix(file, "json:"))
		drivers, file = append(drivers, inner.below("driver")...), inner.deepest("filename", "image", "path")
	}
	if file != "" {
		d.Path = new(withoutSecrets(unit.Line(file, maxPath)))
	}
	format := source.get("format")
	for _, x := range drivers {
		if slices.Contains([]string{"raw", "qcow2", "qed", "vmdk", "vdi", "vhdx", "vpc", "luks"}, x) && (format == "" || format == "raw") {
			format = x
		}
	}
	d.Format = known(format)
	d.Type = new(diskType(file, drivers))
	if source.get("media") == "cdrom" || strings.HasSuffix(device.get("driver"), "-cd") {
		d.Type = new("cdrom")
	}
	d.Mode = new("persistent")
	if source.on("snapshot") || len(c.of("snapshot")) > 0 {
		d.Mode = new("nonpersistent")
	}
	d.Cache = new(cache(source, device))
	limits := slices.Concat(c.byID("object", "id", source.get("throttle-group")), source)
	d.LimitIOPS = limit(limits, "iops", "iops-total", "throttling.iops-total", "x-iops-total", "limits.iops-total")
	d.LimitBytes = limit(limits, "bps", "bps-total", "throttling.bps-total", "x-bps-total", "limits.bps-total")
	return d
}

// below returns the values of a key at any depth.
func (p props) below(key string) (all []string) {
	for _, x := range p {
		if x.key == key || strings.HasSuffix(x.key, "."+key) {
			all = append(all, clean(x.value))
		}
	}
	return all
}

// deepest returns the value of the key with most dots that ends with one of
// these words.
func (p props) deepest(words ...string) (found string) {
	depth := -1
	for _, x := range p {
		n := strings.Count(x.key, ".")
		if slices.Contains(words, x.key[strings.LastIndexByte(x.key, '.')+1:]) && x.value != "" && n > depth {
			found, depth = x.value, n
		}
	}
	return found
}

// diskType returns the kind of storage of an image.
func diskType(file string, drivers []string) string {
	for _, d := range drivers {
		switch d {
		case "host_device", "host_cdrom":
			return "block device"
		case "rbd", "iscsi", "nbd", "nfs", "gluster", "ssh", "http", "https", "sheepdog", "nvme":
			return d
		}
	}
	scheme, _, isURL := strings.Cut(file, "://")
	switch {
	case strings.HasPrefix(file, "/dev/"):
		return "block device"
	case strings.HasPrefix(file, "rbd:"), strings.HasPrefix(file, "nbd:"), strings.HasPrefix(file, "iscsi:"):
		return file[:strings.IndexByte(file, ':')]
	case isURL:
		return clean(scheme)
	}
	return "file"
}

// cache returns the mode in the words of "-drive cache=", also where its
// parts are given (qemu(1), the table at cache=).
func cache(source, device props) string {
	if mode := source.get("cache"); mode != "" {
		return clean(mode)
	}
	direct, unsafe := slices.Contains(source.below("cache.direct"), "on"), slices.Contains(source.below("cache.no-flush"), "on")
	through := device.get("write-cache") == "off" || source.get("cache.writeback") == "off"
	switch {
	case unsafe && !direct:
		return "unsafe"
	case direct && through:
		return "directsync"
	case direct:
		return "none"
	case through:
		return "writethrough"
	}
	return "writeback"
}

// limit returns the first of these values that limits something.
func limit(p props, keys ...string) *int64 {
	for _, k := range keys {
		if n, err := strconv.ParseInt(p.get(k), 10, 64); err == nil && n > 0 {
			return &n
		}
	}
	return nil
}

// withoutSecrets removes passwords from a path: those of URLs, and the keys
// of rbd:.
func withoutSecrets(s string) string {
	s = regexp.MustCompile(`://[^/@]*@`).ReplaceAllString(s, "://***@")
	return regexp.MustCompile(`(?i)([:;,?&](?:key|password|secret)=)[^:;,&]*`).ReplaceAllString(s, "${1}***")
}
