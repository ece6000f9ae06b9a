//go:build linux

package bench

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	mrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"thru/internal/measure"
	"thru/internal/transfer"
	"thru/internal/transfer/clients"
	"thru/internal/transfer/servers"
	"thru/internal/unit"
)

const (
	// inMemory is a file system in memory with all files of the transfers (shm_overview(7)).
	inMemory = "/dev/shm"
	// asFast is the share of the protocol's own client that `thru transfer` must reach.
	asFast = 0.9
	// moveTime limits one transfer.
	moveTime = 2 * time.Minute
)

// moving is one protocol in one direction: the same file with thru and with the common copy programs, from
// memory to memory.
type moving struct {
	service  fileService
	server   servers.Server
	upload   bool
	settings settings
	dir      string // in memory, contains all files

	clients []fileClient
	nowhere *result   // for thru the goodput of the protocol over memory, for others a file in memory to the null device
	whole   *result   // from the connection to the end, from a file in memory to a file in memory
	named   string    // the limiting layer according to thru
	setups  []float64 // ns until thru's first byte of the file
	calls   int       // sent files have different names: a server may remember a removed one
}

// addTransfer compares `thru transfer` with the clients of each protocol.
func (r *report) addTransfer(ctx context.Context, w io.Writer) error {
	if absent(r.settings.thru) != "" {
		return nil
	}
	for _, service := range fileServices() {
		if !r.settings.only.MatchString(service.name(false)) && !r.settings.only.MatchString(service.name(true)) {
			continue
		}
		if err := r.addService(ctx, w, service); err != nil {
			return fmt.Errorf("bench: transfers by %s: %w", service.protocol, err)
		}
	}
	return nil
}

// addService starts the server of a protocol, and transfers files in both directions. It reports a server
// that cannot be started.
func (r *report) addService(ctx context.Context, w io.Writer, service fileService) error {
	dir, err := roomInMemory(4 * r.settings.bytes)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server, err := service.ready(dir)
	if err != nil {
		r.bars = append(r.bars, []string{service.name(false) + " and up", "any", "not checked: " + err.Error(), ""})
		fmt.Fprintf(w, "\n%s: not checked: %v\n", service.name(false), err)
		return nil
	}
	if err := lay(filepath.Join(dir, "local"), r.settings.bytes); err != nil {
		return err
	}
	if err := os.Link(filepath.Join(dir, "local"), filepath.Join(server.Folder, "there")); err != nil {
		return err
	}
	p, err := command{argv: service.argv(server), cpu: -1}.start()
	if err != nil {
		return err
	}
	defer func() {
		p.stop()
		_ = unix.Kill(-p.cmd.Process.Pid, unix.SIGKILL) // remaining processes of its session
	}()
	for _, port := range service.ports {
		if err := awaitPort(ctx, p, "tcp/"+port); err != nil {
			return err
		}
	}
	for _, upload := range []bool{false, true} {
		if !r.settings.only.MatchString(service.name(upload)) {
			continue
		}
		m := newMoving(r.settings, service, server, dir, upload)
		if err := m.rounds(ctx); err != nil {
			return err
		}
		m.nowhere.out = append(m.nowhere.out, "what binds, as thru says: "+m.named)
		m.whole.out = append(m.whole.out, "thru's first byte comes after "+digits(median(m.setups)/1e6)+" ms")
		r.add(w, m.nowhere)
		r.add(w, m.whole)
	}
	return nil
}

// roomInMemory returns a folder in memory with enough room.
func roomInMemory(bytes int64) (string, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(inMemory, &s); err != nil {
		return "", fmt.Errorf("looking for room in %s: %w", inMemory, err)
	}
	if free := int64(s.Bavail) * s.Bsize; free < bytes {
		return "", fmt.Errorf("%s has %s left, and %s are needed: -bytes takes less", inMemory, unit.Size(free), unit.Size(bytes))
	}
	return os.MkdirTemp(inMemory, "bench-")
}

// lay creates an incompressible file.
func lay(name string, bytes int64) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails
	_, err = io.CopyN(f, mrand.NewChaCha8(key), bytes)
	return errors.Join(err, f.Close())
}

