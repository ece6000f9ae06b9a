package unit

import (
	"slices"
	"sync"
)

// Mapped returns of(x) for each x, in order; nil for none.
func Mapped[T, U any](xs []T, of func(T) U) (all []U) {
	for _, x := range xs {
		all = append(all, of(x))
	}
	return all
}

// Filtered returns the elements for which is(x) is true, in order; nil for none.
func Filtered[T any](xs []T, is func(T) bool) (all []T) {
	for _, x := range xs {
		if is(x) {
			all = append(all, x)
		}
	}
	return all
}

// CountFunc counts the elements for which is(x) is true.
func CountFunc[T any](xs []T, is func(T) bool) (n int) {
	for _, x := range xs {
		if is(x) {
			n++
		}
	}
	return n
}

// Trues counts the true ones.
func Trues(all ...bool) int { return CountFunc(all, func(is bool) bool { return is }) }

// Unique returns each element once, in the order of its first place; nil for none.
func Unique[T comparable](xs []T) (all []T) {
	for _, x := range xs {
		if !slices.Contains(all, x) {
			all = append(all, x)
		}
	}
	return all
}

// AtMost calls do for 0 to n-1, at most width at a time.
func AtMost(n, width int, do func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(n, width) {
		wg.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}
