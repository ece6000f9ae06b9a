package runs

import (
	"cmp"
	"path/filepath"

	"thru/internal/fault"
)

// Find returns the folder of a run: keep is a folder, run a name, file a plan with
// the checksum sum; each may be empty.
func Find(runs, keep, run, file, sum string) (string, error) {
	changed := func(h Head) error {
		return fault.Usagef("restore the old text of the plan, or start a new run: leave --resume out", "%s has changed since the run %s", file, h.Run)
	}
	if keep != "" && run != "" {
		return "", fault.Usagef("name the run once: --resume=RUN, or --resume --keep FOLDER", "--keep and --resume=%s name two runs", run)
	}
	if dir := cmp.Or(keep, runFolder(runs, run)); dir != "" {
		h, err := readHead(filepath.Clean(dir))
		if err == nil && sum != "" && h.SHA256 != sum {
			err = changed(h)
		}
		return filepath.Clean(dir), err
	}
	heads := listRuns(runs)
	for _, h := range heads {
		if h.Unfinished() && (sum == "" || h.SHA256 == sum) {
			return filepath.Join(runs, h.Run), nil
		}
	}
	for _, h := range heads {
		if h.Unfinished() && filepath.Base(h.Plan) == filepath.Base(file) {
			return "", changed(h)
		}
	}
	what := "no run"
	if file != "" {
		what += " of " + file
	}
	return "", fault.Usagef("start one: leave --resume out", "%s was interrupted", what)
}

// runFolder returns the folder of a run that --resume=RUN names: by its name, its
// folder or its document; "" where none is named.
func runFolder(runs, run string) string {
	switch {
	case run == "":
		return ""
	case filepath.Base(run) == run:
		return filepath.Join(runs, run)
	case filepath.Base(run) == DocumentName:
		return filepath.Dir(run)
	}
	return run
}
