package remote

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"thru/internal/fault"
)

// alone is a user who can be asked nothing.
type alone struct{}

func (alone) Line(string)        {}
func (alone) Warn(string, error) {}
func (alone) Progress() progress { return noProgress{} }
func (alone) Asks() io.Writer    { return nil }
func (alone) Interruptible(_ context.Context, ask func() (string, error)) (string, error) {
	return ask()
}

type noProgress struct{}

func (noProgress) Checking(string) {}
func (noProgress) Clear()          {}

// farThru is the program that is deployed: it records how it is called.
const farThru = `#!/bin/sh
test "$1" != version || { echo thru 9.9; exit; }
printf '%s|' "$@" >> "$0.calls"
case $2 in install) cat >> "$0.calls";; esac
test ! -e "$0.broken" || { echo "Unit thru-serve.service is masked."; exit 1; }
`

// deployed returns a dialer to this machine through a fake ssh, the folder for the program, and a survey of it.
func deployed(t *testing.T) (folder string, survey func() *Site) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs sh")
	}
	bin, folder := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"ssh":  "#!/bin/sh\nfor last; do :; done\neval \"$last\"\n",
		"sudo": "#!/bin/sh\nshift\nexec \"$@\"\n",
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	n := New(alone{}, "9.9")
	n.parcels.all = map[farEnd]parcel{}
	for _, zip := range []bool{true, false} {
		box, err := pack(strings.NewReader(farThru), zip)
		if err != nil {
			t.Fatal(err)
		}
		n.parcels.all[farEnd{os: runtime.GOOS, arch: runtime.GOARCH, gzip: zip}] = box
	}
	return folder, func() *Site {
		t.Helper()
		s, err := Dialer{Network: n}.survey(context.Background(), "root@web1", folder)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
}

// TestDeploy deploys to this machine, again, and undoes it; the join string is in no command line.
func TestDeploy(t *testing.T) {
	folder, survey := deployed(t)
	program := filepath.Join(folder, "thru")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho thru 1.0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := survey()
	if s.Same || s.Has != "thru 1.0" || !strings.Contains(s.Plan("9.9"), "in place of thru 1.0") {
		t.Fatalf("%+v: %s", s, s.Plan("9.9"))
	}
	if err := s.Install(context.Background(), "thru1:secret", []string{"--label", "site=it's"}); err != nil {
		t.Fatal(err)
	}
	want := "service|install|serve|--yes|--restart|--controller|-|--|--label|site=it's|thru1:secret\n"
	if got, err := os.ReadFile(program + ".calls"); err != nil || string(got) != want {
		t.Errorf("it ran %q (%v), want %q", got, err, want)
	}
	s = survey()
	if !s.Same || !strings.HasPrefix(s.Plan("9.9"), "keep thru 9.9") {
		t.Errorf("the second time: %+v", s)
	}
	if err := s.Install(context.Background(), "thru1:secret", nil); err != nil {
		t.Fatal(err)
	}
	if err := survey().Undo(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(program); err != nil || !bytes.Contains(got, []byte("thru 1.0")) {
		t.Errorf("the program of before: %q, %v", got, err)
	}
	if got, err := os.ReadFile(program + ".calls"); err != nil || !strings.HasSuffix(string(got), "service|remove|serve|--yes|") {
		t.Errorf("it ran %q, %v", got, err)
	}
	if _, err := os.Stat(program + ".deployed"); err == nil {
		t.Error("the mark stays")
	}
}

// TestDeployFails: an installation that fails says why, and one that thru did not deploy stays.
func TestDeployFails(t *testing.T) {
	folder, survey := deployed(t)
	program := filepath.Join(folder, "thru")
	if err := os.WriteFile(program+".broken", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	err := survey().Install(context.Background(), "thru1:secret", nil)
	if err == nil || !strings.Contains(err.Error(), "Unit thru-serve.service is masked.") || fault.Code(err) != fault.Failed {
		t.Errorf("%v", err)
	}
	if err := os.Remove(program + ".broken"); err != nil {
		t.Fatal(err)
	}
	if err := survey().Undo(context.Background()); err != nil { // half an installation
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err == nil {
		t.Error("the program stays")
	}
	if err := os.WriteFile(program, []byte(farThru), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := survey().Undo(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Error("a program that it did not deploy is removed:", err)
	}
}
