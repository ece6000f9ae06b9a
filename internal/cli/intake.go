package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/measure"
)

// intake keeps results that hosts deliver: a folder for each host, so that none
// can crowd out another.
type intake struct {
	dir string
	say *sayer
	mu  sync.Mutex // one is written at a time
}

// Bounds of what is kept of one host: above them the oldest goes.
const (
	mostOfHost  = 1000
	bytesOfHost = 256 << 20
)

// take returns nil when the result is on the disk, or can never be used.
func (i *intake) take(s bus.Spooled) error {
	who := cmp.Or(s.Name, s.Agent)
	of, err := glanceAt(s.Body)
	if err != nil { // it would come again for ever
		i.say.warn(fmt.Sprintf("%s has delivered what is no result; it is dropped: %v", who, err))
		return nil
	}
	path, err := i.write(safeName(who), safeName(s.ID), s.Body)
	if err != nil {
		i.say.once("intake", "warning", fmt.Sprintf("results of hosts cannot be kept, and stay there: %v", err), nil)
		return fault.Failf("make room on the controller's disk", "cli: keeping a result: %w", err)
	}
	i.say.forget("intake")
	i.say.tell("result", fmt.Sprintf("%s has delivered a result that nobody had fetched: %s; kept in %s", who, of, path),
		map[string]any{"host": s.Name, "agent": s.Agent, "kept_in": path})
	return nil
}

// glance is what is read of a result: not its cells, of which a small text may
// hold so many that they fill the memory. It may be of a newer thru.
type glance struct {
	Schema  string    `json:"schema"`
	Command string    `json:"command"`
	At      time.Time `json:"started_at"`
	Cells   firstOf   `json:"cells"`
}

// firstOf is the first of a list of cells, however long that is.
type firstOf struct{ From, To string }

// UnmarshalJSON implements json.Unmarshaler.
func (f *firstOf) UnmarshalJSON(list []byte) error {
	d := json.NewDecoder(bytes.NewReader(list))
	if _, err := d.Token(); err != nil || !d.More() {
		return err
	}
	type cell firstOf
	return d.Decode((*cell)(f))
}

// glanceAt says what a result is of, or why it is none.
func glanceAt(text []byte) (string, error) {
	var g glance
	if err := json.Unmarshal(text, &g); err != nil {
		return "", err
	}
	if family, _, _ := strings.Cut(measure.Schema, "/"); !strings.HasPrefix(g.Schema, family+"/") {
		return "", fmt.Errorf("its schema is %q", g.Schema)
	}
	if g.Cells.From == "" {
		return g.Command, nil
	}
	return g.At.Local().Format("2006-01-02 15:04:05") + ", " + measure.PairName(g.Cells.From, g.Cells.To), nil
}

// write puts a result into the folder of its host, whole and on the disk.
func (i *intake) write(host, id string, text []byte) (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	dir := filepath.Join(i.dir, host)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if err := makeRoom(dir, int64(len(text))); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, part+"*")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, id+resultEnding)
	_, err = f.Write(text)
	err = cmp.Or(err, f.Sync())
	err = cmp.Or(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return "", err
	}
	if d, err := os.Open(dir); err == nil { // makes the name durable; not every system can sync a folder
		d.Sync()
		d.Close()
	}
	return path, nil
}

// makeRoom removes the oldest results of a host, and what a crash has left half
// written, until one more fits.
func makeRoom(dir string, bytes int64) error {
	entries, err := os.ReadDir(dir) // sorted by name, and so by time
	if err != nil {
		return err
	}
	sizes, all, count := map[string]int64{}, bytes, 1
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case err != nil:
		case strings.HasPrefix(e.Name(), part):
			os.Remove(filepath.Join(dir, e.Name()))
		case strings.HasSuffix(e.Name(), resultEnding):
			sizes[e.Name()] = info.Size()
			all += info.Size()
			count++
		}
	}
	for _, e := range entries {
		size, ours := sizes[e.Name()]
		if !ours || count <= mostOfHost && all <= bytesOfHost {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		count--
		all -= size
	}
	return nil
}

// safeName is what another host says, as the name of a file on any system.
func safeName(text string) string {
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
	b := []byte(text)
	for i, c := range b {
		if !slices.Contains([]byte(allowed), c) {
			b[i] = '_'
		}
	}
	name := strings.Trim(string(b), ".")
	return cmp.Or(name[:min(len(name), 128)], "_")
}
