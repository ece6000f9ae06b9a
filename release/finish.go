package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// writeNotes cuts the changes of this version out of CHANGELOG.md: its section, or what is not yet released.
func (r *release) writeNotes() error {
	text, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	notes, err := notesOf(string(text), r.version)
	if err != nil {
		return err
	}
	return r.create("RELEASE_NOTES.md", func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "# thru %s\n\n%s\n", r.version, notes)
		return err
	})
}

// notesOf returns the section of a version. Versions between two releases have that of the next.
func notesOf(changelog, version string) (string, error) {
	wanted := "Unreleased"
	if !strings.Contains(version, "+") {
		wanted = version
	}
	for _, section := range strings.Split("\n"+changelog, "\n## ")[1:] {
		title, text, _ := strings.Cut(section, "\n")
		if name, _, _ := strings.Cut(title, " "); strings.Trim(name, "[]") == wanted {
			return strings.TrimSpace(text), nil
		}
	}
	return "", fmt.Errorf("CHANGELOG.md has no section %q", wanted)
}

// finish writes the checksums, signs them, and lists the files.
func (r *release) finish(key string, out io.Writer) error {
	files, err := os.ReadDir(r.dist)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(r.dist, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(text), f.Name())
		fmt.Fprintf(out, "%12d  %s\n", len(text), f.Name())
	}
	list := filepath.Join(r.dist, "SHA256SUMS")
	if err := os.WriteFile(list, []byte(sums.String()), 0o644); err != nil {
		return err
	}
	if key == "" {
		_, err := fmt.Fprintf(out, "NOT SIGNED: sign with make release RELEASE_KEY=FILE, or ssh-keygen -Y sign -f FILE -n file %s\n", list)
		return err
	}
	if text, err := exec.Command("ssh-keygen", "-Y", "sign", "-f", key, "-n", "file", list).CombinedOutput(); err != nil {
		return fmt.Errorf("signing with %s: %w: %s", key, err, strings.TrimSpace(string(text)))
	}
	_, err = fmt.Fprintf(out, "signed: %s.sig\n", list)
	return err
}
