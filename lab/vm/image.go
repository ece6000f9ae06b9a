package vm

import (
	"compress/gzip"
	"context"
	"debug/elf"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cavaliergopher/cpio"
)

// Image is what every VM of a site boots: nothing in it is ever written to.
type Image struct {
	Kernel    string              // path of the kernel
	Initramfs string              // path of the file system in memory
	Release   string              // name of the kernel's package
	Drivers   map[string][]string // modules of each model of adapter, in the order in which they are loaded
}

// initScript is the first program of a VM.
//
//go:embed init.sh
var initScript []byte

// drivers are the modules by model of the adapter.
var drivers = map[string]string{E1000: "e1000", E1000E: "e1000e", VMXNET3: "vmxnet3", Virtio: "virtio_net"}

// beside are the modules that every VM loads beside that of its adapter: buses,
// the port of the shell and disks of QEMU, and the socket statistics that thru
// reads (sock_diag(7)).
var beside = []string{"virtio_pci", "virtio_console", "virtio_blk", "tcp_diag", "udp_diag", "sch_fq"}

// Build makes the image of a kernel and the thru program, in a folder.
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

// source returns what a file of the image holds.
type source func() ([]byte, error)

// held is a file whose content is known, onDisk a copy of another.
func held(text []byte) source   { return func() ([]byte, error) { return text, nil } }
func onDisk(path string) source { return func() ([]byte, error) { return os.ReadFile(path) } }

// static refuses a program that needs a loader and libraries, which the image has
// not: one with a segment PT_INTERP (elf(5)).
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

// archive writes programs by their paths as the kernel unpacks them: a packed
// cpio of the new format (Documentation/driver-api/early-userspace/buffer-format.rst).
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

// folders are those that files lie in, and those that init mounts on.
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
