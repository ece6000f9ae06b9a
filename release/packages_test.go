//go:build packages

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Two releases of the same sources; the versions differ.
const before, after = "0.0.0+1.gtest", "0.0.0+2.gtest"

// built makes both for linux/amd64, one after the other: they use the same folder.
var built = sync.OnceValue(func() error { return errors.Join(build(before), build(after)) })

// scratch is removed when the tests end.
var scratch string

func TestMain(m *testing.M) {
	if os.Getuid() != 0 {
		fmt.Println("the tests of packages need root")
		os.Exit(1)
	}
	var err error
	if scratch, err = os.MkdirTemp("", "thru-packages-"); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(scratch)
	os.Exit(code)
}

// build runs make release.
func build(version string) error {
	text, err := exec.Command("make", "-C", "..", "release", "CROSS=linux/amd64", "VERSION="+version, "DIST="+filepath.Join(scratch, version)).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("make release: %w: %s", err, text)
	}
	return err
}

// file returns the one file of a release that matches.
func file(t *testing.T, version, pattern string) string {
	t.Helper()
	if err := built(); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(scratch, version, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %d files, %v", pattern, len(found), err)
	}
	return found[0]
}

// clean makes a small Debian, once.
var clean = sync.OnceValues(func() (string, error) {
	root := filepath.Join(scratch, "debian")
	release, err := exec.Command("sh", "-c", ". /etc/os-release; echo $VERSION_CODENAME").Output()
	if err != nil {
		return "", err
	}
	text, err := exec.Command("mmdebstrap", "--quiet", "--mode=root", "--variant=apt", "--include=rpm", strings.TrimSpace(string(release)), root).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("mmdebstrap: %w: %s", err, text)
	}
	return root, err
})

// machine is a copy of the small Debian.
type machine struct {
	*testing.T
	root string
}

func newMachine(t *testing.T) machine {
	debian, err := clean()
	if err != nil {
		t.Fatal(err)
	}
	m := machine{t, filepath.Join(t.TempDir(), "root")}
	m.host("cp", "-a", debian, m.root)
	return m
}

// host runs a program of this host.
func (m machine) host(name string, args ...string) string {
	m.Helper()
	text, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		m.Fatalf("%s %q: %v\n%s", name, args, err, text)
	}
	return string(text)
}

// try runs a command in the machine, in /root, with a network of its own that is loopback alone.
func (m machine) try(command string) (string, error) {
	inside := `mount -t proc proc "$1/proc" && ip link set lo up && exec chroot "$1" sh -c "cd /root && $2"`
	c := exec.Command("unshare", "--mount", "--pid", "--fork", "--net", "--uts", "--ipc", "sh", "-c", inside, "sh", m.root, command)
	c.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8"}
	c.Stdin = strings.NewReader("y\n") // the answer to apt
	text, err := c.CombinedOutput()
	m.Logf("# %s\n%s", command, text)
	return string(text), err
}

// run is try of a command that must succeed.
func (m machine) run(command string) string {
	m.Helper()
	text, err := m.try(command)
	if err != nil {
		m.Fatalf("%s: %v", command, err)
	}
	return text
}

// download puts files alone into the folder of the machine's user.
func (m machine) download(files ...string) {
	m.Helper()
	m.host("sh", "-c", "rm -f "+m.root+"/root/thru*")
	for _, f := range files {
		m.host("cp", f, m.root+"/root/")
	}
}

// moving are files that any use of a package manager changes.
var moving = regexp.MustCompile(`^(proc|tmp|var/(log|cache|lib/(apt|dpkg|rpm))|root/\.rpmdb|root/thru|etc/ld\.so\.cache)`)

// files lists what is in the machine, with what a change of it changes.
func (m machine) files() map[string]string {
	m.Helper()
	found := map[string]string{}
	err := fs.WalkDir(os.DirFS(m.root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || moving.MatchString(name) {
			return err
		}
		info, err := d.Info()
		if err == nil && !d.IsDir() {
			found[name] = fmt.Sprint(info.Mode(), info.Size(), info.ModTime())
		}
		if err == nil && d.IsDir() {
			found[name] = info.Mode().String()
		}
		return err
	})
	if err != nil {
		m.Fatal(err)
	}
	return found
}

