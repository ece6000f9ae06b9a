package main

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// fixture makes a folder of sources and binaries; the binaries are a small program.
func fixture(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"README.md": "readme", "LICENSE": "licence", "CHANGELOG.md": "# Changelog\n\n## Unreleased\n\nnew\n\n## 1.0.0\n\nold\n",
		"packaging/systemd/thru.service": "[Service]\n", "packaging/etc/config.yaml": "# none\n",
		"built/share/man/thru.1": "page", "built/share/completions/bash/thru": "complete", "packaging/systemd/allow-tune.conf": "[Service]\n", "program/main.go": "package main\n\nfunc main() {}\n", "program/go.mod": "module program\n",
	} {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags", "-s -w", "-o", "../built/linux-amd64/thru", ".")
	build.Dir, build.Env = filepath.Join(root, "program"), append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	shell(t, root, `cd built && cp -r linux-amd64 linux-arm64 && cp -r linux-amd64 freebsd-amd64 && mkdir windows-amd64 && cp linux-amd64/thru windows-amd64/thru.exe`)
	packaging, err := filepath.Abs("../packaging")
	if err != nil {
		t.Fatal(err)
	}
	shell(t, root, "cp "+packaging+"/nfpm.yaml packaging && cp -r "+packaging+"/scripts packaging")
	return root
}

// shell runs a script in a folder.
func shell(t *testing.T, folder, script string) {
	t.Helper()
	c := exec.Command("sh", "-ec", script)
	c.Dir = folder
	if text, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", script, err, text)
	}
}

// releaseOf runs the program on a fixture.
func releaseOf(t *testing.T, root, version string, more ...string) (dist, printed string) {
	t.Helper()
	dist = filepath.Join(root, "dist")
	var out bytes.Buffer
	args := append([]string{"-root", root, "-built", filepath.Join(root, "built"), "-dist", dist, "-version", version, "-at", "1700000000", "-maintainer", "somebody <somebody@example.org>"}, more...)
	if err := run(args, &out); err != nil {
		t.Fatal(err)
	}
	return dist, out.String()
}

// TestRelease writes the same sources from two folders at two times, and looks into the files.
func TestRelease(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("no ssh-keygen")
	}
	first, second := fixture(t), fixture(t)
	shell(t, second, "find . -exec touch -d 2001-02-03 {} + && chmod -R go-rwx .")
	key := filepath.Join(t.TempDir(), "key")
	shell(t, first, "ssh-keygen -q -t ed25519 -N '' -f "+key)
	one, printed := releaseOf(t, first, "1.0.0-rc.1+4.gab", "-key", key)
	other, _ := releaseOf(t, second, "1.0.0-rc.1+4.gab", "-key", key)
	shell(t, first, "diff -r "+one+" "+other)
	names := map[string]bool{}
	entries, err := os.ReadDir(one)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names[e.Name()] = true
	}
	for _, want := range []string{
		"thru_1.0.0~rc.1+4.gab-1_amd64.deb", "thru_1.0.0~rc.1+4.gab-1_arm64.deb",
		"thru-1.0.0~rc.1+4.gab-1.x86_64.rpm", "thru-1.0.0~rc.1+4.gab-1.aarch64.rpm",
		"thru_1.0.0_rc1_git4-r1_x86_64.apk", "thru_1.0.0_rc1_git4-r1_aarch64.apk",
		"thru-1.0.0-rc.1+4.gab-linux-amd64.tar.gz", "thru-1.0.0-rc.1+4.gab-linux-arm64.tar.gz",
		"thru-1.0.0-rc.1+4.gab-freebsd-amd64.tar.gz", "thru-1.0.0-rc.1+4.gab-windows-amd64.zip",
		"thru-1.0.0-rc.1+4.gab-linux-amd64.cdx.json", "thru-1.0.0-rc.1+4.gab-linux-arm64.cdx.json",
		"thru-1.0.0-rc.1+4.gab-freebsd-amd64.cdx.json", "thru-1.0.0-rc.1+4.gab-windows-amd64.cdx.json",
		"thru-1.0.0-rc.1+4.gab-oci.tar", "RELEASE_NOTES.md", "SHA256SUMS", "SHA256SUMS.sig",
	} {
		if !names[want] {
			t.Errorf("no %s", want)
		}
		delete(names, want)
	}
	if len(names) > 0 || strings.Contains(printed, "NOT SIGNED") {
		t.Errorf("files that nobody asked for: %v; printed %s", names, printed)
	}
	shell(t, one, "sha256sum --check --strict SHA256SUMS")
	t.Run("tar", func(t *testing.T) { looksIntoTar(t, one+"/thru-1.0.0-rc.1+4.gab-linux-amd64.tar.gz") })
	t.Run("zip", func(t *testing.T) { looksIntoZip(t, one+"/thru-1.0.0-rc.1+4.gab-windows-amd64.zip") })
	t.Run("apk", func(t *testing.T) { looksIntoAPK(t, one+"/thru_1.0.0_rc1_git4-r1_aarch64.apk") })
	t.Run("materials", func(t *testing.T) { looksIntoMaterials(t, one, "linux-amd64") })
	t.Run("image", func(t *testing.T) { looksIntoImage(t, one+"/thru-1.0.0-rc.1+4.gab-oci.tar") })
}

