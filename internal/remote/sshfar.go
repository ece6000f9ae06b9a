package remote

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/unit"
)

// remoteScript is what runs at the far end of ssh. MARK begins each line that it says,
// after what the login has printed, which may have begun a line:
//
//	here KERNEL MACHINE SYSTEM CODING SSH_CONNECTION   what it is; then it reads: BYTES SIZE SHA256 CODING,
//	                                                   and with "script" for the coding goes on with so many bytes of a script
//	send                                               a folder is there; then it reads so many BYTES
//	ready                                              said by thru, which speaks the control plane from there on
//	failed WHY
//
// It reads nothing before it has said so, so no byte goes to the wrong reader.
// The folder is its owner's alone, lies where programs may run and there is
// room, and goes whatever happens; thru removes it as soon as it runs. The text
// stands between single quotes, for whichever shell logs in: so it is one line
// for csh, and has no single quote, no backslash (fish) and no exclamation mark.
func remoteScript(mark string) string {
	script := strings.NewReplacer("\n", " ", "MARK", mark, "ATTEND", AttendVerb).Replace(strings.TrimSpace(sshFar))
	return "/bin/sh -c '" + script + "'"
}

//go:embed sshfar.sh
var sshFar string

// farEnd is what the far end has said of itself.
type farEnd struct {
	os, arch string // as Go names them
	gzip     bool
	addr     string // where ssh has reached it: its own, without port
}

// parseFarEnd reads the words behind "here". Where the far end does not tell
// its address, that is the host which was asked for.
func parseFarEnd(words, destination string) (farEnd, error) {
	w := strings.Fields(words)
	if len(w) != 4 && len(w) != 8 || w[0] == "?" || w[1] == "?" { // eight with SSH_CONNECTION
		return farEnd{}, fault.Failf("see what `ssh "+destination+" uname -sm` prints: the PATH of the login may be wrong", "remote: %s says of itself %.60q, and not which system it is", destination, words)
	}
	far := farEnd{os: systemName(w[0], w[2]), arch: machineName(w[1]), gzip: w[3] == "gzip"}
	far.addr = destination[strings.LastIndex(destination, "@")+1:]
	if len(w) == 8 { // SSH_CONNECTION: client, port, server, port (ssh(1))
		if a, err := netip.ParseAddr(w[6]); err == nil && a.Zone() == "" {
			far.addr = a.Unmap().String()
		}
	}
	return far, nil
}

// systemName turns what uname says (-s, -o) into Go's name.
func systemName(kernel, system string) string {
	switch kernel {
	case "VMkernel":
		return "esxi"
	case "SunOS":
		if system == "illumos" {
			return "illumos"
		}
		return "solaris"
	}
	return strings.ToLower(kernel) // Linux, FreeBSD, Darwin
}

// machineName turns what uname -m says into Go's name.
func machineName(machine string) string {
	switch machine {
	case "x86_64", "i86pc": // Solaris names the platform
		return "amd64"
	case "aarch64":
		return "arm64"
	case "i386", "i486", "i586", "i686":
		return "386"
	}
	if strings.HasPrefix(machine, "arm") && machine != "arm64" {
		return "arm"
	}
	return machine
}

// binariesVariable names a folder of programs for other systems.
const binariesVariable = "THRU_BINARIES"

// openBinary opens the thru that runs at the far end: this program, or one of
// another system as `make cross` names it.
func openBinary(far farEnd) (*os.File, error) {
	own, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("remote: finding this program: %w", err)
	}
	if far.os == runtime.GOOS && far.arch == runtime.GOARCH {
		if f, err := os.Open("/proc/self/exe"); err == nil { // also after an upgrade on disk
			return f, nil
		}
		return os.Open(own)
	}
	name := "thru-" + far.os + "-" + far.arch
	for _, dir := range []string{os.Getenv(binariesVariable), filepath.Dir(own)} {
		if dir == "" {
			continue
		}
		if f, err := os.Open(filepath.Join(dir, name)); err == nil {
			return f, nil
		}
	}
	return nil, fault.Failf(fmt.Sprintf("put %s of the same version (`make cross` builds all) beside this program in %s, or into a folder that %s names",
		name, filepath.Dir(own), binariesVariable), "remote: there is no thru for %s/%s at hand", far.os, far.arch)
}

// parcel is a program as it goes over the wire.
type parcel struct {
	body   []byte
	size   int64 // of the program
	sum    [sha256.Size]byte
	coding string
}

// pack reads a program, and compresses it where the far end can undo that.
func pack(r io.Reader, zip bool) (p parcel, err error) {
	var body bytes.Buffer
	sum := sha256.New()
	p.coding = "plain"
	var to io.Writer = &body
	end := func() error { return nil }
	if zip {
		z, err := gzip.NewWriterLevel(&body, gzip.BestSpeed)
		if err != nil {
			return p, fmt.Errorf("remote: compressing thru: %w", err)
		}
		p.coding, to, end = "gzip", z, z.Close
	}
	p.size, err = io.Copy(io.MultiWriter(sum, to), r)
	if err := errors.Join(err, end()); err != nil {
		return p, fmt.Errorf("remote: reading thru to copy it: %w", err)
	}
	p.body = body.Bytes()
	sum.Sum(p.sum[:0])
	return p, nil
}

// parcels keeps what was packed: many hosts get the same.
type parcels struct {
	mu  sync.Mutex
	all map[farEnd]parcel
}

// of packs the program for a far end, once for each kind of host.
func (p *parcels) of(far farEnd) (parcel, error) {
	far.addr = "" // it says nothing of the program
	p.mu.Lock()
	defer p.mu.Unlock()
	if box, ok := p.all[far]; ok {
		return box, nil
	}
	file, err := openBinary(far)
	if err != nil {
		return parcel{}, err
	}
	defer file.Close()
	box, err := pack(file, far.gzip)
	if err != nil {
		return parcel{}, err
	}
	measure.Put(&p.all, far, box)
	return box, nil
}

// bring copies a program to the far end and waits until it runs there.
func (s *sshProcess) bring(box parcel, p progress) error {
	if _, err := fmt.Fprintf(s.in, "%d %d %x %s\n", len(box.body), box.size, box.sum, box.coding); err != nil {
		return s.explain("copying thru there", err)
	}
	if _, err := s.expect("send", "finding a place for thru", sshAnswerTime); err != nil {
		return err
	}
	const piece = 1 << 20
	for done := 0; done < len(box.body); done += piece {
		p.Checking(fmt.Sprintf("copying %s to %s: %d%%", unit.Size(int64(len(box.body))), s.destination, 100*done/len(box.body)))
		if _, err := s.in.Write(box.body[done:min(done+piece, len(box.body))]); err != nil {
			break // the far end says why, or ssh does
		}
	}
	p.Checking("starting thru on " + s.destination)
	_, err := s.expect("ready", "copying thru there", 0)
	return err
}
