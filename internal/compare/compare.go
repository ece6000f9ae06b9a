// Package compare puts results beside each other and says what changed: of the
// figures, with their doubt, and of the hosts, their settings and the path. It
// is pure: documents in, a judgement out.
package compare
