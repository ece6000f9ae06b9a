// Package examples holds plan files to start from. Each is ready to run, and
// tests run each. docs/plan.md describes the keys.
package examples

import "embed"

// Files are the plan files, by their names.
//
//go:embed *.yaml
var Files embed.FS
