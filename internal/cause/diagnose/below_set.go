package diagnose

import (
	"strings"
)

// Has tells whether an address, with or without a prefix length, is the one that
// the other end sends to.
func (e *End) Has(addr string) bool {
	plain, _, _ := strings.Cut(addr, "/")
	for _, x := range e.Flow.Doc.EndPoints {
		if x.Name == e.Name && plain != "" && (x.Addr == plain || strings.HasPrefix(x.Addr, plain+":")) {
			return true
		}
	}
	return false
}
