package vm

import (
	"bytes"
	"compress/gzip"
	"context"
	"debug/elf"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cavaliergopher/cpio"
	"github.com/google/go-cmp/cmp"
)

// Image is what every VM of a site boots. It is never written to.
type Image struct {
	Kernel    string              // path of the kernel
	Initramfs string              // path of the file system in memory
	Release   string              // name of the kernel's package
	Drivers   map[string][]string // modules for each model of adapter, in the order in which they are loaded
}

// initScript is the first program of a VM.
//
//go:embed init.sh
var initScript []byte

// drivers are the modules, by model of the adapter.
var drivers = map[string]string{E1000: "e1000", E1000E: "e1000e", VMXNET3: "vmxnet3", Virtio: "virtio_net"}

// beside are the modules that every VM loads besides that of its adapter: buses, the port of the shell and
// disks of QEMU, and the socket statistics that thru reads (sock_diag(7)).
var beside = []string{"virtio_pci", "virtio_console", "virtio_blk", "tcp_diag", "udp_diag", "sch_fq"}

// Build makes the image from a kernel and the thru program, in a folder.
func Build(ctx context.Context, kernel Kernel, thru, folder string) (*Image, error) {
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return nil, fmt.Errorf("vm: building the image: %w (install busybox-static)", err)
	}
	for _, program := range []string{busybox, thru} {
		if err := static(program); err != nil {
			return nil, err
		}
	}
	modules, err := ListModules(kernel.Tree)
	if err != nil {
		return nil, err
	}
	image := &Image{Kernel: kernel.Image, Initramfs: filepath.Join(folder, "initramfs.gz"), Release: kernel.Name, Drivers: map[string][]string{}}
	files := map[string]source{"init": held(initScript), "bin/busybox": onDisk(busybox), "bin/thru": onDisk(thru)}
	for model, driver := range drivers {
		list, err := modules.Order(append(slices.Clone(beside), driver)...)
		if err != nil {
			return nil, err
		}
		image.Drivers[model] = list
		files["modules/"+model] = held([]byte(strings.Join(list, "\n") + "\n"))
		for _, name := range list {
			files["modules/"+name+".ko"] = func() ([]byte, error) { return modules.Read(name) }
		}
	}
	return image, writeFile(image.Initramfs, files)
}

// source returns the content of a file of the image.
type source func() ([]byte, error)

// held is a file of known content, onDisk a copy of another file.
func held(text []byte) source   { return func() ([]byte, error) { return text, nil } }
func onDisk(path string) source { return func() ([]byte, error) { return os.ReadFile(path) } }

// static refuses a program that needs a loader and libraries, since the image has none: one with a segment
// PT_INTERP (elf(5)).
func static(path string) error {
	file, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("vm: building the image: %s: %w", path, err)
	}
	defer func() { _ = file.Close() }()
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			return fmt.Errorf("vm: building the image: %s is linked with libraries (of busybox install busybox-static)", path)
		}
	}
	return nil
}

// writeFile writes an archive to a file.
func writeFile(path string, files map[string]source) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("vm: writing the image: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := archive(file, files); err != nil {
		return fmt.Errorf("vm: writing %s: %w", path, err)
	}
	return nil
}

// archive writes files by their paths in the form that the kernel unpacks: a compressed cpio of the new
// format (Documentation/driver-api/early-userspace/buffer-format.rst).
func archive(w io.Writer, files map[string]source) error {
	packed, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	out := cpio.NewWriter(packed)
	for _, dir := range folders(slices.Collect(maps.Keys(files))) {
		if err := out.WriteHeader(&cpio.Header{Name: dir, Mode: cpio.TypeDir | 0o755, Links: 2}); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text, err := files[name]()
		if err != nil {
			return err
		}
		if err := out.WriteHeader(&cpio.Header{Name: name, Mode: cpio.TypeReg | 0o755, Size: int64(len(text)), Links: 1}); err != nil {
			return err
		}
		if _, err := out.Write(text); err != nil {
			return err
		}
	}
	return errors.Join(out.Close(), packed.Close())
}

