package iperf3

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"thru/internal/iperfdoc"
)

// stamp returns a function that returns the start of a line of --timestamps; nil without them.
func stamp(format string) func() string {
	if format == "" {
		return nil
	}
	return func() string { return strftime(format, time.Now()) }
}

// layouts maps strftime(3) conversions to Go layouts.
var layouts = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'c': iperfdoc.StampLayout, 'd': "02", 'D': "01/02/06", 'e': "_2",
	'F': "2006-01-02", 'h': "Jan", 'H': "15", 'I': "03", 'j': "002", 'm': "01", 'M': "04", 'p': "PM", 'r': "03:04:05 PM",
	'R': "15:04", 'S': "05", 'T': "15:04:05", 'x': "01/02/06", 'X': "15:04:05", 'y': "06", 'Y': "2006", 'z': "-0700", 'Z': "MST",
}

// strftime formats a time as strftime(3) does in the C locale; it keeps unknown conversions.
func strftime(format string, t time.Time) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		switch letter := format[i]; letter {
		case '%':
			b.WriteByte('%')
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 's':
			b.WriteString(strconv.FormatInt(t.Unix(), 10))
		case 'k':
			fmt.Fprintf(&b, "%2d", t.Hour())
		default:
			layout, known := layouts[letter]
			if !known {
				layout = "%" + string(letter)
			}
			b.WriteString(t.Format(layout))
		}
	}
	return b.String()
}
