package host

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"thru/internal/measure"
)

// errHidden is the reason for an empty file system: containers mount an empty
// one over it.
func errHidden(name string) error { return errors.New(name + " is empty: a container hides it") }

// security reads what may slow down or forbid system calls.
func (f FS) security(n *notes) *measure.Security {
	var s measure.Security
	if v := keeper[string](n, "security.security_modules")(f.Text("sys/kernel/security/lsm")); v != nil {
		s.LSMs = strings.FieldsFunc(*v, func(r rune) bool { return r == ',' })
	}
	s.SELinux = keeper[string](n, "security.selinux")(f.selinux())
	s.AppArmor = keeper[string](n, "security.apparmor")(f.apparmor())
	s.Seccomp = keeper[string](n, "security.seccomp")(f.seccomp())
	s.Mitigations = keeper[string](n, "security.cpu_mitigations")(f.mitigations())
	if s.LSMs == nil && s.SELinux == nil && s.AppArmor == nil && s.Seccomp == nil && s.Mitigations == nil {
		return nil
	}
	return &s
}

// selinux reads the mode. The kernel has the file system only where SELinux
// runs (security/selinux/selinuxfs.c), mounted or not.
func (f FS) selinux() (string, error) {
	s, err := f.Text("sys/fs/selinux/enforce")
	switch {
	case err == nil && s == "1":
		return "enforcing", nil
	case err == nil && s == "0":
		return "permissive", nil
	}
	kinds, e := f.Read("proc/filesystems")
	if e != nil {
		return "", e
	}
	if !slices.Contains(strings.Fields(string(kinds)), "selinuxfs") {
		return "disabled", nil
	}
	if err == nil {
		err = fmt.Errorf("/sys/fs/selinux/enforce holds %s", quoted(s))
	}
	return "", err
}

// apparmor reads the profile and mode of this process. Since Linux 5.8 each
// security module has its own file; before, the first one has it
// (Documentation/admin-guide/LSM/index.rst).
func (f FS) apparmor() (string, error) {
	on, err := f.Text("sys/module/apparmor/parameters/enabled")
	if err != nil {
		if names, e := f.Names("sys/module"); e == nil && len(names) > 0 && !slices.Contains(names, "apparmor") {
			return "disabled", nil
		}
		return "", err
	}
	if on != "Y" {
		return "disabled", nil
	}
	s, err := f.Text("proc/self/attr/apparmor/current")
	if err != nil {
		s, err = f.Text("proc/self/attr/current")
	}
	s = strings.Trim(s, "\x00\n ")
	if err == nil && s == "" {
		err = errors.New("the kernel reports no profile")
	}
	return s, err
}

// seccomp reads the filter of this process's system calls (proc_pid_status(5)).
func (f FS) seccomp() (string, error) {
	all, err := f.Fields("proc/self/status")
	if err != nil {
		return "", err
	}
	for i, name := range []string{"none", "strict", "filter"} {
		if all["Seccomp"] == fmt.Sprint(i) {
			return name, nil
		}
	}
	return "", errors.New(notShown)
}

// mitigations reads the kernel parameter for CPU vulnerabilities
// (Documentation/admin-guide/kernel-parameters.txt); "default" where it is
// not set.
func (f FS) mitigations() (string, error) {
	line, err := f.Text("proc/cmdline")
	if err != nil {
		return "", err
	}
	value := "default"
	for _, word := range strings.Fields(line) {
		if word == "--" {
			break // the rest goes to init
		}
		if v, ok := strings.CutPrefix(word, "mitigations="); ok {
			value = v // the last one counts
		}
	}
	return value, nil
}
