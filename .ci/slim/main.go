// Slim writes DIR/slim.mod and DIR/slim.work, with which thru builds smaller, starts sooner, and contains no code under
// the LGPL: slim GO DIR. GO is the go command.
//
// Both files replace libraries by changed copies in DIR/slim. A build by go.mod, such as that of `go install`, uses the
// libraries as they are. Slim refuses a library whose text it does not know.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// library is a module that is replaced.
type library struct {
	path   string
	change func(dir string) error // of its copy
	own    bool                   // change writes all of it: nothing is copied
}

// libraries lists what is replaced.
func libraries() []library {
	return []library{
		{path: "github.com/alecthomas/kong", change: kong},
		{path: "github.com/vmware/govmomi", change: govmomi},
		{path: "github.com/nats-io/nats-server/v2", change: natsServer},
		{path: "github.com/nats-io/nats.go", change: natsClient},
		{path: "github.com/cloudsoda/go-smb2", change: smb},
		{path: "modernc.org/sqlite", change: sqlite},
		{path: "github.com/cloudsoda/sddl", change: sddl, own: true},
	}
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: slim GO DIR")
		os.Exit(2)
	}
	if err := slim(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "slim:", err)
		os.Exit(1)
	}
}

// slim makes the copies, and then the files that name them.
func slim(command, dir string) error {
	sources, err := download(command)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(dir, "slim")); err != nil {
		return err
	}
	edit, work := []string{"mod", "edit"}, ""
	for _, l := range libraries() {
		short := "slim/" + shortName(l.path)
		to := filepath.Join(dir, short)
		if !l.own {
			err = copySources(sources[l.path], to)
		}
		if err = errors.Join(err, os.MkdirAll(to, 0o755)); err == nil {
			err = l.change(to)
		}
		if err != nil {
			return fmt.Errorf("changing %s: %w", l.path, err)
		}
		edit = append(edit, "-replace", l.path+"=./"+filepath.ToSlash(dir)+"/"+short)
		work += "replace " + l.path + " => ./" + short + "\n"
	}
	return errors.Join(modules(command, dir, edit), workspace(command, dir, work))
}

// modules writes slim.mod with these edits, and slim.sum.
func modules(command, dir string, edit []string) error {
	for from, to := range map[string]string{"go.sum": "slim.sum", "go.mod": "slim.mod"} {
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, to), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	_, err := output(command, append(edit, filepath.Join(dir, "slim.mod"))...)
	return err
}

// workspace writes slim.work: the same for programs that pass no -modfile to go.
func workspace(command, dir, replace string) error {
	version, err := output(command, "list", "-m", "-f", "{{.GoVersion}}")
	if err != nil {
		return err
	}
	text := fmt.Sprintf("go %s\n\nuse ..\n\n%s", strings.TrimSpace(string(version)), replace)
	return os.WriteFile(filepath.Join(dir, "slim.work"), []byte(text), 0o644)
}

// download returns the folders of the libraries that are copied.
func download(command string) (map[string]string, error) {
	args := []string{"mod", "download", "-json"}
	for _, l := range libraries() {
		if !l.own {
			args = append(args, l.path)
		}
	}
	list, err := output(command, args...)
	if err != nil {
		return nil, err
	}
	dirs := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(list)); ; {
		var m struct{ Path, Dir string }
		if err := d.Decode(&m); err == io.EOF {
			return dirs, nil
		} else if err != nil {
			return nil, err
		}
		dirs[m.Path] = m.Dir
	}
}

// output runs a command, and returns what it prints.
func output(name string, args ...string) ([]byte, error) {
	c := exec.Command(name, args...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return out, nil
}

// shortName returns the last part of a module's path without its version and .go.
func shortName(module string) string {
	name := path.Base(module)
	if strings.HasPrefix(name, "v") && strings.Trim(name[1:], "0123456789") == "" {
		name = path.Base(path.Dir(module))
	}
	return strings.TrimSuffix(name, ".go")
}