// left lists what differs from before, except results.
func (m machine) left(before map[string]string) []string {
	var names []string
	for name, state := range m.files() {
		if before[name] != state && !strings.HasPrefix(name, "root/.local") {
			names = append(names, name)
		}
		delete(before, name)
	}
	for name := range before {
		names = append(names, "missing: "+name)
	}
	slices.Sort(names)
	return names
}

// commands returns the commands of a section of docs/install.md.
func commands(t *testing.T, section string) []string {
	t.Helper()
	page, err := os.ReadFile("../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "\n## "+section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	var all []string
	for line := range strings.Lines(text) {
		if command, indented := strings.CutPrefix(line, "    "); indented {
			all = append(all, strings.TrimSpace(command))
		}
	}
	if !found || len(all) == 0 {
		t.Fatalf("docs/install.md has no commands for %s", section)
	}
	return all
}

// measures runs the commands of the first measurement.
func (m machine) measures(version string) {
	m.Helper()
	all := commands(m.T, "First measurement")
	if got := m.run(all[0]); strings.TrimSpace(got) != "thru "+version {
		m.Errorf("%s prints %q, not %s", all[0], got, version)
	}
	if got := m.run(all[1]); !strings.Contains(got, "b/s") {
		m.Errorf("%s measures nothing: %s", all[1], got)
	}
}

// lives installs a version, upgrades it, and removes it, by the commands of a section. verify asks the package manager.
func (m machine) lives(section, pattern, verify string, kept ...string) {
	untouched := m.files()
	c := commands(m.T, section)
	m.download(file(m.T, before, pattern))
	m.run(c[0])
	m.measures(before)
	m.unbroken(verify)
	m.run("zcat /usr/share/man/man1/thru.1.gz | grep -q thru && bash -c '. /usr/share/bash-completion/completions/thru && complete -p thru'")
	m.run("echo color: never >> /etc/thru/config.yaml")
	m.refuses(c[0], file(m.T, after, pattern))
	m.measures(before)
	m.download(file(m.T, after, pattern))
	m.run(c[0])
	m.measures(after)
	m.unbroken(verify)
	if text := m.run("thru config"); !strings.Contains(text, "never") {
		m.Errorf("the upgrade has lost the configuration: %s", text)
	}
	if text := m.run("thru history"); strings.Count(text, "localhost") < 3 {
		m.Errorf("results of the version before are gone: %s", text)
	}
	m.run(c[1])
	if left := m.left(untouched); !slices.Equal(left, kept) {
		m.Errorf("%s leaves %q, not %q", c[1], left, kept)
	}
}

// unbroken checks that the package manager finds nothing but the changed configuration.
func (m machine) unbroken(verify string) {
	m.Helper()
	for line := range strings.Lines(m.run(verify + " || true")) {
		if !strings.HasSuffix(strings.TrimSpace(line), " c /etc/thru/config.yaml") {
			m.Errorf("%s finds %q", verify, line)
		}
	}
}

// refuses checks that half a download is not installed.
func (m machine) refuses(install, whole string) {
	m.Helper()
	m.download(whole)
	half := m.root + "/root/" + filepath.Base(whole)
	info, err := os.Stat(half)
	if err == nil {
		err = os.Truncate(half, info.Size()/2)
	}
	if err != nil {
		m.Fatal(err)
	}
	if text, err := m.try(install); err == nil {
		m.Errorf("half a package is installed: %s", text)
	}
}

func TestDebian(t *testing.T) {
	t.Parallel()
	newMachine(t).lives("Debian, Ubuntu", "*_amd64.deb", "dpkg --verify thru; dpkg --audit")
}

// TestHalfUpgrade stops an upgrade between its two steps.
func TestHalfUpgrade(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.download(file(t, before, "*_amd64.deb"))
	m.run("dpkg -i thru_*.deb")
	m.download(file(t, after, "*_amd64.deb"))
	m.run("dpkg --unpack thru_*.deb")
	m.measures(after)
	m.run("dpkg --configure -a")
	m.measures(after)
}

func TestRPM(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	// Debian's rpm wants to be forced, and knows none of Debian's packages.
	wrapper := "#!/bin/sh\nexec /usr/bin/rpm --force-debian --nodeps \"$@\"\n"
	if err := os.WriteFile(m.root+"/usr/local/bin/rpm", []byte(wrapper), 0o755); err != nil {
		t.Fatal(err)
	}
	m.lives("Fedora, RHEL, SUSE", "*.x86_64.rpm", "rpm -V thru", "etc/thru", "etc/thru/config.yaml.rpmsave") // changed by the test
}

func TestArchive(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	untouched := m.files()
	c := commands(t, "Any Linux, FreeBSD, macOS, illumos, Solaris")
	m.download(file(t, after, "*-linux-amd64.tar.gz"))
	m.run(c[0])
	m.run(c[1])
	m.measures(after)
	m.run(c[2])
	if left := m.left(untouched); len(left) > 0 {
		t.Errorf("%s leaves %q", c[2], left)
	}
}

func TestSignature(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	m := machine{t, ""}
	m.host("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder+"/key")
	deb := file(t, after, "*_amd64.deb")
	m.host("cp", "-r", filepath.Dir(deb), folder+"/dist")
	m.host("ssh-keygen", "-Y", "sign", "-f", folder+"/key", "-n", "file", folder+"/dist/SHA256SUMS")
	public, err := os.ReadFile(folder + "/key.pub")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(folder+"/dist/allowed_signers", fmt.Appendf(nil, "thru namespaces=\"file\" %s", public), 0o644); err != nil {
		t.Fatal(err)
	}
	script := "cd " + folder + "/dist && " + strings.Join(commands(t, "Check the download"), " && ")
	m.host("sh", "-c", script)
	if err := os.WriteFile(folder+"/dist/"+filepath.Base(deb), []byte("another"), 0o644); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command("sh", "-c", script).CombinedOutput(); err == nil {
		t.Errorf("a changed package passes: %s", text)
	}
}

func TestLintian(t *testing.T) {
	t.Parallel()
	// The address of the maintainer is that of the last commit.
	text := machine{t, ""}.host("lintian", "--allow-root", "--fail-on", "error", "--suppress-tags", "bogus-mail-host", "--tag-display-limit", "0", file(t, after, "*_amd64.deb"))
	t.Log(text)
}

// TestImage runs the image as a container: its root is read-only, and its user has no rights.
func TestImage(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	m := machine{t, ""}
	m.host("skopeo", "copy", "--override-os", "linux", "--override-arch", "amd64", "oci-archive:"+file(t, after, "*-oci.tar"), "oci:"+folder+"/layout:thru")
	m.host("umoci", "unpack", "--image", folder+"/layout:thru", folder+"/bundle")
	files := strings.Fields(m.host("sh", "-c", "cd "+folder+"/bundle/rootfs && find . -type f"))
	if !slices.Equal(files, []string{"./thru"}) {
		t.Errorf("the image contains %q", files)
	}
	text, err := os.ReadFile(folder + "/bundle/config.json")
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	process := config["process"].(map[string]any)
	if user := process["user"].(map[string]any); user["uid"] != 65532.0 || user["gid"] != 65532.0 {
		t.Errorf("the image runs as %v", user)
	}
	process["terminal"] = false
	process["args"] = append(process["args"].([]any), "test", "-t", "1")
	config["root"].(map[string]any)["readonly"] = true
	if text, err = json.Marshal(config); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(folder+"/bundle/config.json", text, 0o644); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("runc", "run", "--bundle", folder+"/bundle", fmt.Sprintf("thru-test-%d", os.Getpid()))
	text, err = c.CombinedOutput()
	if err != nil || !bytes.Contains(text, []byte("b/s")) {
		t.Errorf("runc: %v\n%s", err, text)
	}
	t.Logf("%s", text)
}
