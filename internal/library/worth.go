package library

import (
	"thru/internal/measure"
	"thru/internal/stat"
)

// Tuned reports whether a tuning has a result without any figure: a rollback, or
// advice.
func Tuned(doc *measure.Document) bool {
	return doc.Tuning != nil && (doc.Error == nil || len(doc.Tuning.Restored)+len(doc.Tuning.Attempts) > 0)
}

// moved reports whether a transfer has results.
func moved(doc *measure.Document) bool { return doc.Transfer != nil && len(doc.Transfer.Runs) > 0 }

// Measured reports whether a document has any figure.
func Measured(doc *measure.Document) bool {
	for _, c := range doc.Cells {
		if stat.Measured(&c) {
			return true
		}
	}
	return len(doc.Disks) > 0 || moved(doc) || doc.Command == "inventory" && len(doc.Inventories) > 0
}

// WorthKeeping reports whether a document has any result.
func WorthKeeping(doc *measure.Document) bool {
	t := doc.Tuning
	return Measured(doc) || doc.Command == "check" && len(doc.Gates) > 0 || t != nil && len(t.Attempts) > 0
}