// folders returns the folders of the files, and the mount points of init.
func folders(files []string) []string {
	all := []string{"dev", "proc", "sys", "tmp", "run", "root"}
	for _, name := range files {
		if dir := filepath.Dir(name); dir != "." && !slices.Contains(all, dir) {
			all = append(all, dir)
		}
	}
	slices.Sort(all)
	return all
}

// TestArchive reads an archive as the kernel would: every folder comes before its content, and every file is
// complete.
func TestArchive(t *testing.T) {
	var packed bytes.Buffer
	files := map[string]source{"init": held([]byte("#!/bin/sh\n")), "bin/thru": held([]byte{0, 1, 2}), "modules/e1000": held(nil)}
	if err := archive(&packed, files); err != nil {
		t.Fatal(err)
	}
	unpacked, err := gzip.NewReader(&packed)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	held := map[string]string{}
	for in := cpio.NewReader(unpacked); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if dir := filepath.Dir(h.Name); dir != "." && !slices.Contains(names, dir) {
			t.Errorf("%s comes before its folder", h.Name)
		}
		names = append(names, h.Name)
		if h.Mode.IsRegular() {
			text, err := io.ReadAll(in)
			if err != nil || h.Mode.Perm() != 0o755 {
				t.Errorf("%s: mode %o, %v", h.Name, h.Mode.Perm(), err)
			}
			held[h.Name] = string(text)
		}
	}
	want := map[string]string{"init": "#!/bin/sh\n", "bin/thru": "\x00\x01\x02", "modules/e1000": ""}
	if diff := cmp.Diff(want, held); diff != "" {
		t.Error(diff)
	}
	for _, dir := range []string{"dev", "proc", "sys", "root"} { // mount points of init, and its home
		if !slices.Contains(names, dir) {
			t.Errorf("no folder %s", dir)
		}
	}
	broken := map[string]source{"init": func() ([]byte, error) { return nil, fs.ErrNotExist }}
	if err := archive(io.Discard, broken); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that cannot be read: %v", err)
	}
}

// TestStatic: static refuses a script.
func TestStatic(t *testing.T) {
	script := filepath.Join(t.TempDir(), "busybox")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := static(script); err == nil {
		t.Error("a script passes for a static program")
	}
}

// TestFirstDepends reads what apt-cache(8) prints.
func TestFirstDepends(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"linux-image-amd64\n  Depends: linux-image-6.1.0-9-amd64\n  Depends: other\n", "linux-image-6.1.0-9-amd64"},
		{"linux-image-amd64\n", ""},
		{"", ""},
	} {
		if got := firstDepends(tt.text); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}

// TestFindKernel finds a kernel in both layouts of Debian, and returns an error where there is none.
func TestFindKernel(t *testing.T) {
	folder := t.TempDir()
	if _, err := findKernel(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
	for _, tt := range []struct{ name, lib string }{{"linux-image-6.1.0-9-amd64", "lib"}, {"linux-image-6.12.1-amd64", "usr/lib"}} {
		folder := t.TempDir()
		release := strings.TrimPrefix(tt.name, "linux-image-")
		tree := filepath.Join(folder, tt.name, tt.lib, "modules", release)
		if err := os.MkdirAll(tree, 0o755); err != nil {
			t.Fatal(err)
		}
		k, err := findKernel(folder)
		want := Kernel{Name: tt.name, Tree: tree, Image: filepath.Join(folder, tt.name, "boot", "vmlinuz-"+release)}
		if err != nil || k != want {
			t.Errorf("%+v, %v, want %+v", k, err, want)
		}
	}
	if err := os.Mkdir(filepath.Join(folder, "linux-image-broken"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := findKernel(folder); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a kernel without modules: %v", err)
	}
}
