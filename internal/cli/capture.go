package cli

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/remote"
)

// captureFlags ask for a packet capture of the traffic.
type captureFlags struct {
	Keep string `group:"Packets" name:"keep" type:"newfile" placeholder:"FILE" help:"Capture and keep the packets: x.pcapng becomes x.local.pcapng and x.NAME.pcapng; with explain x.base.local.pcapng and so on."`
}

// packets sets how many packets to capture at each end; 0: none. asked tells whether --capture was given.
func (f *captureFlags) packets(r *plan.Request, asked bool) error {
	switch {
	case f.Keep != "":
		r.Capture = cmp.Or(r.Capture, measure.DefaultCapture)
	case !asked && r.Capture > 0:
		return fault.Usagef("add --capture, or --keep FILE", "--capture-packets needs a capture")
	}
	return nil
}

// keeper writes captures to files.
type keeper struct {
	path       string
	directions bool // each direction has its own files
	alone      bool // both ends are one machine, and one capture holds all packets
	written    []string
	err        error // the first write error
}

// keeper checks before a long measurement that its captures can be written; it returns nil if none are
// wanted.
func (f *captureFlags) keeper(p plan.Plan, ends remote.Pair) (*keeper, error) {
	if f.Keep == "" {
		return nil, nil
	}
	if p.Repeat.Max > 1 {
		return nil, fault.Clashing("capture the packets of one run", "--keep", "--repeat --precision --acceptance")
	}
	k := &keeper{path: f.Keep, alone: ends.Local == ends.Peer}
	senders := map[string]bool{}
	for _, s := range p.Steps {
		for _, x := range s.Specs {
			if x.Capture > 0 {
				senders[x.From] = true
			}
		}
	}
	k.directions = len(senders) > 1
	return k, writable("--keep", k.name(control.Packets{From: control.Local, EndPoint: control.Local}))
}

// name returns a file name: x.pcapng at the end point db is x.db.pcapng, and if both directions are captured
// x.forward.db.pcapng. Each run of an explanation has its own files: x.base.db.pcapng,
// x.one-stream.db.pcapng.
func (k *keeper) name(p control.Packets) string {
	kind := filepath.Ext(k.path)
	parts := []string{strings.TrimSuffix(k.path, kind)}
	if k.directions && p.From == control.Local {
		parts = append(parts, "forward")
	} else if k.directions {
		parts = append(parts, "reverse")
	}
	if p.Experiment != "" {
		parts = append(parts, fileName(p.Experiment, '-'))
	}
	if !k.alone {
		parts = append(parts, fileName(p.EndPoint, '-'))
	}
	kind = cmp.Or(kind, ".pcapng")
	return strings.Join(parts, ".") + kind
}

// fileName returns the name of an end point with other in place of each character outside plainLetters.
func fileName(endPoint string, other rune) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(plainLetters, r) {
			return r
		}
		return other
	}, endPoint)
}

// keep implements control.Runner's Keep.
func (k *keeper) keep(p control.Packets) (string, error) {
	name := k.name(p)
	if err := replaceFile("--keep", name, p.Pcapng); err != nil {
		k.err = err
		return "", err
	}
	if !slices.Contains(k.written, name) {
		k.written = append(k.written, name)
	}
	return name, nil
}

// forms adds the written capture files, or the write error, to the forms of a result.
func (k *keeper) forms(f forms) forms {
	if k != nil {
		f.packets, f.unkept = k.written, k.err
	}
	return f
}