func newMoving(s settings, service fileService, server servers.Server, dir string, upload bool) *moving {
	m := &moving{service: service, server: server, upload: upload, settings: s, dir: dir}
	direction := []string{"download", "to nowhere", "file to file"}
	if upload {
		direction = []string{"upload", "thru: generated data, others: a file", "file to file"}
	}
	size := unit.Size(s.bytes)
	bars := []bar{{"0.9 of the best standard client", []claim{over(bestPeer, asFast)}}}
	about := shape{kind: fileMove, place: asCome}
	m.nowhere = &result{comparison: comparison{service.name(upload), fmt.Sprintf("%s of %s, %s", direction[0], size, direction[1]), about, bars}}
	m.whole = &result{comparison: comparison{service.name(upload) + "-file", fmt.Sprintf("%s of %s, %s, with connection and login", direction[0], size, direction[2]), about, bars}}
	add := func(name string) {
		m.nowhere.entries = append(m.nowhere.entries, entry{name: name})
		m.whole.entries = append(m.whole.entries, entry{name: name})
	}
	add("thru")
	for _, c := range service.clients(server, dir) {
		if why := absent(c.program); why != "" {
			m.nowhere.out = append(m.nowhere.out, c.program+": "+why)
			continue
		}
		m.clients = append(m.clients, c)
		name := c.program
		if c.version != "" {
			name += " " + programVersion(c.program, c.version)
		}
		add(strings.TrimSpace(name))
	}
	return m
}

// rounds runs all rounds.
func (m *moving) rounds(ctx context.Context) error {
	for round := range m.settings.repeats {
		if err := m.round(ctx); err != nil {
			return err
		}
		m.settings.progress("%s: round %d of %d", m.nowhere.name, round+1, m.settings.repeats)
	}
	m.settings.progress("")
	return nil
}

// round transfers the file once with each program, in random order, under the lock.
func (m *moving) round(ctx context.Context) error {
	unlock, err := lock(m.settings.lock)
	if err != nil {
		return err
	}
	defer unlock()
	for _, i := range mrand.Perm(len(m.nowhere.entries)) {
		move := m.thruMoves
		if i > 0 {
			move = func(ctx context.Context) (nowhere, whole float64, err error) {
				return m.clientMoves(ctx, m.clients[i-1])
			}
		}
		nowhere, whole, err := move(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s, %s: %v\n", m.nowhere.name, m.nowhere.entries[i].name, err)
			nowhere, whole = math.NaN(), math.NaN()
		}
		for r, figure := range map[*result]float64{m.nowhere: nowhere, m.whole: whole} {
			r.entries[i].readings = append(r.entries[i].readings, reading{figure: figure, p50: math.NaN(), p99: math.NaN()})
		}
	}
	return nil
}

// Files of the comparison: the local one to send, the received one, and the sent one at the server.
func (m *moving) local() string  { return filepath.Join(m.dir, "local") }
func (m *moving) landed() string { return filepath.Join(m.dir, "landed") }
func (m *moving) sent() string   { return filepath.Join(m.server.Folder, m.name()) }

// name returns the name of the next file to send.
func (m *moving) name() string { return fmt.Sprint("sent", m.calls) }

