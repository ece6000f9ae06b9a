package tune

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"thru/internal/fault"
)

// folder holds the journals, one for each tuning. Those without a change left
// to undo are in the folder done.
//
//	000003.jsonl      has changes that are not undone
//	done/000002.jsonl all changes are undone; the last 20 are kept
type folder string

const (
	journalEnding = ".jsonl"
	doneFolder    = "done"
	doneKept      = 20
	mostJournal   = 999_999_999 // the highest journal number
)

// make creates the folder durably, and refuses one that other users can
// change: whoever writes a journal decides what is restored.
func (f folder) make() error {
	var fresh []string
	for dir := string(f); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			break
		}
		fresh = append(fresh, dir)
	}
	if err := os.MkdirAll(filepath.Join(string(f), doneFolder), 0o700); err != nil {
		return fault.Failf("name another state folder, on a writable disk, for the journal", "tune: creating the folder of the journal: %w", err)
	}
	for _, dir := range fresh {
		if err := syncDir(dir); err != nil {
			return fmt.Errorf("tune: creating the folder of the journal: %w", err)
		}
	}
	info, err := os.Stat(string(f))
	if err != nil {
		return fmt.Errorf("tune: reading the mode of the journal's folder: %w", err)
	}
	if !ownedAlone(info) {
		return fault.Failf("own the folder and set its mode: chown, chmod 700 "+string(f), "tune: the folder %s can be changed by others (mode %04o)", string(f), info.Mode().Perm())
	}
	return nil
}

// numbers returns the numbers of the journals in the folder, the newest
// first; none where there is no folder.
func (f folder) numbers(sub ...string) ([]int64, error) {
	entries, err := os.ReadDir(filepath.Join(append([]string{string(f)}, sub...)...))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("tune: looking for journals: %w", err)
	}
	var all []int64
	for _, e := range entries {
		name, ours := strings.CutSuffix(e.Name(), journalEnding)
		n, err := strconv.ParseInt(name, 10, 64)
		if ours && err == nil && n > 0 && n <= mostJournal && e.Type().IsRegular() {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	slices.Reverse(all)
	return all, nil
}

func (f folder) path(id int64) string {
	return filepath.Join(string(f), fmt.Sprintf("%06d%s", id, journalEnding))
}

// create creates the next journal.
func (f folder) create(first entry, step step) (*journal, error) {
	live, err := f.numbers()
	if err != nil {
		return nil, err
	}
	done, err := f.numbers(doneFolder)
	if err != nil {
		return nil, err
	}
	id := int64(0)
	for _, n := range append(live, done...) {
		id = max(id, n)
	}
	for {
		if id++; id > mostJournal {
			return nil, fault.Failf(fmt.Sprintf("thru tune --rollback, then remove %s", filepath.Join(string(f), doneFolder)), "tune: creating a journal: the highest number, %d, is in use", mostJournal)
		}
		j, err := createJournal(f.path(id), id, first, step)
		if !errors.Is(err, fs.ErrExist) { // the number is taken by another network namespace: try the next
			return j, err
		}
	}
}

// finish moves a journal with nothing left to undo to the folder done.
func (f folder) finish(j *journal) error {
	j.step("rename")
	to := filepath.Join(string(f), doneFolder, filepath.Base(j.path))
	if err := os.Rename(j.path, to); err != nil {
		return fmt.Errorf("tune: archiving a journal: %w", err)
	}
	j.path = to
	done, err := f.numbers(doneFolder)
	if err != nil || len(done) <= doneKept {
		return err
	}
	for _, id := range done[doneKept:] {
		os.Remove(filepath.Join(string(f), doneFolder, filepath.Base(f.path(id)))) // on an error the next call tries again
	}
	return nil
}

// read reads a journal without writing to it.
func (f folder) read(id int64) (record, error) {
	file, err := os.Open(f.path(id))
	if err != nil {
		return record{}, fmt.Errorf("tune: opening a journal: %w", err)
	}
	defer file.Close()
	err = ownedFile(file)
	var r record
	if err == nil {
		r, _, err = readRecord(file)
	}
	if err != nil {
		return record{}, fmt.Errorf("tune: reading the journal %s: %w", f.path(id), err)
	}
	return r, nil
}

// syncDir makes the entries of a folder durable.
func syncDir(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// machineID returns the id of the machine (machine-id(5)); empty where it is
// not known.
func machineID(root string) string {
	b, err := os.ReadFile(filepath.Join("/", root, "etc/machine-id"))
	if err != nil || len(b) > maxName {
		return ""
	}
	return strings.TrimSpace(string(b))
}
