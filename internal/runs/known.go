package runs

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	"thru/internal/bus"
)

// mostBytes bounds a JSON file, in bytes.
const mostBytes = 1 << 20

// ReadJSON reads a JSON file, and reports whether that succeeded.
func ReadJSON(file string, into any) bool {
	i, err := os.Lstat(file)
	if err != nil || !i.Mode().IsRegular() { // a pipe would block the command
		return false
	}
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, mostBytes+1))
	return err == nil && len(b) <= mostBytes && json.Unmarshal(b, into) == nil
}

// WriteJSON replaces a JSON file in one step, for this user alone. It ignores errors.
func WriteJSON(file string, v any) {
	b, err := json.Marshal(v)
	if err == nil && file != "" && len(b) <= mostBytes && os.MkdirAll(filepath.Dir(file), 0o700) == nil {
		bus.WritePrivate(file, b, true) // a failed write loses only cached facts
	}
}
