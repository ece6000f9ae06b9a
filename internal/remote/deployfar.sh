# Runs at the far end of thru deploy: reports what is there, and then installs or removes the service. MARK begins each line
# for thru; FOLDER is where the program goes. It reads nothing before it has printed that.
umask 022
PATH="$PATH:/usr/sbin:/sbin"
export PATH
program=FOLDER/thru
become=
test "$(id -u)" = 0 || become="sudo -n"
t=
trap 'test -z "$t" || $become rm -f "$t"' EXIT
trap 'exit 1' HUP INT PIPE TERM
fail() {
	echo "MARK failed $(echo "$*" | tr '\n' ' ')"
	exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }
checksum() { if has sha256sum; then $become sha256sum "$1"; elif has shasum; then $become shasum -a 256 "$1"; fi 2>/dev/null | cut -d ' ' -f 1; }

root=no
$become true 2>/dev/null && root=yes
installed=no
test -e /etc/systemd/system/thru-serve.service.d/50-install.conf && installed=yes
sum=$(checksum "$program")
echo "MARK state $root $installed ${sum:-none} $("$program" version 2>/dev/null)"

read -r what bytes size sum coding || exit 0
case $what in
undo)
	if test -x "$program"; then
		out=$($become "$program" service remove serve --yes 2>&1) || fail "$out"
	fi
	if test -e "$program.deployed"; then # without that, somebody else has put the program there
		$become rm -f "$program" "$program.deployed"
		test ! -e "$program.before" || $become mv "$program.before" "$program"
	fi
	;;
install)
	echo "MARK send"
	IFS= read -r flags
	IFS= read -r join
	restart=
	if test "$bytes" != 0; then
		t=$($become mktemp "$program-XXXXXX") || fail "no file can be made in FOLDER"
		case $coding in gzip) head -c "$bytes" | gzip -dc ;; *) head -c "$bytes" ;; esac | $become tee "$t" >/dev/null
		got=$(checksum "$t")
		test "${got:-$sum}" = "$sum" && test "$($become wc -c "$t" | awk '{ print $1 }')" = "$size" || fail "the copy is damaged, or FOLDER is full"
		$become chmod 755 "$t"
		if test -e "$program" && test ! -e "$program.deployed"; then $become mv "$program" "$program.before"; fi
		$become touch "$program.deployed" && $become mv "$t" "$program" || fail "FOLDER cannot be written"
		t=
		restart=--restart
	fi
	eval "set -- $flags"
	out=$(printf '%s\n' "$join" | $become "$program" service install serve --yes $restart --controller - -- "$@" 2>&1) || fail "$out"
	;;
*) fail "this thru does not know the order $what" ;;
esac
echo "MARK done"
