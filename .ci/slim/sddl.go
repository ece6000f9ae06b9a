package main

import (
	"errors"
	"os"
	"path/filepath"
)

// sddl, which go-smb2 imports to read access lists, is under the LGPL. It asks whoever passes on a static binary to let
// the receiver link it again with another sddl. thru reads no access lists, so it gets a package of its own that reads none.
func sddl(dir string) error {
	license, err := os.ReadFile("LICENSE")
	if err != nil {
		return err
	}
	return errors.Join(
		create(filepath.Join(dir, "LICENSE"), string(license)),
		create(filepath.Join(dir, "go.mod"), "module github.com/cloudsoda/sddl\n"),
		create(filepath.Join(dir, "sddl.go"), emptySDDL),
	)
}

const emptySDDL = `// Package sddl stands in for a library that reads access lists.
package sddl

import "errors"

// SecurityDescriptor is empty.
type SecurityDescriptor struct{}

// Binary returns nothing.
func (*SecurityDescriptor) Binary() []byte { return nil }

// FromBinary refuses all access lists.
func FromBinary([]byte) (*SecurityDescriptor, error) {
	return nil, errors.New("sddl: this build reads no access lists")
}
`
