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
	"thru/internal/cli/console"
	"thru/internal/fault"
	"thru/internal/measure"
)

// intake keeps results that hosts deliver: a folder for each host, so that none
// can crowd out another.
type intake struct {
	dir string
	say *console.Sayer
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
	doc, err := headOf(s.Body)
	if err != nil { // it would come again for ever
		i.say.Warn(fmt.Sprintf("%s has delivered what is no result; it is dropped: %v", who, err))
		return nil
	}
	path, err := i.write(safeName(who), safeName(s.ID), s.Body)
	if err != nil {
		i.say.Once("intake", "warning", fmt.Sprintf("results of hosts cannot be kept, and stay there: %v", err), nil)
		return fault.Failf("make room on the controller's disk", "cli: keeping a result: %w", err)
	}
	i.say.Forget("intake")
	i.say.Tell("result", fmt.Sprintf("%s has delivered a result that nobody had fetched: %s; kept in %s", who, about(doc), path),
		map[string]any{"host": s.Name, "agent": s.Agent, "kept_in": path})
	return nil
}

// head is what is read of a delivered result. What a host sends may take a
// thousand times its length when it is decoded, so no more is.
type head struct {
	Schema    string    `json:"schema"`
	Command   string    `json:"command"`
	StartedAt time.Time `json:"started_at"`
	Cells     firstCell `json:"cells"`
}

// firstCell is who was measured in the first of an array.
type firstCell struct{ From, To string }

// UnmarshalJSON implements json.Unmarshaler: it reads the first element alone.
func (f *firstCell) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if open, err := d.Token(); err != nil || open != json.Delim('[') || !d.More() {
		return err
	}
	var first struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
	err := d.Decode(&first)
	*f = firstCell(first)
	return err
}

// headOf refuses what no thru can have written. One of another version of the
// schema is kept: a newer thru reads it.
func headOf(text []byte) (h head, err error) {
	if err := json.Unmarshal(text, &h); err != nil {
		return h, err
	}
	if name, _, _ := strings.Cut(measure.Schema, "/"); !strings.HasPrefix(h.Schema, name+"/") {
		return h, errors.New("it names no schema of a result")
	}
	return h, nil
}

// about says what a result is of.
func about(h head) string {
	if h.Cells == (firstCell{}) {
		return short(h.Command)
	}
	return fmt.Sprintf("%s, %s -> %s", h.StartedAt.Local().Format("2006-01-02 15:04:05"), short(h.Cells.From), short(h.Cells.To))
}

// short is what another host says, fit for a line.
func short(text string) string { return console.Printable(text[:min(len(text), 128)]) }

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
