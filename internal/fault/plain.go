package fault

import (
	"regexp"
	"strings"
)

// packages are those whose errors begin with their name. arch_test.go holds that
// each folder of internal/ is here.
var packages = strings.Fields(`advise agent bus bustest capture cause clients cli compare control diagnose disk engine enginetest esx fault frame
	ftp gate host hypervisor hypervisortest iperf2 iperf3 iperfdoc knob kvm live loopback measure mover native nfs option own path pcapfile pcie place plan
	planfile platform published pump report rsync servers sftp smb sock stage stat store storetest token trace transfer transfertest tune unit
	vsphere web worker`)

// inside is the name of a package within an error, and working one before what it
// was doing: an end point may have the name of a package, but does nothing.
var (
	inside  = regexp.MustCompile(`: (?:` + strings.Join(packages, "|") + `): `)
	working = regexp.MustCompile(`^(?:` + strings.Join(packages, "|") + `): ([a-z]+ing |[A-Za-z]+ing: )`)
	ours    = regexp.MustCompile(`^(?:bus|cli|gate|iperfdoc|pcapfile|planfile|sock|unit): `)
)

// Plain is the text of an error without the names of the packages that it passed:
// "bus: dialing b: sock: connecting: refused" is "dialing b: connecting: refused".
func Plain(text string) string {
	for inside.MatchString(text) { // two names in a row share a colon
		text = inside.ReplaceAllString(text, ": ")
	}
	return ours.ReplaceAllString(working.ReplaceAllString(text, "$1"), "")
}
