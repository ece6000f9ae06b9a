package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"thru/internal/bus"
	"thru/internal/cli/console"
	"thru/internal/control"
	"thru/internal/doc"
	"thru/internal/fault"
	"thru/internal/host/platform"
	"thru/internal/measure"
	"thru/internal/plan"
	"thru/internal/remote"
	"thru/internal/unit"
)

// A plan whose variants need a manual step or a reboot runs in blocks. Before each block thru prints what to
// do at which host, waits until the change is in force, and connects the end points again. It sets and
// restarts nothing itself.

// How thru knew that a state was in force (measure.ManualStep.How).
const (
	knownByFact = "fact"
	knownByWord = "word"
	knownBefore = "was so"
)

// manualPoll is the interval between two reads of the fact, manualWait the limit of one read.
const (
	manualPoll = 2 * time.Second
	manualWait = time.Minute
)

// runBlocks runs a plan one block after the other.
func (r *planRun) runBlocks(ctx context.Context, p plan.Plan) error {
	if err := r.keep(p); err != nil {
		return err
	}
	if r.journal != nil {
		r.manualSteps = r.journal.Head.ManualSteps
	}
	doc, turns := r.before, 0
	var err error
	for i, b := range p.Blocks() {
		turns += len(b.Turns)
		if !slices.ContainsFunc(b.Turns, func(t plan.Turn) bool { return control.Remains(r.before, t) }) {
			continue
		}
		if err = r.bring(ctx, i, len(p.Blocks()), b.Manual); err != nil {
			break
		}
		if doc, err = r.block(ctx, p, b.Manual, turns); err != nil || ctx.Err() != nil {
			break
		}
		r.before = doc
	}
	if doc == nil {
		return r.continued(ctx, err)
	}
	r.note(doc)
	return r.conclude(ctx, doc, err)
}

// block connects the end points and measures until the given number of turns is done. It retries, since hosts
// need time after a reboot.
func (r *planRun) block(ctx context.Context, p plan.Plan, h *plan.ManualStep, turns int) (*measure.Document, error) {
	var ends map[string]*control.EndPoint
	var closeAll func()
	var err error
	for until := time.Now().Add(r.patience(h)); ; {
		if ends, closeAll, err = r.connect(ctx, p); err == nil || time.Now().After(until) || ctx.Err() != nil {
			break
		}
		r.env.Line(fmt.Sprintf("%v; retrying until %s", err, until.Format(time.TimeOnly)))
		pause(ctx, manualPoll)
	}
	if err != nil {
		return r.before, err
	}
	defer func() { closeAll(); r.closeHypervisors() }()
	if p, err = r.sized(ends); err != nil {
		return r.before, err
	}
	return r.measure(ctx, p, ends, turns)
}

// patience returns how long to retry the end points: after a manual step, as long as the step may take.
func (r *planRun) patience(h *plan.ManualStep) time.Duration {
	if n := len(r.manualSteps); h == nil || n == 0 || r.manualSteps[n-1].How == knownBefore {
		return 0
	}
	return h.Wait
}

// pause waits for d, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// bring waits until the state of a block is in force. If it is not in force already, it prints the manual
// step and waits for it.
func (r *planRun) bring(ctx context.Context, block, blocks int, h *plan.ManualStep) error {
	if h == nil {
		return nil
	}
	x, asked := r.blockState(block, h)
	value, why := r.fact(ctx, h)
	switch {
	case value != nil && *value == h.Is:
		x.After, x.How = value, knownBefore
		if asked {
			x.How = knownByFact
		}
		if asked && h.Reboot && x.DoneAt == nil { // the host has not been seen to restart meanwhile
			x.How = knownByWord
		}
		return r.done(x)
	case h.Fact == "" && asked && (x.DoneAt != nil || !console.IsTerminal(r.env.In)): // resuming the run confirms the step
		x.How = knownByWord
		return r.done(x)
	}
	if !asked {
		x.Before = value
	}
	x.DoneAt = nil // the state may have been in force before the interruption, and is not now
	r.keepManualSteps()
	r.ask(x, blocks, h, value, why)
	if h.Fact == "" {
		return r.awaitManual(ctx, x, h)
	}
	return r.await(ctx, x, h)
}

