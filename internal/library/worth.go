package library

import (
	"thru/internal/measure"
	"thru/internal/stat"
)

// Tuned tells of a tuning that has something to say without any figure: of a
// rollback, or of advice.
func Tuned(doc *measure.Document) bool {
	return doc.Tuning != nil && (doc.Error == nil || len(doc.Tuning.Restored)+len(doc.Tuning.Attempts) > 0)
}

// moved tells of a transfer of which anything is known.
func moved(doc *measure.Document) bool { return doc.Transfer != nil && len(doc.Transfer.Runs) > 0 }

// Measured is false where an error came before any figure.
func Measured(doc *measure.Document) bool {
	for _, c := range doc.Cells {
		if stat.Measured(&c) {
			return true
		}
	}
	return len(doc.Disks) > 0 || moved(doc) || doc.Command == "inventory" && len(doc.Inventories) > 0
}

// WorthKeeping tells whether a document says anything that was found out.
func WorthKeeping(doc *measure.Document) bool {
	t := doc.Tuning
	return Measured(doc) || doc.Command == "check" && len(doc.Gates) > 0 || t != nil && len(t.Attempts) > 0
}
