//go:build !linux

package disk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// space is what a file system reports about itself.
type space struct {
	free           int64
	inMemory, deaf bool
}

// Possible returns why this system cannot measure disks.
func Possible() error { return fmt.Errorf("disk: measuring on this system: %w", errors.ErrUnsupported) }

func create(*os.Root) (*os.File, error) { return nil, errors.ErrUnsupported }
func setDirect(*os.File) error          { return errors.ErrUnsupported }
func isDirect(*os.File) bool            { return false }
func dropCache(*os.File) error          { return errors.ErrUnsupported }
func spaceOf(*os.File) (space, error)   { return space{}, errors.ErrUnsupported }
func memoryBytes() int64                { return 0 }
func bind(*exec.Cmd)                    {}
