// Package service runs thru under the service managers of the systems: it writes what they read (systemd, launchd, rc.d,
// SMF, the service manager of Windows), and talks to systemd while thru runs (sd_notify, watchdog, passed sockets).
package service

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"thru/internal/fault"
	"thru/packaging"
)

// Unit is a role of thru that becomes a service.
type Unit struct {
	Role   string   // serve, control or watch
	Binary string   // absolute path of thru
	Flags  []string // for the role
	Allow  []string // privileges beyond measuring
	Writes []string // folders that it writes beside the state folder
	Reads  []string // files that it reads
	Join   string   // join string of the controller to serve under; empty: none
}

// File is a file of a service.
type File struct {
	Path, Text string // an empty text: there must be no such file
	Mode       fs.FileMode
	Optional   bool // a service is whole without it
}

// Plan is how a system runs a service. A command that begins with "-" may fail.
type Plan struct {
	Manager     string
	Files       []File
	Start, Stop [][]string // after the files are written; before they are removed
	Clean       [][]string // after they are removed
	Running     []string   // succeeds if the service runs
	Known       []string   // succeeds if the manager has the service, where it keeps flags itself: the commands always run; nil: files tell
	Why         []string   // prints why it does not start; nil: the log says it
	Logs        string     // command that prints the log
	State       string     // folder that stays when the service is removed

	root string // of the file system; "" but in tests
}

// Name returns the name of the service.
func (u Unit) Name() string { return "thru-" + u.Role }

// manager is a row of the table of service managers.
type manager struct {
	goos  string
	found string // a path that exists where it runs
	plan  func(u Unit, root string) Plan
}

func managers() []manager {
	return []manager{
		{"linux", "/run/systemd/system", systemd},
		{"darwin", "/bin/launchctl", launchd},
		{"freebsd", "/etc/rc.subr", rcd},
		{"illumos", "/usr/sbin/svcadm", smf},
		{"solaris", "/usr/sbin/svcadm", smf},
		{"windows", "", windows},
	}
}

// Plan returns how this system runs the service.
func (u Unit) Plan() (Plan, error) { return u.planOn(runtime.GOOS, "") }

func (u Unit) planOn(goos, root string) (Plan, error) {
	i := slices.IndexFunc(managers(), func(m manager) bool { return m.goos == goos })
	if i < 0 {
		return Plan{}, fault.Failf("start it by what starts programs here: thru "+u.Role, "service: thru knows no service manager of %s", goos)
	}
	m := managers()[i]
	if _, err := os.Stat(filepath.Join(root, m.found)); m.found != "" && err != nil {
		return Plan{}, fault.Failf("start it by what starts programs here, such as the command of a container: thru "+u.Role,
			"service: no service manager that thru knows runs here (%s is missing)", m.found)
	}
	p := m.plan(u, root)
	p.root = root
	return p, nil
}

// hidden are folders whose programs a hardened service cannot see.
func hidden() []string { return []string{"/home/", "/root/", "/run/user/", "/tmp/", "/var/tmp/"} }

// Check refuses a program that the service could not start, and files that it could not read.
func (u Unit) Check() error {
	for _, dir := range hidden() {
		if runtime.GOOS == "linux" && strings.HasPrefix(u.Binary, dir) {
			return fault.Failf("copy it first, and run that one: install -m 755 "+u.Binary+" /usr/local/bin/thru",
				"service: the service could not start %s: it does not see %s", u.Binary, strings.TrimSuffix(dir, "/"))
		}
		for _, file := range u.Reads {
			if runtime.GOOS == "linux" && strings.HasPrefix(file, dir) {
				return fault.Failf("copy it first, and name that one: install -D -m 644 "+file+" /etc/thru/"+filepath.Base(file),
					"service: the service could not read %s: it does not see %s", file, strings.TrimSuffix(dir, "/"))
			}
		}
	}
	return nil
}

// packaged returns a file of package packaging.
func packaged(name string) string {
	text, err := packaging.Files.ReadFile(name)
	if err != nil {
		return "" // a test requires each file
	}
	return string(text)
}

// arguments returns the command line of the service; controller is the value of its flag --controller.
func (u Unit) arguments(state, controller string) []string {
	args := []string{u.Binary, u.Role, "--state", state}
	if u.Join != "" {
		args = append(args, "--controller", controller)
	}
	return append(args, u.Flags...)
}

// stdin returns the file that the service reads the join string from.
func (u Unit) stdin() string {
	if u.Join == "" {
		return "/dev/null"
	}
	return u.joinFile().Path
}

// joinFile returns the file with the join string of the controller.
func (u Unit) joinFile() File {
	f := File{Path: "/etc/thru/" + u.Role + ".join", Mode: 0o600, Optional: true}
	if u.Join != "" {
		f.Text = u.Join + "\n"
	}
	return f
}

// exists reports whether a path below root exists. A path that cannot be read exists.
func exists(root, path string) bool {
	_, err := os.Lstat(filepath.Join(root, path))
	return !errors.Is(err, fs.ErrNotExist)
}
