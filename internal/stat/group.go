package stat

import "thru/internal/measure"

// Groups fills d.Groups.
func Groups(d *measure.Document) {}
