#!/bin/sh
# PROVIDE: thru_@ROLE@
# REQUIRE: NETWORKING
# KEYWORD: shutdown

. /etc/rc.subr

name=thru_@ROLE@
rcvar=thru_@ROLE@_enable
extra_commands=reload
pidfile=/var/run/thru_@ROLE@.pid
procname=@BINARY@
load_rc_config $name
: ${thru_@ROLE@_enable:=NO}

command=/usr/sbin/daemon
start_cmd=thru_start

thru_start() {
	umask 077
	/usr/sbin/daemon -S -T thru-@ROLE@ -p $pidfile @COMMAND@ <@STDIN@
}

run_rc_command "$1"
