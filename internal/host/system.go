package host

import (
	"slices"
	"strings"
	"syscall"
	"time"

	"thru/internal/host/tree"
	"thru/internal/measure"
)

// system tells of the host what no file shows.
type system interface {
	rules() (ruleset, error)           // of nftables, in the calling thread's network namespace
	entries(table string) (int, error) // of a table of iptables, "ip filter"
	adjtime() (timex, error)           // the state of the clock
	readCost() time.Duration           // of one reading of the clock
	free(path string) (int64, error)   // bytes of a file system that a user may still fill
	latencyLimit() (usec int, _ error) // longest time to leave an idle state that programs allow
}

// Reasons in words for people.
const (
	onlyLive = "only the running kernel tells it"
	notShown = "this kernel does not show it"
)

// denied tells whether a reason is want of rights. Notes hold text, and all
// errors of the kernel end in one of these words.
func denied(why string) bool {
	return strings.Contains(why, tree.OnlyRoot) || strings.HasSuffix(why, syscall.EACCES.Error()) || strings.HasSuffix(why, syscall.EPERM.Error())
}

// rootAdds names, each once, the facts that were denied, for one line for people.
func rootAdds(n notes) []string {
	var all []string
	facts := measure.NewVocabulary()
	for _, note := range n {
		if !denied(note.Why) {
			continue
		}
		if name := facts.Title(note.Fact); !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}