// blockState returns the state of a block: new, or from before the interruption. asked reports the latter.
func (r *planRun) blockState(block int, h *plan.ManualStep) (x *measure.ManualStep, asked bool) {
	i := slices.IndexFunc(r.manualSteps, func(x measure.ManualStep) bool { return x.Block == block })
	if asked = i >= 0; !asked {
		r.manualSteps = append(r.manualSteps, measure.ManualStep{Block: block, Variant: h.Variant, Host: h.Host, Commands: h.Commands, Reboot: h.Reboot,
			Fact: h.Fact, Wanted: h.Is, AskedAt: time.Now()})
		i = len(r.manualSteps) - 1
	}
	return &r.manualSteps[i], asked
}

// done notes that a state is in force.
func (r *planRun) done(x *measure.ManualStep) error {
	if x.DoneAt == nil { // else the block was already measured in this state
		x.DoneAt = new(time.Now())
	}
	r.keepManualSteps()
	switch x.How {
	case knownByWord:
		r.env.Line(fmt.Sprintf("%s: in force, as you confirmed%s", x.Variant, factText(x)))
	default:
		r.env.Line(fmt.Sprintf("%s: in force%s", x.Variant, factText(x)))
	}
	return nil
}

// factText words the fact that confirmed a state, if there is one.
func factText(x *measure.ManualStep) string {
	if x.After == nil {
		return ""
	}
	return fmt.Sprintf(": %s of %s is %s", x.Fact, x.Host, clipLine(*x.After))
}

// waits reports whether the run ended before a state was in force.
func (r *planRun) waits() bool {
	n := len(r.manualSteps)
	return n > 0 && r.manualSteps[n-1].DoneAt == nil
}

// keepManualSteps writes the manual steps to the journal.
func (r *planRun) keepManualSteps() {
	if r.journal == nil {
		return
	}
	r.journal.Head.ManualSteps = r.manualSteps
	if err := r.journal.WriteHead(); err != nil {
		r.env.Line("warning: the manual step cannot be recorded: " + fault.Plain(err.Error()))
	}
}

// note copies the manual steps to the document.
func (r *planRun) note(doc *measure.Document) {
	if doc.Plan != nil {
		doc.Plan.ManualSteps = slices.Clone(r.manualSteps)
	}
}

// ask prints what to do.
func (r *planRun) ask(x *measure.ManualStep, blocks int, h *plan.ManualStep, value *string, why error) {
	line := r.env.Line
	line(fmt.Sprintf("block %d of %d, %s: run on %s", x.Block+1, blocks, x.Variant, x.Host))
	for _, c := range h.Commands {
		line("    " + c)
	}
	reboot := ""
	if h.Reboot {
		reboot = "and restart " + x.Host + ". "
	}
	switch {
	case h.Fact == "" && console.IsTerminal(r.env.In):
		line(reboot + "Press Enter when it is done.")
	case h.Fact == "":
		line(strings.TrimSpace(reboot + "thru cannot detect when it is done."))
	case value != nil:
		line(fmt.Sprintf("%sthru continues when %s is %s (now %s), and waits %s.", reboot, h.Fact, h.Is, clipLine(*value), unit.Duration(int64(h.Wait))))
	default:
		line(fmt.Sprintf("%sthru continues when %s is %s (%v), and waits %s.", reboot, h.Fact, h.Is, why, unit.Duration(int64(h.Wait))))
	}
}

// awaitManual waits for the user's confirmation at the terminal.
func (r *planRun) awaitManual(ctx context.Context, x *measure.ManualStep, h *plan.ManualStep) error {
	if !console.IsTerminal(r.env.In) {
		return fault.Failf("do the manual step; continuing the run confirms it", "cli: %s needs a manual step, and there is no terminal to confirm it", x.Variant)
	}
	ctx, cancel := context.WithTimeout(ctx, h.Wait)
	defer cancel()
	_, err := fault.Until(ctx, "the terminal", func() (string, error) { return bufio.NewReader(r.env.In).ReadString('\n') })
	if err != nil {
		return r.gaveUp(ctx, x, h, "nobody confirmed it")
	}
	x.How = knownByWord
	return r.done(x)
}

