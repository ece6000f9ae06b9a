package remote

import (
	_ "embed"
	"strings"
)

// farScript asks the shell of remoteScript to go on with another script, of so
// many bytes: the rest of its line is there for the shell's sake.
const farScript = "%d 0 0 script\n"

// vmkernelScript goes on at an ESXi host where remoteScript has begun:
//
//	iperf3 VERSION, client ADDRESS, firewall ..., sets ..., rules ..., allowed ..., sockets ...
//	asked                       all of that is said; then it reads: RULESET PORT ADDRESS, - for no rule set
//	serving                     iperf3 listens; then it reads a line every few seconds until there are no more
//	restored                    the host is as before
//	left RULESET                it is not: the rule set could not be disabled
//
// A folder of a known name holds what has to be undone, before it is done: where
// this shell is killed, a keeper beside it undoes that, and so it does where no
// line has come for a while; where both are killed, the next one does. Plain
// POSIX, for busybox. THRU_IPERF3 of the login names another program.
func vmkernelScript(mark string) string { return strings.ReplaceAll(vmkernelFar, "MARK", mark) }

//go:embed vmkernelfar.sh
var vmkernelFar string
