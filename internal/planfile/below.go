package planfile

import (
	"net/url"
	"slices"
)

// mostHypervisors bounds those that a plan names.
const mostHypervisors = 64

// readHypervisors reads those that may have the end points. A plan is passed on,
// so no password stands in it.
func (f *File) readHypervisors() error {
	n, ok := f.at("hypervisors")
	if !ok {
		return nil
	}
	items, err := f.list(n, "hypervisors", "[vsphere://reader@vcenter.example]")
	if err != nil {
		return err
	}
	if len(items) > mostHypervisors {
		return f.errorf(n, "take fewer", "there are more than %d hypervisors", mostHypervisors)
	}
	for _, x := range items {
		at, err := f.nameOf(x, "hypervisor")
		if err != nil {
			return err
		}
		if u, err := url.Parse(at); err == nil && u.User != nil {
			if _, secret := u.User.Password(); secret {
				return f.errorf(x, "leave it out: it comes from THRU_PASSWORD, or is asked for", "a password does not belong in a plan")
			}
		}
		if slices.Contains(f.below, at) {
			return f.errorf(x, "name it once", "the hypervisor %q is there twice", clip(at))
		}
		f.below = append(f.below, at)
	}
	return nil
}
