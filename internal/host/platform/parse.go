package platform

import "io"

// Row is a line of a table, or a block of "key: value" lines, by headings
// without spaces, punctuation and case: "portid" of "Port ID". The title of a
// block is under "".
type Row = row

// Table reads a table of ESXi or the like: headings, a line of dashes as wide as
// each column, and rows.
func Table(r io.Reader) ([]Row, error) { return table(r) }

// Blocks reads blocks of "key: value" lines; one begins at an empty line and at
// a line that is not indented, which is its title.
func Blocks(r io.Reader) ([]Row, error) { return blocks(r) }

// Clean makes foreign output fit to be shown: valid UTF-8 without control characters.
func Clean(text string) string { return clean(text) }

// Plain tells whether a name may be an argument as it stands.
func Plain(name string) bool { return plain(name) }

// Why says in a few words why a command failed, for not_checked.
func Why(err error) string { return why(err) }
