package remote

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"thru/internal/fault"
)

// The script is in single quotes for whichever shell logs in.
func TestRemoteScriptSurvivesEveryShell(t *testing.T) {
	script, ok := strings.CutPrefix(remoteScript("thru-X"), "/bin/sh -c '")
	script, closed := strings.CutSuffix(script, "'")
	if !ok || !closed {
		t.Fatalf("no single word for /bin/sh: %s", script)
	}
	if i := strings.IndexAny(script, "'\\!\n"); i >= 0 {
		t.Errorf("%q means something to a shell between single quotes: ...%.40s", script[i], script[i:])
	}
	for _, shell := range []string{"sh", "dash", "bash", "busybox"} {
		if _, err := exec.LookPath(shell); err != nil {
			continue // one of them always exists
		}
		args := []string{"-n", "-c", script}
		if shell == "busybox" {
			args = append([]string{"sh"}, args...)
		}
		if out, err := exec.Command(shell, args...).CombinedOutput(); err != nil {
			t.Errorf("%s cannot read the script: %v\n%s", shell, err, out)
		}
	}
}

func TestParseFarEnd(t *testing.T) {
	tests := []struct {
		words string
		want  farEnd
	}{
		{"Linux x86_64 GNU/Linux gzip 10.0.0.1 50000 10.0.0.2 22", farEnd{"linux", "amd64", true, "10.0.0.2"}},
		{"Linux aarch64 GNU/Linux plain fd00::1 50000 fd00::2 22", farEnd{"linux", "arm64", false, "fd00::2"}},
		{"Linux armv7l ? plain", farEnd{"linux", "arm", false, "web1"}},
		{"Linux i686 GNU/Linux plain fe80::1%eth0 5 fe80::2%eth0 22", farEnd{"linux", "386", false, "web1"}},
		{"SunOS i86pc illumos gzip ::ffff:10.0.0.1 5 ::ffff:10.0.0.2 22", farEnd{"illumos", "amd64", true, "10.0.0.2"}},
		{"SunOS i86pc Solaris gzip", farEnd{"solaris", "amd64", true, "web1"}},
		{"FreeBSD amd64 FreeBSD gzip", farEnd{"freebsd", "amd64", true, "web1"}},
		{"Darwin arm64 Darwin gzip", farEnd{"darwin", "arm64", true, "web1"}},
		{"VMkernel x86_64 ESXi gzip", farEnd{"esxi", "amd64", true, "web1"}},
	}
	for _, tt := range tests {
		got, err := parseFarEnd(tt.words, "root@web1")
		if err != nil || got != tt.want {
			t.Errorf("%q: %+v, %v; want %+v", tt.words, got, err, tt.want)
		}
	}
	for _, bad := range []string{"? ? ? plain", "Linux ? ? plain", "? plain 10.0.0.1 50000 10.0.0.2 22", "", "Linux", "Linux x86_64 GNU/Linux"} {
		if far, err := parseFarEnd(bad, "web1"); err == nil {
			t.Errorf("%q gives %+v", bad, far)
		}
	}
}

// The far end's words are untrusted.
func FuzzParseFarEnd(f *testing.F) {
	f.Add("Linux x86_64 GNU/Linux gzip 10.0.0.1 50000 10.0.0.2 22")
	f.Add("SunOS i86pc illumos plain")
	f.Fuzz(func(t *testing.T, words string) {
		far, err := parseFarEnd(words, "root@web1")
		if err == nil && (far.os == "" || far.arch == "" || far.addr == "") {
			t.Errorf("%q is taken, and gives %+v", words, far)
		}
	})
}

func TestReachedAt(t *testing.T) {
	for connection, want := range map[string][]string{
		"10.0.0.1 50000 10.0.0.2 22":        {"10.0.0.2"},
		"fd00::1 50000 fd00::2 22":          {"fd00::2"},
		"::ffff:1.2.3.4 5 ::ffff:1.2.3.5 6": {"1.2.3.5"},
		"fe80::1%eth0 5 fe80::2%eth0 22":    nil, // its zone means nothing to other hosts
		"":                                  nil,
		"UNKNOWN 65535 UNKNOWN 65535":       nil,
	} {
		if diff := cmp.Diff(want, reachedAt(connection)); diff != "" {
			t.Errorf("%q: %s", connection, diff)
		}
	}
}

func TestOpenBinary(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(binariesVariable, dir)
	own, err := openBinary(farEnd{os: runtime.GOOS, arch: runtime.GOARCH})
	if err != nil {
		t.Fatal(err)
	}
	own.Close()
	far := farEnd{os: "illumos", arch: "amd64"}
	_, err = openBinary(far)
	if err == nil || fault.Code(err) != fault.Failed || !strings.Contains(fault.Hint(err), "thru-illumos-amd64") {
		t.Errorf("a missing program: %v, hint %q", err, fault.Hint(err))
	}
	if err := os.WriteFile(filepath.Join(dir, "thru-illumos-amd64"), []byte("program"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := openBinary(far)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if b, err := io.ReadAll(f); string(b) != "program" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}

func TestPack(t *testing.T) {
	program := bytes.Repeat([]byte("thru "), 10000)
	plain, err := pack(bytes.NewReader(program), false)
	if err != nil || plain.coding != "plain" || !bytes.Equal(plain.body, program) {
		t.Errorf("plain: %d bytes, %s, %v", len(plain.body), plain.coding, err)
	}
	zipped, err := pack(bytes.NewReader(program), true)
	if err != nil || zipped.coding != "gzip" || len(zipped.body) >= len(program) {
		t.Fatalf("gzip: %d bytes, %s, %v", len(zipped.body), zipped.coding, err)
	}
	r, err := gzip.NewReader(bytes.NewReader(zipped.body))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); err != nil || !bytes.Equal(b, program) {
		t.Errorf("it unpacks to %d bytes, %v", len(b), err)
	}
	for _, p := range []parcel{plain, zipped} {
		if p.size != int64(len(program)) || p.sum != sha256.Sum256(program) {
			t.Errorf("%s: size %d, sum %x", p.coding, p.size, p.sum)
		}
	}
	broken := errors.New("broken")
	if _, err := pack(io.MultiReader(strings.NewReader("x"), failing{broken}), true); !errors.Is(err, broken) {
		t.Errorf("a program that cannot be read: %v", err)
	}
}

// failing is a reader that fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// Only the folder that was made for the program may be removed.
func TestRemoveOwnLeavesOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "thru-x")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	removeOwn(dir) // this program is not in that folder
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}