// thruMoves runs `thru transfer`, which transfers the file over memory and then completely.
func (m *moving) thruMoves(ctx context.Context) (nowhere, whole float64, err error) {
	name, more := "there", []string{"--to", m.landed()}
	target := m.landed()
	if m.upload {
		name, more, target = m.name(), []string{"--upload", "--from", m.local(), "--no-read-back"}, m.sent()
	}
	argv := []string{"env", "HOME=" + m.dir, "XDG_CONFIG_HOME=" + m.dir, "XDG_STATE_HOME=" + m.dir, "THRU_PASSWORD=" + m.server.Secret,
		m.settings.thru, "transfer", m.service.url(m.server, name), "--json", "--overwrite", "--no-disk", "--no-checksum", "--no-store"}
	if m.named != "" { // once is enough
		argv = append(argv, "--no-ceiling")
	}
	if m.service.certified {
		argv = append(argv, "--insecure")
	}
	if m.server.Config.Key != "" {
		argv = append(argv, "--identity", m.server.Config.Key)
	}
	out, _, err := m.run(ctx, append(argv, more...), target)
	var d measure.Document
	if perr := json.Unmarshal([]byte(out), &d); perr == nil && d.Error != nil {
		return 0, 0, fmt.Errorf("thru: %s", d.Error.Message)
	} else if err = errors.Join(err, perr); err != nil || d.Transfer == nil {
		return 0, 0, fmt.Errorf("reading thru's JSON: %w", err)
	}
	for _, run := range d.Transfer.Runs {
		switch {
		case run.Layer == measure.LayerMemory && run.Bps != nil:
			if nowhere = run.Bps.Value; len(run.Passes) > 0 {
				nowhere = run.Passes[0] // the others transfer it once
			}
		case run.Layer == measure.LayerWhole:
			whole = float64(run.Bytes) * 8e9 / float64(run.SetupNs+run.ElapsedNs)
			m.setups = append(m.setups, float64(run.SetupNs))
		}
	}
	if m.named == "" {
		m.named = cmp.Or(d.Transfer.Binds, "it cannot tell")
	}
	return nowhere, whole, nil
}

// clientMoves runs one of the other programs, for a download twice.
func (m *moving) clientMoves(ctx context.Context, c fileClient) (nowhere, whole float64, err error) {
	if m.upload {
		_, took, err := m.run(ctx, c.put(m.local(), m.name()), m.sent())
		bps := m.rate(took)
		return bps, bps, err
	}
	to := os.DevNull
	if c.keeps {
		to = m.landed()
	}
	_, took, err := m.run(ctx, c.get("there", to), "")
	if err != nil {
		return 0, 0, err
	}
	nowhere = m.rate(took)
	_, took, err = m.run(ctx, c.get("there", m.landed()), m.landed())
	return nowhere, m.rate(took), err
}

func (m *moving) rate(took time.Duration) float64 {
	return float64(m.settings.bytes) * 8 / took.Seconds()
}

// run runs a program to its end, and checks that the target is complete.
func (m *moving) run(ctx context.Context, argv []string, target string) (out string, took time.Duration, err error) {
	begun := time.Now()
	p, err := command{argv: argv, cpu: -1}.start()
	if err != nil {
		return "", 0, err
	}
	err = p.wait(ctx, moveTime)
	took = time.Since(begun)
	if err == nil && target != "" {
		if info, serr := os.Stat(target); serr != nil || info.Size() != m.settings.bytes {
			err = fmt.Errorf("%s: the file is not there, or not whole", argv[0])
		}
	}
	os.Remove(m.landed())
	os.Remove(m.sent())
	m.calls++
	if info, serr := os.Lstat(os.DevNull); serr != nil || info.Mode()&os.ModeCharDevice == 0 {
		err = errors.Join(err, fmt.Errorf("%s has replaced %s", argv[0], os.DevNull))
	}
	return p.out.String(), took, err
}

// TestFileServices: every protocol that thru speaks to other servers is compared, and each program gets both
// files.
func TestFileServices(t *testing.T) {
	at := servers.Server{Config: transfer.Config{Port: "4711", User: "me"}, Secret: "s", Dir: "share/a b"}
	var compared []string
	for _, s := range fileServices() {
		compared = append(compared, s.protocol)
		if got, want := s.url(at, "x"), s.protocol+"://me@127.0.0.1:4711/share/a%20b/x"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		for _, c := range s.clients(at, "/dir") {
			for _, call := range [][]string{c.get("far", "/near"), c.put("/near", "far")} {
				if text := strings.Join(call, " "); !strings.Contains(text, "far") || !strings.Contains(text, "/near") || !slices.Contains(call, c.program) {
					t.Errorf("%s is called by %q", c.program, call)
				}
			}
		}
	}
	for _, p := range clients.All() {
		if p.Name != "thru" && !slices.Contains(compared, strings.TrimSuffix(p.Name, "4")) { // nfs4 is nfs with another version
			t.Errorf("%s is compared with nobody", p.Name)
		}
	}
}
