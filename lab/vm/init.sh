#!/bin/busybox sh
# The first program of a VM (package vm). The kernel hands over vm_name, vm_nic,
# vm_address and vm_mtu from its command line. Where a step fails this ends, the
# kernel panics, QEMU ends, and the console says why.
set -eu
export PATH=/bin HOME=/root
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev 2>/dev/null || true # some kernels have done it
mount -t tmpfs tmpfs /tmp
hostname "$vm_name"

for module in $(cat "/modules/$vm_nic"); do
	insmod "/modules/$module.ko"
done
ip link set lo up
ip link set eth0 mtu "$vm_mtu"
ip addr add "$vm_address" dev eth0
ip link set eth0 up
until [ "$(cat /sys/class/net/eth0/carrier)" = 1 ]; do sleep 0.1; done

thru serve --json --allow tune --iperf3-port 0 --iperf2-port 0 >/run/serve.json 2>/run/serve.err &
until grep -q '"ready": *true' /run/serve.json; do
	kill -0 $! || { cat /run/serve.err; exit 1; }
	sleep 0.2
done
echo "vm: ready" >/dev/console

# A shell for those who test (talk.go), at a port that only one can open. A read
# of it ends while nobody is at the other side (Linux, virtio_console.c).
exec 3<>/dev/vport0p1
while :; do
	cat <&3 | sh >&3 2>&1
	sleep 0.1
done
