//go:build !linux

package agent

import (
	"errors"
	"os"
)

// nameless files are of Linux alone.
func nameless(*os.Root) (*os.File, error) { return nil, errors.ErrUnsupported }

func linkNameless(*os.File, *os.Root, string) error { return errors.ErrUnsupported }
