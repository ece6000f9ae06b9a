package planfile

import (
	"net/url"
	"slices"
	"strings"
)

// mostHypervisors limits the hypervisors of a plan.
const mostHypervisors = 64

// hypervisorForms are the forms of an address.
const hypervisorForms = "vsphere://USER@HOST, ssh://root@HOST, or an end point on which QEMU runs"

// readHypervisors reads the hypervisors that may run the end points. It refuses passwords, since plans are
// shared.
func (f *File) readHypervisors() (err error) {
	name := func(at string) string { return at }
	f.hypervisors, err = entries(f, "hypervisors", "[vsphere://reader@vcenter.example]", mostHypervisors, name, once{"hypervisor", "name it once"}, f.readHypervisor)
	return err
}

func (f *File) readHypervisor(x *node) (string, error) {
	at, err := f.nameOf(x, "hypervisor")
	if err != nil {
		return "", err
	}
	if u, err := url.Parse(at); err == nil && u.User != nil {
		if _, secret := u.User.Password(); secret || strings.Contains(u.User.Username(), ":") {
			return "", f.errorf(x, "leave it out: it comes from THRU_PASSWORD, or is asked for", "a password does not belong in a plan")
		}
	}
	scheme, rest, isURL := strings.Cut(at, "://")
	if isURL && !slices.Contains([]string{"vsphere", "ssh"}, strings.ToLower(scheme)) {
		return "", f.errorf(x, hypervisorForms, "%s:// is not a hypervisor", clip(scheme))
	}
	host := at
	if isURL { // a path is checked when it is connected
		rest, _, _ = strings.Cut(rest, "/")
		host = scheme + "://" + rest
	}
	if why := badAddress(scheme, host, isURL); why != "" {
		return "", f.errorf(x, hypervisorForms, "%q is not a hypervisor: %s", clip(at), why)
	}
	return at, nil
}
