package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// writeMaterials writes the bill of materials of a binary: which libraries are linked into it (CycloneDX 1.6).
func (r *release) writeMaterials(s system) error {
	text, err := os.ReadFile(s.binary)
	if err != nil {
		return err
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{
		Timestamp: r.at.Format(time.RFC3339),
		Component: &cdx.Component{
			BOMRef: "thru", Type: cdx.ComponentTypeApplication, Name: "thru", Version: r.version, PackageURL: "pkg:generic/thru@" + r.version,
			Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sha256.Sum256(text))}},
			Licenses:   licenses([]string{"Apache-2.0"}),
			Properties: &[]cdx.Property{{Name: "os", Value: s.os}, {Name: "arch", Value: s.arch}},
		},
	}
	components, refs := []cdx.Component{}, []string{}
	for _, m := range s.modules {
		c := component(m)
		components, refs = append(components, c), append(refs, c.BOMRef)
	}
	bom.Components, bom.Dependencies = &components, &[]cdx.Dependency{{Ref: "thru", Dependencies: &refs}}
	return r.create(fmt.Sprintf("thru-%s-%s-%s.cdx.json", r.version, s.os, s.arch), func(w io.Writer) error {
		return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
	})
}

// component describes one library.
func component(m module) cdx.Component {
	url := "pkg:golang/" + m.path + "@" + m.version
	c := cdx.Component{BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: m.path, Version: m.version, PackageURL: url, Licenses: licenses(m.licenses)}
	if m.copied != "" {
		c.Modified, c.Pedigree = new(true), &cdx.Pedigree{Notes: "changed or replaced by .ci/slim of the sources, which says how"}
	}
	return c
}

// licenses words licences as CycloneDX does.
func licenses(ids []string) *cdx.Licenses {
	var all cdx.Licenses
	for _, id := range slices.Compact(ids) {
		all = append(all, cdx.LicenseChoice{License: &cdx.License{ID: id}})
	}
	if len(all) == 0 {
		return nil
	}
	return &all
}
