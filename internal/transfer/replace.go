package transfer

import (
	"fmt"
	"path"
)

// Replace renames temp on a server whose rename may replace nothing. It first
// moves an existing file aside, and back where the rename fails, so that it
// is never lost; where even that fails, the error says where it is. Where the
// old file could not be removed at the end, the error is Left.
func Replace(temp, name string, rename func(from, to string) error, remove func(string) error) error {
	cause := rename(temp, name)
	if cause == nil {
		return nil
	}
	aside := TempName(name)
	if rename(name, aside) != nil {
		return cause // there is no file, or it may not be moved: it is not the obstacle, or not ours to replace
	}
	if err := rename(temp, name); err != nil {
		if back := rename(aside, name); back != nil {
			return fmt.Errorf("%w; the old file is now %s: restoring its name: %w", err, aside, back)
		}
		return err
	}
	if err := remove(aside); err != nil {
		return &Left{Path: aside, Cause: fmt.Errorf("transfer: %s is replaced", path.Base(name)), Err: err}
	}
	return nil
}
