package host

import (
	"slices"
	"strings"
	"syscall"
	"time"

	"thru/internal/host/tree"
	"thru/internal/measure"
)

// system returns facts about the host that no file shows.
type system interface {
	rules() (ruleset, error)           // of nftables, in the calling thread's network namespace
	entries(table string) (int, error) // of a table of iptables, "ip filter"
	adjtime() (timex, error)           // state of the clock
	readCost() time.Duration           // of one clock reading
	free(path string) (int64, error)   // bytes of a file system that a user may still fill
	latencyLimit() (usec int, _ error) // longest exit latency of idle states that programs allow
}

// Reasons in words for people.
const (
	onlyLive = "only the running kernel reports it"
	notShown = "this kernel does not show it"
)

// denied reports whether a reason is a lack of rights. Notes hold text, and
// the kernel's errors for a lack of rights end in one of these words.
func denied(why string) bool {
	return strings.Contains(why, tree.OnlyRoot) || strings.HasSuffix(why, syscall.EACCES.Error()) || strings.HasSuffix(why, syscall.EPERM.Error())
}

// rootAdds names the denied facts, each once, for one line for people.
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
