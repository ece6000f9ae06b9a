package vm

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
)

// metapackage is the package of Debian that depends on its newest kernel. The cloud kernel would be smaller,
// but lacks e1000.
const metapackage = "linux-image-amd64"

// fetchLimit bounds fetching a kernel: 70 MB.
const fetchLimit = 5 * time.Minute

// Kernel is a kernel of Debian, unpacked but not installed.
type Kernel struct {
	Name  string // name of its package: linux-image-6.1.0-56-amd64
	Image string // path of vmlinuz
	Tree  string // folder of the modules: .../lib/modules/6.1.0-56-amd64
}

// FetchKernel returns the kernel in a folder. If there is none, it downloads Debian's newest kernel there
// with apt, without installing it.
func FetchKernel(ctx context.Context, folder string) (Kernel, error) {
	if k, err := findKernel(folder); !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	depends, err := output(ctx, folder, "apt-cache", "depends", metapackage)
	if err != nil {
		return Kernel{}, err
	}
	name := firstDepends(depends)
	if name == "" {
		return Kernel{}, fmt.Errorf("vm: looking for a kernel: the archive has no %s (run apt-get update)", metapackage)
	}
	if err := unpack(ctx, folder, name); err != nil {
		return Kernel{}, fmt.Errorf("vm: fetching %s: %w", name, err)
	}
	return findKernel(folder)
}

// firstDepends returns the first dependency in the output of `apt-cache depends`, from a line like "
// Depends: NAME".
func firstDepends(text string) string {
	for line := range strings.Lines(text) {
		if name, found := strings.CutPrefix(strings.TrimSpace(line), "Depends: "); found {
			return name
		}
	}
	return ""
}

// unpack downloads a package and unpacks it to a folder of its name, which exists only when it is complete.
func unpack(ctx context.Context, folder, name string) (err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(folder, "unfinished-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	// By default apt drops to a user who cannot write to this folder, and warns about it.
	if _, err := output(ctx, work, "apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", name); err != nil {
		return err
	}
	debs, err := filepath.Glob(filepath.Join(work, "*.deb"))
	if err != nil || len(debs) != 1 {
		return fmt.Errorf("apt-get has left %d packages: %w", len(debs), err)
	}
	tree := filepath.Join(work, "tree")
	if _, err := output(ctx, work, "dpkg-deb", "-x", debs[0], tree); err != nil {
		return err
	}
	return os.Rename(tree, filepath.Join(folder, name))
}

// findKernel returns the newest kernel of a folder; fs.ErrNotExist where it has none.
func findKernel(folder string) (Kernel, error) {
	trees, err := filepath.Glob(filepath.Join(folder, "linux-image-*"))
	if err != nil {
		return Kernel{}, fmt.Errorf("vm: looking for a kernel: %w", err)
	}
	if len(trees) == 0 {
		return Kernel{}, fmt.Errorf("vm: looking for a kernel in %s: %w", folder, fs.ErrNotExist)
	}
	k := Kernel{Name: filepath.Base(trees[len(trees)-1])}
	release := strings.TrimPrefix(k.Name, "linux-image-")
	k.Image = filepath.Join(folder, k.Name, "boot", "vmlinuz-"+release)
	for _, lib := range []string{"lib", "usr/lib"} { // Debian 13 uses usr/lib
		k.Tree = filepath.Join(folder, k.Name, lib, "modules", release)
		if _, err := os.Stat(k.Tree); err == nil {
			return k, nil
		}
	}
	return Kernel{}, fmt.Errorf("vm: %s has no modules: remove %s", k.Name, filepath.Join(folder, k.Name))
}

// output runs a program in a folder and returns its standard output; the error includes its standard error.
func output(ctx context.Context, folder, name string, args ...string) (string, error) {
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if _, err := os.Stat(folder); err == nil {
		cmd.Dir = folder
	}
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("vm: %s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}
