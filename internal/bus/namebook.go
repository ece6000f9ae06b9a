package bus

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"sync"
	"time"

	"thru/internal/fault"
)

// bookFile holds the names of a fleet, in the state folder of a controller.
const bookFile = "hosts.json"

// NameBook records which agent has which name: the first that used it, until the name
// is forgotten. An agent has one name at a time.
type NameBook struct {
	path string // "" for one in memory

	mu      sync.Mutex
	names   map[string]pin
	unsaved bool
}

// pin is the owner of a name.
type pin struct {
	Key    string            `json:"key"`
	SeenAt time.Time         `json:"seen_at"`
	Labels map[string]string `json:"labels,omitempty"` // so that plans select hosts that are away after a restart
}

// bookDoc is the form of bookFile.
type bookDoc struct {
	Version int            `json:"version"`
	Names   map[string]pin `json:"names"`
}

const bookVersion = 1

// OpenNameBook reads the names in a folder; without the file there are none. An empty
// dir is a book in memory.
func OpenNameBook(dir string) (*NameBook, error) {
	if dir == "" {
		return &NameBook{names: map[string]pin{}}, nil
	}
	if err := makePrivateDir(dir); err != nil {
		return nil, err
	}
	b := &NameBook{path: filepath.Join(dir, bookFile), names: map[string]pin{}}
	text, err := readPrivate(b.path)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return nil, err
	}
	if b.names, err = readNames(text); err != nil {
		return nil, fault.Failf("repair or remove the file; without it, the first agent that uses a name owns it", "bus: %s is damaged: %w", b.path, err)
	}
	return b, nil
}

// Claim gives a name to the key that has it, or to the first that asks. refused says
// why the key may not have it.
func (b *NameBook) Claim(name, key string, labels map[string]string, now time.Time) (refused string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old, taken := b.names[name]
	if taken && old.Key != key {
		return fmt.Sprintf("another host owns the name %s (key %s...)", name, old.Key[:8]), nil
	}
	if taken {
		b.names[name], b.unsaved = pin{key, now, labels}, true
		return "", nil
	}
	previous := b.named(key)
	if previous == "" && len(b.names) >= maxHosts {
		return "the controller has no room for more names; remove old ones: thru hosts CONTROLLER --forget NAME", nil
	}
	delete(b.names, previous)
	b.names[name] = pin{key, now, labels}
	if err := b.save(); err != nil {
		delete(b.names, name)
		if previous != "" {
			b.names[previous] = pin{key, now, labels}
		}
		return "", err
	}
	return "", nil
}

// bind gives a name to the owner that the controllers of a cluster have agreed on.
func (b *NameBook) bind(name string, owner pin) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if previous := b.named(owner.Key); previous != name {
		delete(b.names, previous)
	}
	b.names[name], b.unsaved = owner, true
}

// owner returns the key that has a name, or "".
func (b *NameBook) owner(name string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.names[name].Key
}

// nameOf returns the name that a key has, or "".
func (b *NameBook) nameOf(key string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.named(key)
}

// named is nameOf for a caller that holds the lock.
func (b *NameBook) named(key string) string {
	for n, p := range b.names {
		if p.Key == key {
			return n
		}
	}
	return ""
}

// pins returns a copy of all names and their owners.
func (b *NameBook) pins() map[string]pin {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.names)
}

// Forget releases a name, and returns the key that had it.
func (b *NameBook) Forget(name string) (key string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, taken := b.names[name]
	if !taken {
		return "", fault.Usagef("list the hosts: thru hosts", "bus: no host is named %q", name)
	}
	delete(b.names, name)
	if err := b.save(); err != nil {
		b.names[name] = p
		return "", err
	}
	return p.Key, nil
}

// Save stores when hosts were last seen.
func (b *NameBook) Save() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.unsaved {
		return nil
	}
	return b.save()
}

// save writes the file. The caller holds the lock.
func (b *NameBook) save() error {
	if b.path == "" {
		return nil
	}
	text, err := json.MarshalIndent(bookDoc{bookVersion, b.names}, "", "  ")
	if err != nil {
		return fmt.Errorf("bus: writing %s: %w", b.path, err)
	}
	if err := WritePrivate(b.path, append(text, '\n'), true); err != nil {
		return err
	}
	b.unsaved = false
	return nil
}

// hosts returns the named hosts, as far as the book knows them.
func (b *NameBook) hosts() map[string]Host {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make(map[string]Host, len(b.names))
	for name, p := range b.names {
		all[p.Key] = Host{ID: p.Key, Name: name, SeenAt: p.SeenAt, Labels: p.Labels}
	}
	return all
}

// readNames parses the file of a NameBook.
func readNames(b []byte) (map[string]pin, error) {
	var doc bookDoc
	if err := json.Unmarshal(b, &doc); err != nil {
		return nil, err
	}
	for name, p := range doc.Names {
		if !validName(name) || !validKey(p.Key) {
			return nil, fmt.Errorf("the name %q or its key is not valid", name)
		}
	}
	if doc.Names == nil {
		doc.Names = map[string]pin{}
	}
	return doc.Names, nil
}
