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

// remoteScript returns the script for the far end of ssh. MARK is the prefix of each
// line that it prints, since the login may have printed text before:
//
//	here KERNEL MACHINE SYSTEM CODING SSH_CONNECTION   its system; then it reads: BYTES SIZE SHA256 CODING,
//	                                                   and with "script" as the coding runs a script of so many bytes
//	send                                               the folder exists; then it reads BYTES bytes
//	ready                                              printed by thru, which starts the control plane there
//	failed WHY
//
// It reads nothing before it has printed that, so no byte goes to the wrong reader.
// The folder belongs to its owner alone, is where programs may run and has room, and
// is removed in any case; thru removes it as soon as it runs. The text is in single
// quotes, for whichever shell logs in: it is one line for csh, and has no single
// quote, no backslash (fish) and no exclamation mark.
func remoteScript(mark string) string {
	script := strings.NewReplacer("\n", " ", "MARK", mark, "ATTEND", AttendVerb).Replace(strings.TrimSpace(sshFar))
	return "/bin/sh -c '" + script + "'"
}

//go:embed sshfar.sh
var sshFar string

// farEnd is what the far end reported about itself.
type farEnd struct {
	os, arch string // as Go names them
	gzip     bool
	addr     string // address that ssh has reached: its own, without port
}

// parseFarEnd parses the words after "here". Without an address in them, it takes the
// destination.
func parseFarEnd(words, destination string) (farEnd, error) {
	w := strings.Fields(words)
	if len(w) != 4 && len(w) != 8 || w[0] == "?" || w[1] == "?" { // eight with SSH_CONNECTION
		return farEnd{}, fault.Failf("check the output of `ssh "+destination+" uname -sm`: the PATH of the login may be wrong", "remote: %s does not report its system, but %.60q", destination, words)
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

// systemName converts the output of uname (-s, -o) to Go's name.
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

// machineName converts the output of uname -m to Go's name.
func machineName(machine string) string {
	switch machine {
	case "x86_64", "i86pc": // Solaris prints the platform
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

// binariesVariable is the environment variable of a folder with programs for other systems.
const binariesVariable = "THRU_BINARIES"

// openBinary opens the thru program for the far end: this one, or one for another
// system, named as by `make cross`.
func openBinary(far farEnd) (*os.File, error) {
	own, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("remote: finding this program: %w", err)
	}
	if far.os == runtime.GOOS && far.arch == runtime.GOARCH {
		if f, err := os.Open("/proc/self/exe"); err == nil { // works also after an upgrade on disk
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
	return nil, fault.Failf(fmt.Sprintf("put %s of the same version (`make cross` builds all) into the folder of this program, %s, or into the folder in %s",
		name, filepath.Dir(own), binariesVariable), "remote: no thru program for %s/%s found", far.os, far.arch)
}

// parcel is a program in the form in which it is sent.
type parcel struct {
	body   []byte
	size   int64 // of the program
	sum    [sha256.Size]byte
	coding string
}

// pack reads a program, and compresses it if the far end can decompress it.
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

// parcels caches packed programs: many hosts get the same.
type parcels struct {
	mu  sync.Mutex
	all map[farEnd]parcel
}

// of packs the program for a far end, once for each kind of host.
func (p *parcels) of(far farEnd) (parcel, error) {
	far.addr = "" // the program does not depend on it
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
	if _, err := s.expect("send", "finding a folder for thru", sshAnswerTime); err != nil {
		return err
	}
	const piece = 1 << 20
	for done := 0; done < len(box.body); done += piece {
		p.Checking(fmt.Sprintf("copying %s to %s: %d%%", unit.Size(int64(len(box.body))), s.destination, 100*done/len(box.body)))
		if _, err := s.in.Write(box.body[done:min(done+piece, len(box.body))]); err != nil {
			break // the far end or ssh reports why
		}
	}
	p.Checking("starting thru on " + s.destination)
	_, err := s.expect("ready", "copying thru there", 0)
	return err
}
