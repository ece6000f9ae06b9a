package rsync

import (
	"errors"
	"fmt"
	"os"

	"thru/internal/transfer"
)

// memory is where Linux has a file system in memory for everyone.
const memory = "/dev/shm"

// stage is a private folder for one file of so many bytes on its way: in memory
// where there is room, else on the disk. The caller removes it.
func stage(size int64) (string, error) {
	var errs []error
	for _, dir := range []string{memory, os.TempDir()} {
		if room, known := free(dir); known && size > room/2 {
			errs = append(errs, fmt.Errorf("%w in %s: %d bytes are free, half of them may be used", transfer.ErrFull, dir, room))
			continue
		}
		folder, err := os.MkdirTemp(dir, stageName())
		if err == nil {
			return folder, nil
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("making a folder for what is on its way: %w", errors.Join(errs...))
}

// stageName is how folders of this process begin.
func stageName() string { return fmt.Sprintf("thru-rsync-%d-", os.Getpid()) }
