package remote

import (
	_ "embed"
	"strings"
)

// farScript makes the shell of remoteScript run another script, of so many bytes: the
// rest of the line only fills the fields that the shell reads.
const farScript = "%d 0 0 script\n"

// vmkernelScript returns the script that continues remoteScript at an ESXi host:
//
//	iperf3 VERSION, client ADDRESS, firewall ..., sets ..., rules ..., allowed ..., sockets ...
//	asked                       the report is complete; then it reads: RULESET PORT ADDRESS, - for no rule set
//	serving                     iperf3 listens; then it reads a line every few seconds until there are no more
//	restored                    the host is as before
//	left RULESET                it is not: the rule set could not be disabled
//
// A folder with a fixed name records each change before it is made: if this shell is
// killed, or no line has come for a while, a keeper process reverts the changes; if
// both are killed, the next script does. Plain POSIX, for busybox. THRU_IPERF3 in the
// login's environment names another program.
func vmkernelScript(mark string) string { return strings.ReplaceAll(vmkernelFar, "MARK", mark) }

//go:embed vmkernelfar.sh
var vmkernelFar string
