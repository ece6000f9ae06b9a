package transfer

import (
	"fmt"
	"path"
)

// Replace gives temp the name of a file at a server whose rename may replace
// nothing. What has the name is moved aside first and back where the new one does
// not get it, so nothing of it is ever lost; where even that fails, the error says
// where it is. Where it could not be removed in the end, the error is Left.
func Replace(temp, name string, rename func(from, to string) error, remove func(string) error) error {
	cause := rename(temp, name)
	if cause == nil {
		return nil
	}
	aside := TempName(name)
	if rename(name, aside) != nil {
		return cause // nothing is there, or it may not be moved: it is not what is in the way, or not ours to replace
	}
	if err := rename(temp, name); err != nil {
		if back := rename(aside, name); back != nil {
			return fmt.Errorf("%w; what was there is now %s: giving it its name again: %w", err, aside, back)
		}
		return err
	}
	if err := remove(aside); err != nil {
		return &Left{Path: aside, Cause: fmt.Errorf("transfer: %s is replaced", path.Base(name)), Err: err}
	}
	return nil
}