// await polls the host until the fact has the wanted value. After a reboot step the host must have been
// unreachable first: a configured value may not be in force yet.
func (r *planRun) await(ctx context.Context, x *measure.ManualStep, h *plan.ManualStep) error {
	began := time.Now()
	ctx, cancel := context.WithDeadline(ctx, began.Add(h.Wait))
	defer cancel()
	p := r.env.Board(false)
	defer p.Clear()
	last, gone := "it has not answered", false
	for {
		pause(ctx, manualPoll)
		if ctx.Err() != nil {
			return r.gaveUp(ctx, x, h, last)
		}
		value, why := r.fact(ctx, h)
		switch {
		case value != nil && *value == h.Is && h.Reboot && !gone:
			last = fmt.Sprintf("%s is %s, but %s has not restarted yet", h.Fact, clipLine(*value), h.Host)
		case value != nil && *value == h.Is:
			p.Clear()
			x.After, x.How = value, knownByFact
			return r.done(x)
		case value != nil:
			last = fmt.Sprintf("%s of %s is still %s", h.Fact, h.Host, clipLine(*value))
		case ctx.Err() == nil:
			last, gone = why.Error(), gone || !errors.Is(why, errNoFact)
		}
		p.Checking(fmt.Sprintf("waiting for %s since %s: %s", h.Host, doc.AboutTime(time.Since(began)), last))
	}
}

// gaveUp returns the error of a state that did not come into force.
func (r *planRun) gaveUp(ctx context.Context, x *measure.ManualStep, h *plan.ManualStep, last string) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fault.Failf("", "%w while waiting for %s", fault.ErrInterrupted, x.Variant)
	}
	return fault.Failf("raise wait: in the plan", "cli: %s has not come into force within %s: %s", x.Variant, unit.Duration(int64(h.Wait)), last)
}

// fact reads the fact that confirms a state; nil and the reason if it cannot be read.
func (r *planRun) fact(ctx context.Context, h *plan.ManualStep) (*string, error) {
	if h.Fact == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, manualWait)
	defer cancel()
	facts, err := r.factsAt(ctx, h.At)
	if err != nil {
		return nil, err
	}
	if value, found := facts.At(h.Fact); found {
		return &value, nil
	}
	for _, m := range facts.NotChecked {
		if m.Covers(h.Fact) {
			return nil, fmt.Errorf("%s of %s %w: %s", h.Fact, h.Host, errNoFact, m.Why)
		}
	}
	return nil, fmt.Errorf("%s of %s %w: there is no such fact (thru check --json shows its facts)", h.Fact, h.Host, errNoFact)
}

// errNoFact is the error of a host that answers without the fact.
var errNoFact = errors.New("was not read")

// factsAt reads the facts of a host: by its agent, or with the system's own commands over ssh.
func (r *planRun) factsAt(ctx context.Context, at string) (*measure.Facts, error) {
	d := remote.Dialer{Network: r.env.network, Port: bus.DefaultPort, Checks: true}
	if strings.HasPrefix(at, remote.SSHScheme+"://") {
		facts, _, err := factsByCommands(ctx, at, func(string) {})
		if !errors.Is(err, platform.ErrUnknown) { // an agent can read it
			return &facts, err
		}
	}
	var e *control.EndPoint
	var stop func()
	var err error
	if at == control.Local {
		e, stop, err = d.Local(ctx, true)
	} else {
		e, stop, err = d.EndPoint(ctx, at)
	}
	if err != nil {
		return nil, err
	}
	defer stop()
	if e.Foreign {
		return nil, fault.Usagef("name the host by ssh://, or by an agent", "the facts of %s cannot be read", at)
	}
	reply, err := bus.Call(ctx, e.Client, bus.Facts, bus.FactsRequest{})
	return &reply.Facts, err
}

// factsByCommands reads a host with its own commands over ssh; it reports each step to tell.
func factsByCommands(ctx context.Context, at string, tell func(string)) (facts measure.Facts, destination string, err error) {
	destination, port, err := remote.SSHTarget(at)
	if err != nil {
		return facts, "", err
	}
	tell("logging in to " + destination)
	far := platform.SSH(destination, port)
	defer far.Close()
	system, err := platform.Detect(ctx, far)
	if err != nil {
		return facts, "", err
	}
	tell("reading " + destination + " (" + system + ")")
	facts, err = platform.Read(ctx, system, far)
	return facts, destination, err
}

// clipLine shortens a value to fit into a line.
func clipLine(s string) string { return unit.Line(s, 80) }
