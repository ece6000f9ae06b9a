//go:build !linux

package agent

import (
	"errors"
	"os"
)

// nameless files exist only on Linux.
func nameless(*os.Root) (*os.File, error) { return nil, errors.ErrUnsupported }

func linkNameless(*os.File, *os.Root, string) error { return errors.ErrUnsupported }
