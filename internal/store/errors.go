package store

import (
	"fmt"

	"thru/internal/fault"
)

// failed is the error of doing something that no database is to blame for.
func failed(doing string, err error) error { return fmt.Errorf("store: %s: %w", doing, err) }

// unfit is the error of a result that no store takes.
type unfit struct{ error }

// Unwrap returns the cause.
func (u unfit) Unwrap() error { return u.error }

// missing is the error of an id that is not there.
func missing(id string) error {
	return fault.New(fault.Usage, "thru history lists what is kept", "store: reading %s: %w", id, ErrNotFound)
}
