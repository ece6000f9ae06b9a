package main

import (
	"errors"
	"os"
	"path/filepath"
)

// smb logs in by Kerberos too, for which thru has no option: without it, a library and encoding/gob are not linked, nor
// initialized at every start. The texts of 1800 errors become a map when the first error is printed, not at every start.
func smb(dir string) error {
	status := filepath.Join(dir, "internal/erref/ntstatus.go")
	return errors.Join(
		os.Remove(filepath.Join(dir, "krb5.go")),
		rewrite(status, `^package erref$`, "package erref\n\nimport \"sync\"", 1),
		rewrite(status, `ntStatusStrings\[e\]`, "ntStatusStrings()[e]", 1),
		rewrite(status, `^var ntStatusStrings = map\[NtStatus\]string\{$`, "var ntStatusStrings = sync.OnceValue(func() map[NtStatus]string {\n\treturn map[NtStatus]string{", 1),
		rewrite(status, `^\}\n\z`, "}\n})\n", 1),
	)
}
