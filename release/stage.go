package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// installed maps folders to where packages install them. Those of share are what `thru completion --write` writes.
var installed = []struct{ from, to string }{
	{"share/man", "usr/share/man/man1"},
	{"share/completions/bash", "usr/share/bash-completion/completions"},
	{"share/completions/zsh", "usr/share/zsh/site-functions"},
	{"share/completions/fish", "usr/share/fish/vendor_completions.d"},
	{"packaging/systemd", "usr/lib/systemd/system"},
	{"packaging/etc", "etc/thru"},
	{"packaging/lintian", "usr/share/lintian/overrides"},
}

// stageTrees copies those of the folders that exist.
func (r *release) stageTrees() error {
	for _, row := range installed {
		from := filepath.Join(r.root, row.from)
		if below, shared := strings.CutPrefix(row.from, "share/"); shared {
			from = filepath.Join(r.share, below)
		}
		names, err := filesIn(from)
		if err != nil {
			return err
		}
		for _, name := range names {
			text, err := os.ReadFile(filepath.Join(from, name))
			to := row.to + "/" + name
			switch {
			case strings.HasPrefix(row.to, "usr/share/man"):
				text, err = packed(text, err)
				to += ".gz"
			case path.Ext(name) == ".conf" && row.from == "packaging/systemd": // drop-ins, to be copied
				to = "usr/share/doc/thru/systemd/" + name
			}
			if err = errors.Join(err, r.stageFile(to, text)); err != nil {
				return err
			}
		}
	}
	return nil
}

// filesIn lists the files below a folder, sorted, with slashes; none if it does not exist.
func filesIn(folder string) ([]string, error) {
	var names []string
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return names, err
}

// stageFile writes one file of the stage.
func (r *release) stageFile(name string, text []byte) error {
	name = filepath.Join(r.stage, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o644)
}

// stageDocuments writes what a package says about itself: licences and changes.
func (r *release) stageDocuments() error {
	license, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return err
	}
	changelog, err := packed(os.ReadFile(filepath.Join(r.root, "CHANGELOG.md")))
	if err != nil {
		return err
	}
	entry := fmt.Appendf(nil, "thru (%s-1) unstable; urgency=medium\n\n  * The changes are in changelog.gz.\n\n -- %s  %s\n",
		r.versionFor("deb"), r.maintainer, r.at.Format(time.RFC1123Z))
	debian, err := packed(entry, nil)
	if err != nil {
		return err
	}
	texts, err := packed([]byte(licenseTexts(r.systems)), nil)
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{
		"LICENSE": license, "third-party-licenses.txt.gz": texts, "changelog.gz": changelog,
		"changelog.Debian.gz": debian, "copyright": []byte(copyright(r.systems, r.at.Year())),
	} {
		if err := r.stageFile("usr/share/doc/thru/"+name, text); err != nil {
			return err
		}
	}
	return nil
}

// packed compresses a text that could be read, without a name or time of the file.
func packed(text []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(text)
	err = errors.Join(err, w.Close())
	return b.Bytes(), err
}

// versionFor returns the version as a format writes it. ~ sorts before nothing; apk has words for before and after.
func (r *release) versionFor(format string) string {
	number, build, _ := strings.Cut(r.version, "+")
	number, before, _ := strings.Cut(number, "-")
	if format != "apk" {
		if before != "" {
			number += "~" + before
		}
		if build != "" {
			number += "+" + build
		}
		return number
	}
	if before != "" {
		number += "_" + strings.ReplaceAll(before, ".", "")
	}
	if count, _, _ := strings.Cut(build, "."); count != "" {
		number += "_git" + count
	}
	return number
}
