// Command release writes the files of a release from built binaries: packages, archives, an image, a bill of materials
// for each binary, checksums and notes. It is a module of its own, so that its libraries are not those of thru.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// release is what the steps share.
type release struct {
	root       string // the sources
	share      string // what the binary writes about itself: manual pages, completions
	dist       string // the written files
	stage      string // the tree that packages install, without the binary
	version    string
	maintainer string    // of packages: name <address>
	at         time.Time // of every file and record: the commit's
	systems    []system
}

// system is one binary.
type system struct {
	os, arch string
	binary   string // its file
	modules  []module
}

// is reports whether the system is one of the named ones.
func (s system) is(names ...string) bool { return slices.Contains(names, s.os) }

// program returns the name of the binary in archives.
func (s system) program() string {
	if s.is("windows") {
		return "thru.exe"
	}
	return "thru"
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run writes a release. out receives the list of files.
func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	root := flags.String("root", ".", "the `folder` of the sources")
	built := flags.String("built", "bin/release", "the `folder` with OS-ARCH/thru of each system, and share with the manual pages and completions")
	dist := flags.String("dist", "dist", "the `folder` to write to")
	version := flags.String("version", "", "the `version`, such as 1.2.3")
	at := flags.Int64("at", 0, "the `time` of all files in seconds since 1970")
	maintainer := flags.String("maintainer", "", "who answers for the packages: `name <address>`")
	key := flags.String("key", "", "the `file` of the SSH key that signs; without one the release is not signed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *version == "" || *at == 0 || *maintainer == "" {
		return errors.New("-version, -at and -maintainer are needed")
	}
	systems, err := find(*built)
	if err != nil {
		return err
	}
	stage, err := os.MkdirTemp("", "thru-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	r := &release{
		root: *root, share: filepath.Join(*built, "share"), dist: *dist, stage: stage,
		version: *version, maintainer: *maintainer, at: time.Unix(*at, 0).UTC(), systems: systems,
	}
	// Notes come early: a version without notes is no release.
	for _, step := range []func() error{r.open, r.prepare, r.writeNotes, r.writeAll} {
		if err := step(); err != nil {
			return err
		}
	}
	return r.finish(*key, out)
}

// open makes the folder of the release. It takes no other files, which the checksums would list.
func (r *release) open() error {
	if err := os.MkdirAll(r.dist, 0o755); err != nil {
		return err
	}
	files, err := os.ReadDir(r.dist)
	if err == nil && len(files) > 0 {
		err = fmt.Errorf("%s is not empty: it has %s", r.dist, files[0].Name())
	}
	return err
}

// find lists the built binaries.
func find(built string) ([]system, error) {
	files, err := filepath.Glob(filepath.Join(built, "*-*", "thru*"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no binary in %s", built)
	}
	var systems []system
	for _, file := range files {
		name, arch, _ := strings.Cut(filepath.Base(filepath.Dir(file)), "-")
		systems = append(systems, system{os: name, arch: arch, binary: file})
	}
	return systems, err
}

// prepare reads the modules of the binaries and fills the stage.
func (r *release) prepare() error {
	for i := range r.systems {
		modules, err := modulesOf(r.systems[i].binary)
		if err != nil {
			return err
		}
		r.systems[i].modules = modules
	}
	if err := addLicenses(r.root, r.systems); err != nil {
		return err
	}
	if err := r.stageTrees(); err != nil {
		return err
	}
	return r.stageDocuments()
}

// writeAll writes all files that do not depend on each other, as many at once as there are CPUs.
func (r *release) writeAll() error {
	var group errgroup.Group
	group.SetLimit(runtime.NumCPU())
	for _, s := range r.systems {
		group.Go(func() error { return r.writeArchive(s) })
		group.Go(func() error { return r.writeMaterials(s) })
		if !s.is("linux") {
			continue
		}
		for _, format := range []string{"deb", "rpm", "apk"} {
			group.Go(func() error { return r.writePackage(s, format) })
		}
	}
	group.Go(r.writeImage)
	return group.Wait()
}

// create writes a file of the release by a function.
func (r *release) create(name string, write func(io.Writer) error) error {
	f, err := os.Create(filepath.Join(r.dist, name))
	if err != nil {
		return err
	}
	if err = errors.Join(write(f), f.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}
