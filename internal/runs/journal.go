// Package runs stores the runs of plans while they are measured: plan, options and document in a folder,
// so that an interrupt or a kill costs one step and not the run. It also finds the run to resume, and
// selects the steps and links that a command line names.
package runs

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/report"
)

// mostRuns is how many runs the state folder keeps.
const mostRuns = 20

// Files of a run's folder.
const (
	planName     = "plan.yaml"     // as it was read
	HeadName     = "run.json"      // Head
	DocumentName = "document.json" // the results so far (docs/result.md)
	lockName     = "lock"          // locked while the run is in progress
)

// Options are what the command line adds to a plan. A resumed run keeps those that it
// began with.
type Options struct {
	Time     string   `json:"time,omitempty"`
	LinkRate []string `json:"link_rate,omitempty"`
	Only     []string `json:"only,omitempty"`
	Force    bool     `json:"force,omitempty"`

	Hypervisors []string `json:"hypervisors,omitempty"` // in addition to the plan's
}

// Empty reports whether the options leave the plan as it is.
func (o Options) Empty() bool { return o.Time == "" && len(o.LinkRate)+len(o.Only) == 0 }

// SameSteps reports whether both select the same steps of a plan.
func (o Options) SameSteps(x Options) bool {
	o.Force, x.Force, o.Hypervisors, x.Hypervisors = false, false, nil, nil
	return reflect.DeepEqual(o, x)
}

// Head holds the state of a run except its results.
type Head struct {
	Run         string               `json:"run"`
	Command     string               `json:"command"`
	Plan        string               `json:"plan"` // name of the file as given
	SHA256      string               `json:"sha256"`
	Options     Options              `json:"options"`
	Began       []time.Time          `json:"began"`
	Steps       int                  `json:"steps"`
	Done        int                  `json:"steps_done"`
	Ended       bool                 `json:"ended,omitempty"` // all is measured
	Labels      map[string]string    `json:"labels,omitempty"`
	Stored      string               `json:"stored,omitempty"`  // id of the results so far in the store
	ManualSteps []measure.ManualStep `json:"by_hand,omitempty"` // manual steps between its blocks
}

// Unfinished reports whether there is something left to measure.
func (h Head) Unfinished() bool { return !h.Ended }

// vain returns 1 for a run without results, else 0.
func (h Head) vain() int {
	if h.Unfinished() && h.Done == 0 {
		return 1
	}
	return 0
}

// Journal stores a run in a folder while it is measured: an interrupt, or the end of
// this process or host, costs the current step, not the run. A nil Journal stores
// nothing.
type Journal struct {
	Dir    string
	Head   Head
	Before *measure.Document // results of the run when it was interrupted
	unlock func()
	Warn   func(string) // called once if the folder cannot be written
	lost   error        // why it could not
	next   time.Time    // earliest time of the next write
}

// The document is always written whole: after a step only if the time for writing is
// a small part of the time since the last write.
const (
	leastBetween = 2 * time.Second
	shareBetween = 20 // times the duration of the last write
)

// Folder returns the default folder of runs.
func Folder() (string, error) {
	state, err := bus.DefaultState()
	return filepath.Join(state, "runs"), err
}

