package cli

import (
	"context"

	"thru/internal/cli/iperf3"
	"thru/internal/measure"
)

// iperf3Cmd is iperf3's command line for those that have it in scripts and in
// their fingers: alias iperf3='thru iperf3'.
type iperf3Cmd struct {
	Args []string `arg:"" optional:"" name:"arguments" help:"As of iperf3: thru iperf3 --help."`
}

// Run is iperf3.
func (c *iperf3Cmd) Run(ctx context.Context, e *env) error {
	e.archive = archiveOf(keepFlags{})
	return iperf3.Run(ctx, e.asIPerf3(), c.Args)
}

// asIPerf3 is this command as one that prints as iperf3 does.
func (e *env) asIPerf3() iperf3.Host {
	return iperf3.Host{Console: e.Console, Network: e.network, Keep: func(doc *measure.Document) {
		doc.Labels = e.archive.Labels
		e.store(doc, true)
	}}
}
