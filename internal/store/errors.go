package store

import (
	"errors"
	"fmt"

	"thru/internal/fault"
	"thru/internal/watch/record"
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

// Fit returns the samples that a store accepts, in the form in which they are stored. The error names the others; it is ErrPartly.
func Fit(samples []record.Sample) (fit []record.Sample, err error) {
	var troubles []error
	for _, x := range samples {
		x, err := stored(x)
		if err != nil {
			troubles = append(troubles, failed("keeping a sample", unfit{err}))
			continue
		}
		fit = append(fit, x)
	}
	if len(troubles) > 0 {
		err = fmt.Errorf("%w: %w", errors.Join(troubles...), ErrPartly)
	}
	return fit, err
}
