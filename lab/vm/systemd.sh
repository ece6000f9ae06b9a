#!/bin/sh
# The life of the package in a VM with systemd (TestSystemd). The console gets
# "== STEP SECONDS" before the output of each step. A step that fails does not
# end this: the test reads the output.
export HOME=/root NO_COLOR=1 COLUMNS=80 SYSTEMD_COLORS=0 SYSTEMD_URLIFY=0
step() { echo "== $1 $(cut -d. -f1 /proc/uptime)"; }
step boot
systemctl is-system-running --wait
step install
dpkg -i /root/thru_*.deb
systemctl is-enabled thru-serve thru-control
step serve
systemctl start thru-serve
systemctl is-active thru-serve
step security
for unit in thru-serve thru-control thru-watch; do
	systemd-analyze security --no-pager $unit | tail -n 1
done
step measure
thru serve --print-join --state /var/lib/thru-serve | thru join me
thru test me --one-way -t 1
step reload
systemctl reload thru-serve && echo reloaded
thru service status
step watch
plan() { printf 'thru: 1\nend_points: [{name: me, at: me}]\npairs: [{from: local, to: me}]\nwatch: {probes: %s, tcp: none}\n' "$1" >/etc/thru/watch.yaml; }
plan 1s
thru serve --print-join --state /var/lib/thru-serve | XDG_CONFIG_HOME=/var/lib/thru-watch/config thru join me
thru service install watch --yes -- /etc/thru/watch.yaml
systemctl show --property=Type,ActiveState,StatusText thru-watch
step watch-reload
plan 2s
systemctl reload thru-watch && echo reloaded
sleep 10
plan oops
systemctl reload thru-watch || echo refused
systemctl is-active thru-watch
step watch-stop
sleep 25
systemctl stop thru-watch
systemctl show --property=ActiveState,Result,ExecMainStatus thru-watch
journalctl --no-pager -o cat -u thru-watch
step port-in-use
systemctl start thru-control 2>&1
systemctl show --property=StatusText --value thru-control
step purge
dpkg --purge thru
systemctl is-active thru-serve
step left
find / -xdev -name 'thru*' ! -path '/root/*' ! -path '*/thru-watch/*' ! -path '/proc/*' ! -path '/sys/*' | sort
step end
systemctl poweroff 2>/dev/null
