// Package packaging holds the files by which systems run thru as a service.
package packaging

import "embed"

// Files holds the units of systemd as packages install them, and templates of the other systems: @NAME@ is replaced.
//
//go:embed systemd launchd.plist rc.d smf.xml
var Files embed.FS
