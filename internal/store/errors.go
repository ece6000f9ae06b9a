package store

import (
	"fmt"

	"thru/internal/fault"
)

// failed returns the error of an action that the database did not cause.
func failed(doing string, err error) error { return fmt.Errorf("store: %s: %w", doing, err) }

// unfit is the error of a result that no store accepts.
type unfit struct{ error }

// Unwrap returns the cause.
func (u unfit) Unwrap() error { return u.error }

// missing returns the error of an unknown id.
func missing(id string) error {
	return fault.New(fault.Usage, "list the stored results with thru history", "store: reading %s: %w", id, ErrNotFound)
}