// TestUnsigned checks that a release without a signature says so, and that no release is written over another.
func TestUnsigned(t *testing.T) {
	root := fixture(t)
	dist, printed := releaseOf(t, root, "1.0.0")
	if _, err := os.Stat(dist + "/SHA256SUMS.sig"); err == nil || !strings.Contains(printed, "NOT SIGNED") || !strings.Contains(printed, "ssh-keygen -Y sign") {
		t.Errorf("without a key it prints %s", printed)
	}
	err := run([]string{"-root", root, "-built", root + "/built", "-dist", dist, "-version", "1.0.0", "-at", "1", "-maintainer", "x"}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("a second release over the first: %v", err)
	}
}

// tarOf reads a tar file: names with modes, and texts.
func tarOf(t *testing.T, r io.Reader) (modes map[string]int64, texts map[string][]byte) {
	t.Helper()
	modes, texts = map[string]int64{}, map[string][]byte{}
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return modes, texts
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.ModTime.Unix() != 1700000000 && header.Typeflag == tar.TypeReg && header.Name != ".PKGINFO" {
			t.Errorf("%s is of %s", header.Name, header.ModTime)
		}
		modes[header.Name] = header.Mode
		if texts[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

func looksIntoTar(t *testing.T, name string) {
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	modes, _ := tarOf(t, z)
	top := "thru-1.0.0-rc.1+4.gab/"
	want := map[string]int64{
		top + "thru": 0o755, top + "README.md": 0o644, top + "CHANGELOG.md": 0o644, top + "LICENSE": 0o644, top + "third-party-licenses.txt.gz": 0o644,
		top + "systemd/thru.service": 0o644, top + "systemd/allow-tune.conf": 0o644, top + "man/thru.1": 0o644, top + "completions/bash/thru": 0o644,
	}
	if fmt.Sprint(modes) != fmt.Sprint(want) {
		t.Errorf("the archive contains %v, not %v", modes, want)
	}
}

func looksIntoZip(t *testing.T, name string) {
	z, err := zip.OpenReader(name)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var names []string
	for _, f := range z.File {
		names = append(names, strings.TrimPrefix(f.Name, "thru-1.0.0-rc.1+4.gab/"))
	}
	if want := []string{"CHANGELOG.md", "LICENSE", "README.md", "completions/bash/thru", "man/thru.1", "third-party-licenses.txt.gz", "thru.exe"}; !slices.Equal(names, want) {
		t.Errorf("the archive contains %q, not %q", names, want)
	}
}

// looksIntoAPK reads a package as apk does: gzip streams of tar files, control before data (apk-package(5)).
func looksIntoAPK(t *testing.T, name string) {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	rest := bufio.NewReader(bytes.NewReader(text))
	z, err := gzip.NewReader(rest)
	if err != nil {
		t.Fatal(err)
	}
	z.Multistream(false)
	control, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(rest)
	if err != nil {
		t.Fatal(err)
	}
	_, texts := tarOf(t, bytes.NewReader(control))
	info := string(texts[".PKGINFO"])
	for _, want := range []string{"pkgname = thru\n", "pkgver = 1.0.0_rc1_git4-r1\n", "arch = aarch64\n", "license = Apache-2.0\n", fmt.Sprintf("datahash = %x\n", sha256.Sum256(data))} {
		if !strings.Contains(info, want) {
			t.Errorf(".PKGINFO lacks %q: %s", want, info)
		}
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	modes, _ := tarOf(t, unpacked)
	if modes["usr/bin/thru"] != 0o755 || modes["etc/thru/config.yaml"] != 0o644 {
		t.Errorf("the package contains %v", modes)
	}
	for file := range modes {
		if strings.Contains(file, "systemd") || strings.Contains(file, "copyright") {
			t.Errorf("Alpine has no use for %s", file)
		}
	}
}

func looksIntoMaterials(t *testing.T, dist, system string) {
	text, err := os.ReadFile(dist + "/thru-1.0.0-rc.1+4.gab-" + system + ".cdx.json")
	if err != nil {
		t.Fatal(err)
	}
	var bom struct {
		BOMFormat, SpecVersion string
		Metadata               struct {
			Timestamp string
			Component struct{ Version string }
		}
		Components []struct {
			Name, Version, PURL string
			Licenses            []struct{ License struct{ ID string } }
		}
	}
	if err := json.Unmarshal(text, &bom); err != nil {
		t.Fatal(err)
	}
	if bom.BOMFormat != "CycloneDX" || bom.SpecVersion != "1.6" || bom.Metadata.Timestamp != time.Unix(1700000000, 0).UTC().Format(time.RFC3339) || bom.Metadata.Component.Version != "1.0.0-rc.1+4.gab" {
		t.Errorf("its head is %+v", bom)
	}
	if len(bom.Components) != 1 || bom.Components[0].Name != "std" || bom.Components[0].Licenses[0].License.ID != "BSD-3-Clause" {
		t.Errorf("its components are %+v", bom.Components)
	}
}

func looksIntoImage(t *testing.T, name string) {
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, files := tarOf(t, f)
	type descriptor struct {
		Digest, MediaType string
		Annotations       map[string]string
		Platform          struct{ OS, Architecture string }
	}
	var top, index struct{ Manifests []descriptor }
	blob := func(digest string, into any) {
		text := files["blobs/sha256/"+strings.TrimPrefix(digest, "sha256:")]
		if fmt.Sprintf("sha256:%x", sha256.Sum256(text)) != digest {
			t.Errorf("%s has another content", digest)
		}
		if into == nil {
			return
		}
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}
	if err := json.Unmarshal(files["index.json"], &top); err != nil || len(top.Manifests) != 1 {
		t.Fatalf("index.json: %v, %s", err, files["index.json"])
	}
	if tag := top.Manifests[0].Annotations["org.opencontainers.image.ref.name"]; tag != "thru:1.0.0-rc.1-4.gab" {
		t.Errorf("the image is named %q", tag)
	}
	blob(top.Manifests[0].Digest, &index)
	var found []string
	for _, m := range index.Manifests {
		var manifest struct {
			Config descriptor
			Layers []descriptor
		}
		var config struct {
			OS, Architecture string
			Config           struct {
				User       string
				Entrypoint []string
			}
		}
		blob(m.Digest, &manifest)
		blob(manifest.Config.Digest, &config)
		found = append(found, m.Platform.Architecture)
		if config.Architecture != m.Platform.Architecture || config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/thru"}) || len(manifest.Layers) != 1 {
			t.Errorf("%s: %+v of %d layers", m.Platform.Architecture, config, len(manifest.Layers))
		}
		blob(manifest.Layers[0].Digest, nil)
	}
	if !slices.Equal(found, []string{"amd64", "arm64"}) {
		t.Errorf("the image is for %q", found)
	}
}

func TestVersionFor(t *testing.T) {
	for _, tt := range []struct{ version, deb, apk string }{
		{"1.2.3", "1.2.3", "1.2.3"},
		{"1.2.3-rc.1", "1.2.3~rc.1", "1.2.3_rc1"},
		{"1.2.3+14.gabcdef", "1.2.3+14.gabcdef", "1.2.3_git14"},
		{"0.0.0+7.gabc.dirty", "0.0.0+7.gabc.dirty", "0.0.0_git7"},
	} {
		r := &release{version: tt.version}
		if deb, rpm, apk := r.versionFor("deb"), r.versionFor("rpm"), r.versionFor("apk"); deb != tt.deb || rpm != tt.deb || apk != tt.apk {
			t.Errorf("%s: deb %s, rpm %s, apk %s", tt.version, deb, rpm, apk)
		}
	}
}

func TestNotesOf(t *testing.T) {
	changelog := "# Changelog\n\n## Unreleased\n\n- new\n\n## [1.1.0] 2026-01-02\n\n- more\n### Fixed\n- bug\n\n## 1.0.0\n\n- first\n"
	for version, want := range map[string]string{"1.1.0": "- more\n### Fixed\n- bug", "1.0.0": "- first", "1.1.0+3.gab": "- new"} {
		if got, err := notesOf(changelog, version); got != want || err != nil {
			t.Errorf("%s: %q, %v", version, got, err)
		}
	}
	if got, err := notesOf(changelog, "2.0.0"); err == nil {
		t.Errorf("a version without a section has the notes %q", got)
	}
}

// TestLicenses checks that the text of a licence is listed once, with all that is under it, and that a library without
// one stops the release.
func TestLicenses(t *testing.T) {
	folder := t.TempDir()
	m := module{path: "example.org/none", version: "v1.0.0"}
	if err := m.readLicenses(folder); err == nil {
		t.Error("a library without a licence passes")
	}
	for name, text := range map[string]string{"LICENSE.txt": "MIT License\n\nPermission is hereby granted, free of charge", "NOTICE": "by somebody", "license.go": "package x", "main.go": ""} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.readLicenses(folder); err != nil || len(m.texts) != 2 {
		t.Errorf("%q, %v", m.texts, err)
	}
	copyleft := module{path: "example.org/copyleft", licenses: []string{"BSD-2-Clause", "LGPL-3.0"}}
	if m.permitted() != nil || copyleft.permitted() == nil {
		t.Errorf("%v; %v", m.permitted(), copyleft.permitted())
	}
	same := module{path: "example.org/same", version: "v2.0.0", texts: m.texts}
	text := licenseTexts([]system{{modules: []module{m, same}}, {modules: []module{m}}})
	if strings.Count(text, "Permission is hereby") != 1 || strings.Count(text, "example.org/none v1.0.0") != 2 || strings.Count(text, "example.org/same v2.0.0") != 2 {
		t.Errorf("the texts are %s", text)
	}
}

func TestBadInput(t *testing.T) {
	for _, args := range [][]string{
		{}, {"-version", "1.0.0"}, {"-version", "1.0.0", "-at", "1", "-maintainer", "x", "-built", t.TempDir()}, {"-nothing"},
	} {
		if err := run(append(args, "-dist", t.TempDir()), io.Discard); err == nil {
			t.Errorf("%q writes a release", args)
		}
	}
}
