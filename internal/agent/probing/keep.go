package probing

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"thru/internal/bus"
	"thru/internal/sock"
	"thru/internal/stamp"
	"thru/internal/watch/record"
)

// keptFile is what an agent needs to go on with a watch after a restart, in the folder of the watch.
const keptFile = "watch.json"

// kept is its content.
type kept struct {
	Watch     string      `json:"watch"`
	Until     time.Time   `json:"until"` // end of the lease
	Reflected []reflected `json:"reflected"`
	Seed      uint64      `json:"seed"`
	Pairs     []bus.Pair  `json:"pairs"`
}

// keep writes what a restart needs. A full disk disturbs nothing: then a restart ends the watch. The caller holds mu.
func (p *Probing) keep(w *watch) {
	folder := w.samples.dir
	if folder == "" {
		return
	}
	k := kept{Watch: w.name, Until: w.until, Seed: w.seed}
	for _, r := range w.reflected {
		k.Reflected = append(k.Reflected, r)
	}
	for _, s := range w.sent {
		k.Pairs = append(k.Pairs, s.Pair)
	}
	text, err := json.Marshal(k)
	if err == nil && os.MkdirAll(folder, 0o700) == nil && bus.WritePrivate(filepath.Join(folder, keptFile), text, true) == nil {
		w.kept = w.until
	}
}

// resume goes on with the watches of an earlier process whose lease has not ended, and removes the others.
func (p *Probing) resume() {
	entries, err := os.ReadDir(p.conf.Folder)
	if err != nil { // most agents have none
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range entries {
		folder := filepath.Join(p.conf.Folder, e.Name())
		var k kept
		text, err := os.ReadFile(filepath.Join(folder, keptFile))
		if err != nil || json.Unmarshal(text, &k) != nil || p.folderOf(k.Watch) != folder {
			continue // not of this package, or not readable
		}
		left := time.Until(k.Until)
		if left <= 0 {
			os.RemoveAll(folder)
			continue
		}
		if w, err := p.renew(k.Watch, int64(left)); err == nil {
			p.restore(w, k)
		}
	}
}

// restore begins the sessions of a watch again. What cannot begin waits for the next request of its client.
func (p *Probing) restore(w *watch, k kept) {
	ctx := context.Background()
	w.seed = k.Seed
	for _, r := range k.Reflected {
		if p.openReflector(ctx, r.Port) == nil {
			_ = p.accept(w, record.Pair{From: r.From, To: r.To}, r)
		}
	}
	if len(k.Pairs) == 0 || p.openSender(ctx, k.Seed) != nil {
		return
	}
	for _, x := range k.Pairs {
		_ = p.begin(ctx, w, x)
	}
}

// openReflector opens the reflector, if there is none: at a port that an earlier process had, if that is free, or for 0 at any.
func (p *Probing) openReflector(ctx context.Context, port int) (err error) {
	if p.reflector != nil {
		return nil
	}
	open := func(at sock.Range) error {
		p.reflector, err = stamp.OpenReflector(context.WithoutCancel(ctx), stamp.ReflectorConfig{Listen: at, Device: p.conf.Device, Batch: batch})
		return err
	}
	if listen := p.conf.Listen; port > 0 && (listen.First == 0 || port >= listen.First && port <= listen.Last) {
		listen.First, listen.Last, listen.Offset = port, port, 0
		if open(listen) == nil {
			return nil
		}
	}
	return open(p.conf.Listen)
}

// openSender opens the sender, if there is none.
func (p *Probing) openSender(ctx context.Context, seed uint64) (err error) {
	if p.sender == nil {
		p.sender, err = stamp.OpenSender(context.WithoutCancel(ctx), stamp.Config{Device: p.conf.Device, Seed: seed, FirstSpan: firstSpan, Report: p.report})
	}
	return err
}
