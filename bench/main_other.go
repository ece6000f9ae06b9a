//go:build !linux

// Bench compares thru with other tools. It needs Linux.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "bench: it measures on Linux only")
	os.Exit(1)
}