// Checksum returns the SHA-256 of a plan's text in hexadecimal.
func Checksum(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Begin makes the folder of a new run: dir, or one in the state folder, from which it
// removes the oldest.
func Begin(dir string, text []byte, head Head) (*Journal, error) {
	head.SHA256, head.Began = Checksum(text), []time.Time{time.Now().UTC()}
	j := &Journal{Dir: dir, Head: head}
	var err error
	if dir == "" {
		err = j.makeFolder()
	} else {
		err = j.takeFolder()
	}
	if err == nil {
		j.unlock, err = bus.LockFile(filepath.Join(j.Dir, lockName))
	}
	if err == nil {
		err = writeWhole(filepath.Join(j.Dir, planName), text)
	}
	if err == nil {
		err = j.WriteHead()
	}
	if err != nil {
		j.Close()
		return nil, fmt.Errorf("runs: keeping the run: %w", err)
	}
	return j, nil
}

// makeFolder makes a folder in the state folder, named after the time and the plan.
func (j *Journal) makeFolder() error {
	runs, err := Folder()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(runs, 0o700); err != nil {
		return err
	}
	dropOldRuns(runs, mostRuns-1)
	base := Name(j.Head.Plan, j.Head.Began[0])
	for n := 1; ; n++ {
		j.Head.Run = base
		if n > 1 {
			j.Head.Run = fmt.Sprintf("%s-%d", base, n)
		}
		j.Dir = filepath.Join(runs, j.Head.Run)
		if err := os.Mkdir(j.Dir, 0o700); !errors.Is(err, os.ErrExist) || n == mostRuns {
			return err
		}
	}
}

// takeFolder uses the folder that the user named, unless it holds a run, or files
// that would be overwritten.
func (j *Journal) takeFolder() error {
	if _, err := os.Lstat(filepath.Join(j.Dir, HeadName)); err == nil {
		return fault.Usagef("continue it with --resume, or name another folder", "%s holds a run already", j.Dir)
	}
	for _, name := range []string{planName, DocumentName} {
		if _, err := os.Lstat(filepath.Join(j.Dir, name)); err == nil {
			return fault.Usagef("name another folder, or a new one", "%s holds a %s, which would be overwritten", j.Dir, name)
		}
	}
	j.Head.Run = filepath.Base(j.Dir)
	return os.MkdirAll(j.Dir, 0o700)
}

// Name returns a name for a run of a plan: letters, digits, - and _.
func Name(plan string, began time.Time) string {
	plan = strings.TrimSuffix(filepath.Base(plan), filepath.Ext(plan))
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '-'
	}, plan)
	return began.Format("20060102-150405") + "-" + name[:min(len(name), 40)]
}

// dropOldRuns keeps the newest runs and those in progress; it removes runs without
// results first.
func dropOldRuns(runs string, keep int) {
	heads := listRuns(runs)
	slices.SortStableFunc(heads, func(a, b Head) int { return cmp.Compare(a.vain(), b.vain()) })
	for _, h := range heads[min(keep, len(heads)):] {
		dir := filepath.Join(runs, h.Run)
		if unlock, err := bus.LockFile(filepath.Join(dir, lockName)); err == nil {
			os.RemoveAll(dir)
			unlock()
		}
	}
}

// listRuns reads the heads of the runs in a folder, the newest first.
func listRuns(runs string) []Head {
	var heads []Head
	entries, _ := os.ReadDir(runs)
	for _, e := range entries {
		if h, err := readHead(filepath.Join(runs, e.Name())); err == nil {
			heads = append(heads, h)
		}
	}
	slices.SortStableFunc(heads, func(a, b Head) int {
		return b.Began[len(b.Began)-1].Compare(a.Began[len(a.Began)-1])
	})
	return heads
}

// readHead reads the head of the run in a folder.
func readHead(dir string) (h Head, err error) {
	file := filepath.Join(dir, HeadName)
	if _, err := os.Stat(file); err != nil {
		return h, fault.Usagef("the stored runs are the folders of "+filepath.Dir(dir), "%s holds no run", dir)
	}
	if !ReadJSON(file, &h) || len(h.Began) == 0 {
		return h, fault.Usagef("start a new run: leave --resume out; what was measured is in "+filepath.Join(dir, DocumentName), "the run in %s cannot be continued: %s is damaged", dir, file)
	}
	h.Run = filepath.Base(dir)
	return h, nil
}

// Resume opens the folder of an interrupted run, and returns the text of its plan.
func Resume(dir string) (j *Journal, text []byte, err error) {
	j = &Journal{Dir: dir}
	if j.Head, err = readHead(dir); err != nil {
		return nil, nil, err
	}
	j.unlock, err = bus.LockFile(filepath.Join(dir, lockName))
	if err == nil {
		text, err = os.ReadFile(filepath.Join(dir, planName))
	}
	if err == nil && Checksum(text) != j.Head.SHA256 {
		err = fmt.Errorf("%s is not the plan that the run began with", filepath.Join(dir, planName))
	}
	if err == nil {
		j.Before, err = ReadDocument(filepath.Join(dir, DocumentName))
	}
	if err != nil {
		j.Close()
		hint := "start a new run: leave --resume out"
		if errors.Is(err, bus.ErrLocked) {
			hint = "wait until it has ended, or end it"
		}
		return nil, nil, fault.Failf(hint, "runs: continuing the run %s: %w", j.Head.Run, err)
	}
	j.Head.Began = append(j.Head.Began, time.Now().UTC())
	return j, text, nil
}

