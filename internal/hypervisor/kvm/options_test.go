package kvm

import (
	"strings"
	"testing"
)

// TestProps reads both forms of an option's value (qemu(1), qemu-options.hx).
func TestProps(t *testing.T) {
	tests := []struct{ text, first, want string }{
		{"web1,debug-threads=on", "guest", "guest=web1 debug-threads=on"},
		{"guest=a,,b", "guest", "guest=a,b"},
		{"tap,id=n0,ifname=t0,vhost=on", "type", "type=tap id=n0 ifname=t0 vhost=on"},
		{"socket,server,nowait", "type", "type=socket server=on wait=off nowait=on"},
		{"", "type", ""},
		{",", "type", ""},
		{"file=/a=b.img", "", "file=/a=b.img"},
		{`{"driver":"virtio-net-pci","mq":true,"vectors":10,"x":null}`, "driver", "driver=virtio-net-pci mq=on vectors=10"},
		{`{"b":{"direct":true,"no-flush":false},"a":[0,"1"]}`, "driver", "a.0=0 a.1=1 b.direct=on b.no-flush=off"},
		{`{"broken":`, "driver", ""},
		{`{"a":` + strings.Repeat(`{"b":`, 40) + "1" + strings.Repeat("}", 41), "", ""}, // deeper than anything real
	}
	for _, tt := range tests {
		var got []string
		for _, p := range parseProps(tt.text, tt.first) {
			got = append(got, p.key+"="+p.value)
		}
		check(t, tt.text, strings.Join(got, " "), tt.want)
	}
}

func TestSize(t *testing.T) {
	tests := []struct {
		text, without string
		want          int64
		ok            bool
	}{
		{"2048", "M", 2 << 30, true}, {"4G", "M", 4 << 30, true}, {"4194304k", "M", 4 << 30, true}, {"1.5G", "M", 3 << 29, true}, {"0", "M", 0, true},
		{"512", "B", 512, true}, {"1T", "B", 1 << 40, true}, {"-1", "M", 0, false}, {"", "M", 0, false}, {"NaN", "M", 0, false}, {"1e300", "M", 0, false},
		{"4GG", "M", 0, false}, {"four", "M", 0, false},
	}
	for _, tt := range tests {
		got, ok := size(tt.text, tt.without)
		check(t, tt.text, []any{got, ok}, []any{tt.want, tt.ok})
	}
}

