package stat

import "thru/internal/measure"

// Compare fills d.Comparisons where groups differ in the axis "variant". It
// comes after Groups.
func Compare(d *measure.Document) {}
