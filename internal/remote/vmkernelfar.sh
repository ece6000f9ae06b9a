p=${THRU_IPERF3:-/usr/lib/vmware/vsan/bin/iperf3}; l=${TMPDIR:-/tmp}/thru-vmkernel; ours=; k=
say() { while IFS= read -r x; do echo "MARK $1 $x"; done; }
isours() { { ps -c; ps ax; } 2>/dev/null | grep iperf3 | grep -qw "$1"; }
undo() {
	trap "" HUP INT PIPE TERM
	mkdir "$l/undoing" 2>/dev/null || return 0
	n=$(cat "$l/server" 2>/dev/null); test -n "$n" && isours "$n" && kill "$n" 2>/dev/null
	r=$(cat "$l/ruleset" 2>/dev/null)
	if test -n "$r"; then
		esxcli network firewall ruleset set -r "$r" -e false >/dev/null 2>&1 || esxcli network firewall ruleset set -r "$r" -e false >/dev/null 2>&1 ||
			{ echo "MARK left $r"; rmdir "$l/undoing"; return 0; }
	fi
	c=$(cat "$l/copy" 2>/dev/null); test -n "$c" && rm -f "$c"
	rm -rf "$l"
	echo "MARK restored"
}
gone() { test -z "$k" || kill "$k" 2>/dev/null; test -z "$ours" || undo; }
keep() {
	trap "" HUP INT PIPE
	last=; missed=0
	while sleep 3; do
		kill -0 $$ 2>/dev/null || break
		now=$(cat "$l/beat" 2>/dev/null)
		if test "$now" = "$last"; then missed=$((missed + 1)); else missed=0; last=$now; fi
		test $missed -lt 7 || break
		test ! -f "$l/beat" || : > "$l/said"
	done
	undo
	kill -TERM $$ 2>/dev/null
}
serve() {
	"$1" -s -p "$port" -B "$bind" >>"$l/said" 2>&1 </dev/null &
	n=$!
	echo $n > "$l/server"
	sleep 1
	kill -0 $n 2>/dev/null
}

test -f "$p" || fail "$p does not exist"
esxcli network firewall get 2>&1 | say firewall
esxcli network firewall ruleset list 2>&1 | say sets
esxcli network firewall ruleset rule list 2>&1 | say rules
esxcli network firewall ruleset allowedip list 2>/dev/null | say allowed
esxcli network ip connection list 2>/dev/null | say sockets
"$p" --version 2>&1 | head -n 1 | say iperf3
echo "MARK client ${SSH_CONNECTION%% *}"
echo "MARK asked"
read -r rule port bind || exit 0

if mkdir "$l" 2>/dev/null; then :; else
	sleep 1
	for n in $(cat "$l/pids" 2>/dev/null); do
		kill -0 "$n" 2>/dev/null && fail "another thru uses this host's iperf3: try again when it has ended"
	done
	rmdir "$l/undoing" 2>/dev/null
	undo >/dev/null
	trap "exit 1" HUP INT PIPE TERM
	mkdir "$l" || fail "cannot revert the changes of a killed thru in $l"
fi
ours=yes
echo $$ > "$l/pids"
keep >/dev/null 2>&1 </dev/null &
k=$!
echo $k >> "$l/pids"
if test "$rule" != -; then
	echo "$rule" > "$l/ruleset"
	why=$(esxcli network firewall ruleset set -r "$rule" -e true 2>&1) || fail "cannot enable the rule set $rule: $why"
fi
c=
for f in "$p" "$l/iperf3" "$p.thru"; do
	: > "$l/said"
	if test "$f" != "$p"; then
		echo "$f" > "$l/copy"
		cp "$p" "$f" 2>>"$l/said" && chmod 700 "$f" || continue
	fi
	serve "$f" && c=$f && break
	grep -qi "not permitted" "$l/said" || break
	test "$f" = "$p" || rm -f "$f"
done
test -n "$c" || fail "its iperf3 does not start: $(tail -n 1 "$l/said")"
echo "MARK serving $c"
while read -r x; do echo "$x" > "$l/beat"; done
exit 0