// TestMachine reads whole command lines of manually started QEMUs.
func TestMachine(t *testing.T) {
	tests := []struct {
		name, args string
		want       func(m machine) []any
		is         []any
	}{
		{"nothing said", "qemu-system-x86_64 disk.img", func(m machine) []any {
			return []any{show(m.CPUs), show(m.Memory), m.accel, show(m.Firmware), show(m.Disks[0].Path), show(m.Disks[0].Mode)}
		}, []any{1, int64(128 << 20), "tcg", "bios", "disk.img", "persistent"}},
		{"flags before the disk", "qemu-system-x86_64 -enable-kvm -nographic -snapshot disk.img -hdb two.img", func(m machine) []any {
			return []any{m.accel, len(m.Disks), show(m.Disks[0].Mode), m.Disks[1].Name, show(m.Disks[1].Path)}
		}, []any{"kvm", 2, "nonpersistent", "hdb", "two.img"}},
		{"topology alone", "qemu-system-x86_64 -smp sockets=2,cores=3,threads=2", func(m machine) []any { return []any{show(m.CPUs), show(m.PerSocket)} }, []any{12, 3}},
		{"most of them alone", "qemu-system-x86_64 -smp maxcpus=6", func(m machine) []any { return []any{show(m.CPUs)} }, []any{6}},
		{"too many to be", "qemu-system-x86_64 -smp sockets=2000000000,cores=2000000000,threads=2000000000", func(m machine) []any { return []any{show(m.CPUs), noted(m.NotChecked, "cpus", "")} }, []any{nil, true}},
		{"-nic", "qemu-system-x86_64 --nic tap,model=virtio-net-pci,mac=52:54:00:AB:00:01,ifname=t0,vhost=on --nic none -nic user", func(m machine) []any {
			n := m.nics
			return []any{len(n), show(n[0].Model), show(n[0].MAC), n[0].ifname, show(n[0].Vhost), show(n[1].Model), show(n[1].Network), n[1].Name}
		}, []any{2, "virtio", "52:54:00:ab:00:01", "t0", true, nil, "user", "nic1"}},
		{"the old hub", "qemu-kvm -net nic,model=rtl8139,macaddr=52:54:00:00:00:09 -net tap,ifname=t5", func(m machine) []any {
			return []any{len(m.nics), show(m.nics[0].Model), m.nics[0].ifname, m.accel}
		}, []any{1, "rtl8139", "t5", "kvm"}},
		{"queues that the adapter has not", "qemu-system-x86_64 -netdev tap,id=n,queues=4 -device virtio-net-pci,netdev=n", func(m machine) []any { return []any{show(m.nics[0].Queues)} }, []any{1}},
		{"other adapters", "qemu-system-x86_64 -netdev user,id=a -device vmxnet3,netdev=a -netdev bridge,id=b,br=br0 -device pcnet,netdev=b -netdev stream,id=c -device e1000e,netdev=c -device igb,netdev=none", func(m machine) []any {
			return []any{show(m.nics[0].Model), show(m.nics[1].Model), show(m.nics[1].Vhost), show(m.nics[2].Model), show(m.nics[2].Network), show(m.nics[3].Model)}
		}, []any{"vmxnet3", "pcnet32", false, "e1000e", "stream", "igb"}},
		{"UEFI", "qemu-system-x86_64 -drive if=pflash,format=raw,file=/usr/share/OVMF/OVMF_CODE.fd -drive file=a.img,if=virtio,cache=unsafe,iops=100", func(m machine) []any {
			return []any{show(m.Firmware), len(m.Disks), show(m.Disks[0].Adapter), show(m.Disks[0].Cache), show(m.Disks[0].LimitIOPS)}
		}, []any{"efi", 1, "virtio-blk", "unsafe", int64(100)}},
		{"another architecture", "qemu-system-aarch64 -M virt,accel=hvf:tcg -name arm", func(m machine) []any { return []any{show(m.Firmware), m.accel, m.Name} }, []any{nil, "hvf", "arm"}},
		{"an address with a password", "qemu-system-x86_64 -drive file=https://me:secret@host/a.img", func(m machine) []any { return []any{show(m.Disks[0].Path), show(m.Disks[0].Type)} }, []any{"https://***@host/a.img", "https"}},
		{"control characters", "qemu-system-x86_64 -name a\x1b[2Jb", func(m machine) []any { return []any{m.Name} }, []any{"a?[2Jb"}},
		{"huge pages", "qemu-system-x86_64 -mem-path /dev/hugepages -object memory-backend-memfd,id=m,size=1G,hugetlb=on,hugetlbsize=2M -object memory-backend-file,id=f,size=1G,mem-path=/dev/hugepages1G", func(m machine) []any {
			return []any{m.Advanced["mem-path"], m.Advanced["m.hugetlb"], m.Advanced["f.mem-path"]}
		}, []any{"/dev/hugepages", "2M", "/dev/hugepages1G"}},
		{"a file of options", "qemu-system-x86_64 -readconfig /run/qemu.conf", func(m machine) []any { return []any{noted(m.NotChecked, "*", "/run/qemu.conf")} }, []any{true}},
		{"NUMA nodes", "qemu-system-x86_64 -object memory-backend-ram,id=m,size=1G,host-nodes=0,host-nodes=2-3,policy=bind -object memory-backend-ram,id=n,size=1G,host-nodes=7,policy=preferred", func(m machine) []any { return []any{m.NUMANodes} }, []any{[]int{0, 2, 3}}},
	}
	for _, tt := range tests {
		check(t, tt.name, tt.want(readMachine(strings.Fields(tt.args))), tt.is)
	}
}

func TestVLANText(t *testing.T) {
	tests := []struct {
		untagged int
		tagged   []int
		want     string
	}{{0, nil, ""}, {1, nil, "1"}, {0, []int{12, 10, 11, 30}, "trunk 10-12,30"}, {1, []int{5}, "1, trunk 5"}}
	for _, tt := range tests {
		check(t, tt.want, vlanText(tt.untagged, tt.tagged), tt.want)
	}
}
