package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"thru/internal/fault"
)

// Runner runs a command of the service manager, and returns what it printed.
type Runner func(ctx context.Context, command []string) (string, error)

// commandTime limits a command of a service manager: a start waits until the service is ready.
const commandTime = 2 * time.Minute

// Run runs a command on this host.
func Run(ctx context.Context, command []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// Install writes the files and starts the service. Each change is reported to did. If all is as it should be, it changes
// nothing, and returns false; restart restarts the service in any case.
func (p Plan) Install(ctx context.Context, run Runner, restart bool, did func(string)) (bool, error) {
	changed := restart
	for _, f := range p.Files {
		what, err := f.put(p.root)
		if err != nil {
			return changed, refused(err)
		}
		if what != "" {
			did(what)
			changed = true
		}
	}
	if !changed && p.Known == nil && p.Runs(ctx, run) {
		return false, nil
	}
	err := commands(ctx, run, p.Start, did)
	if err == nil || p.Why == nil {
		return true, err
	}
	if why, werr := run(ctx, p.Why); werr == nil && why != "" {
		err = fault.Failf("fix that, and run it again; thru service remove undoes it", "service: the service does not start: %s", fault.Printable(why))
	}
	return true, err
}

// Remove stops the service and removes the files. If there is no such service, it changes nothing, and returns false.
func (p Plan) Remove(ctx context.Context, run Runner, did func(string)) (bool, error) {
	if found, _ := p.Found(); len(found) == 0 && !p.Has(ctx, run) {
		return false, nil
	}
	if err := commands(ctx, run, p.Stop, did); err != nil {
		return false, err
	}
	for _, f := range p.Files {
		f.Text = ""
		what, err := f.put(p.root)
		if err != nil {
			return true, refused(err)
		}
		if what != "" {
			did(what)
		}
	}
	return true, commands(ctx, run, p.Clean, did)
}

// Found returns which files exist, and which are missing that a whole installation has.
func (p Plan) Found() (found, missing []string) {
	for _, f := range p.Files {
		switch {
		case exists(p.root, f.Path):
			found = append(found, f.Path)
		case !f.Optional:
			missing = append(missing, f.Path)
		}
	}
	return found, missing
}

// Installed reports whether the service is whole. Where the manager keeps services itself, a file alone is none.
func (p Plan) Installed(ctx context.Context, run Runner) bool {
	found, missing := p.Found()
	if p.Known != nil || len(found) == 0 {
		return p.Has(ctx, run)
	}
	return len(missing) == 0
}

// Has reports whether the manager has the service, or at least runs it.
func (p Plan) Has(ctx context.Context, run Runner) bool {
	if p.Known == nil {
		return p.Runs(ctx, run)
	}
	_, err := run(ctx, p.Known)
	return err == nil
}

// Runs reports whether the service runs.
func (p Plan) Runs(ctx context.Context, run Runner) bool {
	_, err := run(ctx, p.Running)
	return err == nil
}

// put writes the file, or removes it if its text is empty. It returns what it did; "" if the file was as it should be.
func (f File) put(root string) (string, error) {
	path := filepath.Join(root, f.Path)
	is, err := os.ReadFile(path)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !missing:
		return "", err
	case f.Text == "" && missing, !missing && f.Text == string(is):
		return "", nil
	case f.Text == "":
		err := os.Remove(path)
		if dir := filepath.Dir(path); strings.HasSuffix(dir, ".service.d") || filepath.Base(dir) == "thru" {
			_ = os.Remove(dir) // fails if it has other files
		}
		return "removed " + f.Path, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	temp := path + ".new"
	_ = os.Remove(temp) // of an installation that was killed: it may have another mode
	if err := errors.Join(os.WriteFile(temp, []byte(f.Text), f.Mode), os.Chmod(temp, f.Mode)); err != nil {
		return "", err
	}
	return "wrote " + f.Path, os.Rename(temp, path)
}

// refused words an error of a file.
func refused(err error) error {
	hint := "check the folder; run it again to complete the installation, or thru service remove to undo it"
	if errors.Is(err, fs.ErrPermission) {
		hint = "run it as root: services of the system belong to root"
	}
	return fault.Failf(hint, "service: installing: %w", err)
}

// commands runs commands until one fails that may not.
func commands(ctx context.Context, run Runner, all [][]string, did func(string)) error {
	for _, c := range all {
		name, optional := strings.CutPrefix(c[0], "-")
		c = append([]string{name}, c[1:]...)
		out, err := run(ctx, c)
		switch {
		case err == nil:
			did("ran " + strings.Join(c, " "))
		case !optional:
			return fault.Failf("thru service status shows what is there; run it again to complete, or thru service remove to undo",
				"service: running %s: %w: %s", strings.Join(c, " "), err, fault.Short(out))
		}
	}
	return ctx.Err()
}

// Words returns a command as a person would type it.
func Words(command []string) string { return strings.TrimPrefix(strings.Join(command, " "), "-") }

// NeedsRoot reports whether this user may not install services.
func NeedsRoot() error {
	if uid := os.Geteuid(); uid > 0 { // -1 on Windows
		return fault.Failf("run it as root: sudo thru service ...", "service: services of the system belong to root, and this user is not root")
	}
	return nil
}

// Describe returns what an installation would do, for a question.
func (p Plan) Describe() []string {
	var lines []string
	for _, f := range p.Files {
		if f.Text != "" {
			lines = append(lines, fmt.Sprintf("write %s (mode %04o)", f.Path, f.Mode))
		}
	}
	for _, c := range p.Start {
		lines = append(lines, "run   "+Words(c))
	}
	return lines
}
