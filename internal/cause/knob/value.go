package knob

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Same reports whether two values have the same words, whatever their spacing.
func Same(a, b string) bool { return slices.Equal(strings.Fields(a), strings.Fields(b)) }

// Greatest returns the last number of a value: of "4096 131072 6291456" the maximum; 0 if there is none.
func Greatest(value string) int64 {
	fields := strings.Fields(value)
	if len(fields) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(fields[len(fields)-1], 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// BufferFor returns the buffer size, in bytes, that lets a connection have a window in flight: twice the window,
// since Linux keeps up to half for its bookkeeping and a sender also needs room for the next window
// (net/ipv4/tcp_input.c, tcp_sndbuf_expand); and half as much again, since the next round trip may be longer.
func BufferFor(window int64) int64 { return 3 * window }

// Sizes returns a value of TCPRmem or TCPWmem with that maximum: minimum and default are those before, or the
// kernel's if these are not known (tcp(7)).
func Sizes(id, before string, greatest int64) string {
	least := "4096 131072"
	if id == TCPWmem {
		least = "4096 16384"
	}
	isSize := func(text string) bool { n, err := strconv.ParseInt(text, 10, 64); return err == nil && n > 0 }
	if f := strings.Fields(before); len(f) == 3 && isSize(f[0]) && isSize(f[1]) && isSize(f[2]) {
		least = f[0] + " " + f[1]
	}
	return fmt.Sprintf("%s %d", least, greatest)
}

// Mask returns a mask of CPUs as in /sys, for values of RPS and XPS: groups of 32 in hexadecimal, the highest
// first, without leading zeros. No number is negative.
func Mask(cpus []int) string {
	words := []uint32{0}
	for _, c := range cpus {
		for c/32 >= len(words) {
			words = append(words, 0)
		}
		words[c/32] |= 1 << (c % 32)
	}
	slices.Reverse(words)
	out := fmt.Sprintf("%x", words[0])
	for _, w := range words[1:] {
		out += fmt.Sprintf(",%08x", w)
	}
	return out
}
