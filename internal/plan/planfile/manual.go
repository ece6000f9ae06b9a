package planfile

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"thru/internal/plan"
	"thru/internal/unit"
)

// manualKey is the key of a variant that needs a manual step.
const manualKey = "by_hand"

// Limits of it.
const (
	mostCommands = 20
	mostCommand  = 1000 // characters
	leastWait    = 10 * time.Second
	mostWait     = 7 * 24 * time.Hour
)

// readManual reads the manual step of a variant.
func (f *File) readManual(x *node) (*plan.ManualStep, error) {
	const example = "such as by_hand: {host: esx1, do: esxcli system settings kernel set ..., reboot: true, fact: sysctls.netNetqueueEnabled, is: \"FALSE\"}"
	h := &plan.ManualStep{Wait: plan.UsualWait()}
	nothing := func(*node) error { return nil }
	err := f.fields(x, manualKey, example, 2, []field{
		{"host", into(&h.Host, func(n *node) (string, error) { return f.nameOf(n, "host of "+manualKey) })},
		{"do", into(&h.Commands, f.commands)},
		{"reboot", into(&h.Reboot, func(n *node) (bool, error) {
			if n.kind != boolNode {
				return false, f.errorf(n, "reboot takes true or false", "reboot is %s", n.value())
			}
			return strings.EqualFold(n.text, "true"), nil
		})},
		{"wait", into(&h.Wait, func(n *node) (time.Duration, error) {
			wait, err := unit.ParseDuration(n.text)
			if err != nil || wait < leastWait || wait > mostWait {
				err = f.errorf(n, "wait takes 10s to 168h, such as 30m", "a wait of %s is out of range", n.value())
			}
			return wait, err
		})},
		{"fact", nothing}, {"is", nothing}, // readProof reads both
	})
	if err != nil {
		return nil, err
	}
	return h, f.readProof(h, x)
}

// readProof reads the fact that confirms a variant, and its value.
func (f *File) readProof(h *plan.ManualStep, x *node) (err error) {
	fact, is := x.get("fact"), x.get("is")
	switch {
	case fact == nil && is == nil:
		return nil
	case fact == nil:
		return f.errorf(is, "such as fact: sysctls.netNetqueueEnabled", "is has a value, but there is no fact")
	case is == nil:
		return f.errorf(fact, "such as is: \"FALSE\"", "the fact has no value: is")
	}
	if h.Fact, err = f.words(fact, "fact", "sysctls.netNetqueueEnabled"); err != nil {
		return err
	}
	if is.kind == listNode || is.kind == mapNode || is.kind == nullNode {
		return f.errorf(is, "as facts print it: \"FALSE\", 4, true", "is has to be one value, not %s", is.value())
	}
	h.Is = is.text
	if len(h.Fact) > mostCommand || len(h.Is) > mostCommand || strings.ContainsFunc(h.Fact+h.Is, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return f.errorf(fact, "a path such as sysctls.netNetqueueEnabled", "the fact is too long, or holds what cannot be printed")
	}
	if slices.Contains(strings.Split(h.Fact, "."), "") {
		return f.errorf(fact, "a path such as sysctls.netNetqueueEnabled", "the path %q has an empty part", clip(h.Fact))
	}
	return nil
}

// commands reads one command, or a list of them.
func (f *File) commands(n *node) ([]string, error) {
	items := []*node{n}
	if n.kind == listNode {
		items = n.items
	}
	if len(items) == 0 || len(items) > mostCommands {
		return nil, f.errorf(n, "a command, or a list of them", "do has %d commands, not 1 to %d", len(items), mostCommands)
	}
	var all []string
	for _, x := range items {
		text, err := f.words(x, "do", "a command that is run at the host")
		if err != nil {
			return nil, err
		}
		if len([]rune(text)) > mostCommand || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return nil, f.errorf(x, "a line that can be copied to a shell", "the command is too long, or holds what cannot be printed")
		}
		all = append(all, text)
	}
	return all, nil
}

// checkManual refuses a plan in which only some variants have a manual step: nobody would restore what
// another variant changed.
func (f *File) checkManual() error {
	var with, without *variant
	for i := range f.variants {
		if v := &f.variants[i]; v.manual != nil {
			with = v
		} else {
			without = v
		}
	}
	switch {
	case with == nil:
		return nil
	case without != nil:
		return f.errorf(without.settings, "give each variant its step: what "+clip(with.name)+" has changed has to be undone", "the variant %q has no %s", clip(without.name), manualKey)
	}
	f.order = plan.OrderBlocks
	return f.refuseSameFacts()
}

// refuseSameFacts refuses two variants with the same fact and value: runs of one could be runs of the other.
func (f *File) refuseSameFacts() error {
	for i := range f.variants {
		for j := range f.variants[:i] {
			a, b := f.variants[j].manual, f.variants[i].manual
			if a.Fact != "" && a.Host == b.Host && a.Fact == b.Fact && a.Is == b.Is {
				return f.errorf(f.variants[i].settings, "give each variant its own value", "%s is %s for both %s and %s", clip(a.Fact), clip(a.Is), clip(f.variants[j].name), clip(f.variants[i].name))
			}
		}
	}
	return nil
}

// checkBlocks refuses an order that does not go with the variants.
func (f *File) checkBlocks(n *node) error {
	switch manualSteps := len(f.variants) > 0 && f.variants[0].manual != nil; {
	case manualSteps && !f.inBlocks():
		return f.errorf(n, "take blocks, or there-and-back: the first variant again at the end, which shows a drift of the path", "the order %s does not go with %s: each run would need a manual step", f.order, manualKey)
	case f.inBlocks() && len(f.variants) == 0:
		return f.errorf(n, "name variants, such as variants: [{name: cubic, congestion: cubic}, {name: bbr, congestion: bbr}]", "%s: there is nothing to compare", f.order)
	}
	return nil
}

func (f *File) inBlocks() bool { return plan.Plan{Order: f.order}.InBlocks() }

// manualSteps returns the manual steps of all variants, with the addresses of their hosts.
func (f *File) manualSteps(h *hosts) []plan.ManualStep {
	var all []plan.ManualStep
	for _, v := range f.variants {
		if v.manual == nil {
			continue
		}
		x := *v.manual
		x.Variant, x.At = v.name, x.Host
		if known := h.byName[x.Host]; known != nil && known.At != "" {
			x.At = known.At
		}
		all = append(all, x)
	}
	return all
}
