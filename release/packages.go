package main

import (
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/apk" // a format of nfpm.Get
	_ "github.com/goreleaser/nfpm/v2/deb" // a format of nfpm.Get
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // a format of nfpm.Get
)

// placed returns where a package has a file of the stage, or nothing.
func placed(name, format string) string {
	file := path.Base(name)
	switch {
	case format != "deb" && (file == "copyright" || file == "changelog.Debian.gz" || strings.Contains(name, "/lintian/")), // Debian's policy
		format == "deb" && file == "LICENSE", // Debian has the text already
		format == "apk" && strings.Contains(name, "/systemd/"):
		return ""
	case format == "deb":
		name = strings.Replace(name, "zsh/site-functions", "zsh/vendor-completions", 1)
	}
	return "/" + name
}

// writePackage writes a package of Linux. packaging/nfpm.yaml describes it.
func (r *release) writePackage(s system, format string) error {
	values := map[string]string{
		"ARCH": s.arch, "VERSION": r.versionFor(format), "MAINTAINER": r.maintainer,
	}
	config, err := nfpm.ParseFileWithEnvMapping(filepath.Join(r.root, "packaging", "nfpm.yaml"), func(key string) string { return values[key] })
	if err != nil {
		return err
	}
	info, err := config.Get(format)
	if err != nil {
		return err
	}
	info.MTime = r.at
	if scripts := filepath.Join(r.root, "packaging", "scripts"); format != "apk" { // they are about systemd
		info.Scripts = nfpm.Scripts{
			PostInstall: filepath.Join(scripts, "postinstall"), PreRemove: filepath.Join(scripts, "preremove"), PostRemove: filepath.Join(scripts, "postremove"),
		}
	}
	if err := r.addContents(info, s, format); err != nil {
		return err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	info = nfpm.WithDefaults(info)
	return r.create(packager.ConventionalFileName(info), func(w io.Writer) error { return packager.Package(info, w) })
}

// common are the folders that every system has. A package owns the others, since rpm leaves what no package owns.
var common = []string{"/", "/usr", "/usr/bin", "/usr/share", "/usr/share/doc", "/usr/share/man/man1", "/usr/lib/systemd/system", "/usr/share/lintian/overrides", "/etc"}

// addContents lists the binary and the stage.
func (r *release) addContents(info *nfpm.Info, s system, format string) error {
	names, err := filesIn(r.stage)
	if err != nil {
		return err
	}
	add := func(source, to, kind string, mode os.FileMode) {
		info.Contents = append(info.Contents, &files.Content{Source: source, Destination: to, Type: kind, FileInfo: &files.ContentFileInfo{Mode: mode}})
	}
	add(s.binary, "/usr/bin/thru", files.TypeFile, 0o755)
	owned := map[string]bool{}
	for _, name := range names {
		kind, to := files.TypeFile, placed(name, format)
		if strings.HasPrefix(to, "/etc/") {
			kind = files.TypeConfigNoReplace
		}
		if to == "" {
			continue
		}
		add(filepath.Join(r.stage, name), to, kind, 0o644)
		for folder := path.Dir(to); !slices.Contains(common, folder) && !owned[folder]; folder = path.Dir(folder) {
			owned[folder] = true
			add("", folder, files.TypeDir, 0o755)
		}
	}
	return nil
}
