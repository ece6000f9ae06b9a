package fault

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// packages are the packages whose errors begin with their name. arch_test.go checks that each folder of internal/ is listed here.
var packages = strings.Fields(`access advise agent alert audit bus bustest capture cause change cli clients compare console control diagnose disk engine enginetest esx fault frame ftp
	gate host hypervisor hypervisortest iperf2 iperf3 iperfdoc judge knob kvm library live loopback manpage measure metrics native nfs node oidc oidctest option own
	path pcapfile pcie place plan planfile platform postgres postgrestest probing published pump record remote report rsync runner runs schedule servers service session settings
	sftp shell smb sock stage stamp stat store support token trace transfer transfertest tree tune unit vsphere watch web why worker`)

// ours matches the name of a package at the beginning of an error or of a part of it.
var ours = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(^|: )(?:` + strings.Join(packages, "|") + `): `)
})

// Plain returns the text of an error without package names: "bus: dialing b: sock: connecting: refused" is "dialing b: connecting: refused".
func Plain(text string) string {
	for ours().MatchString(text) { // two consecutive names share a colon
		text = ours().ReplaceAllString(text, "$1")
	}
	return text
}

// Named returns a user's word, such as the name of an end point or of a file, for the beginning of an error: quoted where Plain would take it for a package.
func Named(word string) string {
	if slices.Contains(packages, word) {
		return strconv.Quote(word)
	}
	return word
}

// WithHint returns an error and its hint, in one line.
func WithHint(err error) string {
	if err == nil {
		return "no reason is known"
	}
	if h := Hint(err); h != "" {
		return Plain(err.Error()) + " (" + h + ")"
	}
	return Plain(err.Error())
}
