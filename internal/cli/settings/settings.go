// Package settings reads values of flags from files and environment variables. It knows no flags: the command line does.
package settings

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"thru/internal/fault"
	"thru/internal/plan/planfile"
)

// Only names the variable with the only file to read, instead of the usual ones.
const Only = "THRU_CONFIG"

// prefix begins each variable.
const prefix = "THRU_"

// Source says where a value stands.
type Source struct {
	Variable string `json:"variable,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
}

// String returns "$THRU_STORE" or "/etc/thru/config.yaml:4".
func (s Source) String() string {
	if s.Variable != "" {
		return "$" + s.Variable
	}
	return fmt.Sprintf("%s:%d", s.File, s.Line)
}

// Setting is a value of a flag.
type Setting struct {
	Key    string   // "store" of all commands, "serve.port" of one
	Values []string // one, or those of a list
	List   bool
	Source Source
}

// Text returns the value in one line.
func (s Setting) Text() string { return strings.Join(s.Values, ",") }

// File is a file of settings.
type File struct {
	Path  string `json:"path"`
	Found bool   `json:"found"`
}

// Settings are the values of all files and variables.
type Settings struct {
	Files     []File // the least important first
	Written   []Setting
	variables map[string]string
}

// Paths returns the files of this host and this user, or the only one that $THRU_CONFIG names.
func Paths() []string {
	if only := os.Getenv(Only); only != "" {
		return []string{only}
	}
	host := "/etc/thru"
	if runtime.GOOS == "windows" {
		host = filepath.Join(os.Getenv("ProgramData"), "thru")
	}
	all := []string{filepath.Join(host, "config.yaml")}
	if dir, err := os.UserConfigDir(); err == nil {
		all = append(all, filepath.Join(dir, "thru", "config.yaml"))
	}
	return all
}

// Load reads the files, and the variables of an environment. It returns what it could read, and all errors.
func Load(paths, environ []string) (*Settings, error) {
	s := &Settings{variables: map[string]string{}}
	for _, x := range environ {
		if name, value, _ := strings.Cut(x, "="); strings.HasPrefix(name, prefix) && value != "" {
			s.variables[name] = value
		}
	}
	var all []error
	for _, path := range paths {
		text, err := read(path)
		s.Files = append(s.Files, File{path, !errors.Is(err, fs.ErrNotExist)})
		if err == nil {
			err = s.add(path, text)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = append(all, err)
		}
	}
	return s, errors.Join(all...)
}

// read returns the text of a file that only its user and root can change; that of a device is empty.
func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&fs.ModeDevice != 0 {
		return nil, err
	}
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file", path)
	}
	if err == nil {
		err = trusted(path, info)
	}
	text := []byte(nil)
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		hint := cmp.Or(fault.Hint(err), "make the file readable, or name another: "+Only+"=FILE; /dev/null has no settings")
		return nil, fault.Usagef(hint, "settings: %w", err)
	}
	return text, nil
}

// add adds the settings of a file.
func (s *Settings) add(path string, text []byte) error {
	leaves, err := planfile.Leaves(path, "settings file", text)
	if err != nil {
		return err
	}
	var all []error
	for _, x := range leaves {
		one := Setting{strings.Join(x.Path, "."), x.Values, x.List, Source{File: path, Line: x.Line, Column: x.Col}}
		if text := one.Text(); fault.Unsecret(text) != text {
			all = append(all, one.Errorf("`thru join NAME` keeps a join string: write the NAME here; a password comes from THRU_PASSWORD", "%s is a secret, which a settings file must not have", fault.Printable(one.Key)))
			continue
		}
		s.Written = append(s.Written, one)
	}
	return errors.Join(all...)
}

// Errorf returns an error about a setting, with its place.
func (s Setting) Errorf(hint, format string, args ...any) error {
	where := s.Source.String()
	if s.Source.File != "" {
		where = fmt.Sprintf("%s:%d:%d", s.Source.File, s.Source.Line, s.Source.Column)
	}
	return fault.Usagef(hint, "%s: %w", where, fmt.Errorf(format, args...))
}

// Variable returns the variable of a key: THRU_SERVE_DATA_PORTS of serve.data-ports.
func Variable(key string) string {
	return prefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(key))
}

// Find returns the settings that some keys have, the one in force first: variables before files, the last file
// before others, and an earlier key before a later one.
func (s *Settings) Find(keys ...string) (all []Setting) {
	for _, key := range keys {
		if v := s.variables[Variable(key)]; v != "" {
			all = append(all, Setting{Key: key, Values: []string{v}, Source: Source{Variable: Variable(key)}})
		}
	}
	for i := len(s.Files) - 1; i >= 0; i-- {
		for _, key := range keys {
			for _, x := range s.Written {
				if x.Key == key && x.Source.File == s.Files[i].Path {
					all = append(all, x)
				}
			}
		}
	}
	return all
}

// Any reports whether there is any setting.
func (s *Settings) Any() bool { return s != nil && len(s.Written)+len(s.variables) > 0 }

// Variables returns the names of all variables that are set.
func (s *Settings) Variables() (names []string) {
	for name := range s.variables {
		names = append(names, name)
	}
	return names
}
