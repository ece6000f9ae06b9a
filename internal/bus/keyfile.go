package bus

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/nats-io/nkeys"
)

// KeyFile returns the public nkey of a seed file for NATSConfig.Nkey, and makes
// the file (mode 0600) where there is none.
func KeyFile(path string) (public string, err error) {
	id, err := readSeed(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return id.pub, err
	}
	pair, err := nkeys.CreateUser()
	if err != nil {
		return "", fmt.Errorf("bus: making a key: %w", err)
	}
	seed, err := pair.Seed()
	if err != nil {
		return "", fmt.Errorf("bus: making a key: %w", err)
	}
	if err := writePrivate(path, append(seed, '\n'), false); err != nil {
		return "", err
	}
	return pair.PublicKey()
}