// ReadDocument reads the results so far; nil where there are none.
func ReadDocument(path string) (*measure.Document, error) {
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	doc, err := measure.Decode(text)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return doc, nil
}

// Step saves the document after a step, unless the last save is recent.
func (j *Journal) Step(doc *measure.Document) {
	if j == nil {
		return
	}
	begin := time.Now()
	if begin.Before(j.next) {
		return
	}
	j.save(doc)
	j.next = time.Now().Add(max(leastBetween, shareBetween*time.Since(begin)))
}

// save writes the current document. A folder that cannot be written, as on a full
// disk, causes one warning and does not stop the run.
func (j *Journal) save(doc *measure.Document) {
	if j == nil {
		return
	}
	if doc.Plan != nil {
		j.Head.Steps, j.Head.Done = doc.Plan.Steps, doc.Plan.Done
	}
	var out bytes.Buffer
	err := report.JSON(&out, doc)
	if err == nil {
		err = writeWhole(filepath.Join(j.Dir, DocumentName), out.Bytes())
	}
	if err == nil {
		err = j.WriteHead()
	}
	if err != nil && j.lost == nil && j.Warn != nil {
		j.Warn(fmt.Sprintf("warning: the run cannot be stored in %s: %v; it continues, but cannot be resumed if it is interrupted", j.Dir, err))
	}
	j.lost = err
}

// End saves the document that the command prints. A run that is fully measured is not
// resumed, whatever its verdict.
func (j *Journal) End(doc *measure.Document, err error) {
	if j != nil {
		j.Head.Ended = err == nil
		j.save(doc)
	}
}

// Stored returns the id under which the run was stored when it was interrupted.
func (j *Journal) Stored() string {
	if j == nil {
		return ""
	}
	return j.Head.Stored
}

// SetStored records the id, so that the resumed run replaces that result. If it cannot
// be recorded both results are kept.
func (j *Journal) SetStored(id string) {
	if j == nil || id == "" || j.Dir == "" {
		return
	}
	j.Head.Stored = id
	if err := j.WriteHead(); err != nil && j.lost == nil && j.Warn != nil {
		j.Warn("warning: the run's id cannot be stored: " + fault.Plain(err.Error()))
	}
}

// Planned returns the name of the run and of its plan for the document.
func (j *Journal) Planned(p plan.Plan) *measure.Planned {
	return &measure.Planned{Name: p.Name, Order: p.Order, Run: j.Head.Run, SHA256: j.Head.SHA256, ManualSteps: slices.Clone(j.Head.ManualSteps)}
}

// WriteHead writes the head of the run.
func (j *Journal) WriteHead() error {
	text, err := json.MarshalIndent(j.Head, "", "  ")
	if err != nil {
		return err
	}
	return writeWhole(filepath.Join(j.Dir, HeadName), append(text, '\n'))
}

// Kept returns the file of the result, empty where it could not be written.
func (j *Journal) Kept() string {
	if j == nil || j.lost != nil {
		return ""
	}
	return filepath.Join(j.Dir, DocumentName)
}

// Close releases the run, so that another process can resume it.
func (j *Journal) Close() {
	if j != nil && j.unlock != nil {
		j.unlock()
		j.unlock = nil
	}
}

// halfWritten is the suffix of an incomplete file.
const halfWritten = ".part"

// writeWhole replaces a file in one step, for this user alone: a reader finds the old
// content or the new one.
func writeWhole(path string, content []byte) error {
	tmp := path + halfWritten
	err := os.WriteFile(tmp, content, 0o600)
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		os.Remove(tmp)
	}
	return err
}
