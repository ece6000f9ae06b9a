package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// writeImage writes an OCI image for the architectures of Linux, as a layout in a tar file (image-spec, image-layout.md).
func (r *release) writeImage() error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, s := range r.systems {
		if !s.is("linux") {
			continue
		}
		image, err := r.image(s)
		if err != nil {
			return fmt.Errorf("making the image of %s: %w", s.arch, err)
		}
		platform := &v1.Platform{OS: s.os, Architecture: s.arch}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
	}
	folder, err := os.MkdirTemp("", "thru-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	written, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	name := map[string]string{"org.opencontainers.image.ref.name": "thru:" + r.tag()}
	if err := written.AppendIndex(index, layout.WithAnnotations(name)); err != nil {
		return err
	}
	var entries []entry
	err = fs.WalkDir(os.DirFS(folder), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			entries = append(entries, entry{name, filepath.Join(folder, name), 0o644})
		}
		return err
	})
	if err != nil {
		return err
	}
	return r.create(fmt.Sprintf("thru-%s-oci.tar", r.version), func(w io.Writer) error { return r.writeTar(w, entries) })
}

// tag is the version as the name of an image may be: without +.
func (r *release) tag() string { return strings.ReplaceAll(r.version, "+", "-") }

// image is the binary alone, run by a user without rights.
func (r *release) image(s system) (v1.Image, error) {
	var content bytes.Buffer
	if err := r.writeTar(&content, []entry{{"thru", s.binary, 0o755}}); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(9))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	created := v1.Time{Time: r.at}
	image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: created, CreatedBy: "make release"}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = s.os, s.arch, created
	config.Config = v1.Config{
		Entrypoint: []string{"/thru"}, User: "65532:65532", WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title": "thru", "org.opencontainers.image.version": r.version, "org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(image, config)
}
