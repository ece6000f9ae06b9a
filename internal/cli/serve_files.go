package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"thru/internal/agent"
	"thru/internal/bus"
	"thru/internal/fault"
	"thru/internal/unit"
)

// files says where clients may measure disks and move files, for the agent.
func (c *serveCmd) files() (func(*agent.Config), error) {
	allowed := slices.Contains(c.Allow, bus.PrivilegeFiles)
	switch {
	case allowed && len(c.Files) == 0:
		return nil, fault.Usagef("name the folders below which disks may be measured and files moved: --files DIR", "--allow files says not where")
	case !allowed && len(c.Files) > 0:
		return nil, fault.Usagef("thru serve --allow files --files "+c.Files[0], "--files says where disks may be measured and files moved, and that is not allowed")
	}
	most, err := unit.ParseSize(c.MaxFile)
	if err != nil || most <= 0 {
		return nil, fault.Usagef("--max-file takes a value such as 16G", "--max-file %s: no size of a file", c.MaxFile)
	}
	f := agent.Files{MaxBytes: most}
	for _, name := range c.Files {
		dir, err := filepath.Abs(name)
		if err != nil {
			return nil, fmt.Errorf("cli: --files %s: %w", name, err)
		}
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is no folder", dir)
		}
		if err != nil {
			return nil, fault.Usagef("--files takes folders that are there", "--files: %w", err)
		}
		f.Folders = append(f.Folders, dir)
	}
	return func(a *agent.Config) { a.Files = f }, nil
}
