package advise

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"thru/internal/cause/knob"
	"thru/internal/measure"
)

// Script writes the changes of one end point as two scripts: the first makes them in order, the second undoes them
// in reverse. They are for the shell of its system: POSIX sh, or PowerShell on Windows. Each value is shown before
// it is changed. Of several changes of the same knob the script makes the first; the others, and manual steps
// without a knob, are comments. Both are empty if there is nothing to do at that end point. Running them twice
// does no harm: each command sets a value, none adds to one.
func Script(proposals []measure.Proposal, endPoint string) (do, undo string) {
	var makes, undoes []string
	set := map[string]bool{}
	platform := ""
	for i := range proposals {
		p := &proposals[i]
		another := taken(p, set)
		for _, c := range p.Commands {
			if c.EndPoint != endPoint || len(c.Set) == 0 {
				continue
			}
			platform = c.Platform
			made := fmt.Sprintf("%d. %s", i+1, p.Title)
			if len(p.Settings) == 0 { // commands of a fix: anybody may have written those of a stored result
				makes = append(makes, block(made+": check it before you run it", p, c, true))
				continue
			}
			if another {
				makes = append(makes, block(made+": an alternative, if the change above does not help", p, c, true))
				continue
			}
			makes = append(makes, block(made, p, c, false))
			if len(c.Undo) > 0 {
				undoes = append(undoes, comments("undoes "+made)+commandLines(goingOn(c.Undo, c.Platform), false))
			}
		}
	}
	if len(makes) == 0 {
		return "", ""
	}
	slices.Reverse(undoes)
	head := scriptHead(platform)
	do = head + comments("Changes at "+endPoint+" that thru proposes, in this order. Keep the script that undoes them.") + "\n" + strings.Join(makes, "\n")
	if len(undoes) > 0 {
		undo = undoHead(platform) + comments("Undoes the changes at "+endPoint+" that thru proposed: in reverse order, to the previous values. If a command fails, it continues with the next.") +
			"\n" + strings.Join(undoes, "\n") + "\nexit $failed\n"
	}
	return do, undo
}

// scriptHead makes a script stop at the first command that fails.
func scriptHead(platform string) string {
	if platform == "windows" {
		return "$ErrorActionPreference = 'Stop'\n"
	}
	return "#!/bin/sh\nset -eu\n"
}

// undoHead makes a script continue after a failed command, to undo as much as possible.
func undoHead(platform string) string {
	if platform == "windows" {
		return "$ErrorActionPreference = 'Stop'\n$failed = 0\n"
	}
	return "#!/bin/sh\nset -u\nfailed=0\n"
}

// goingOn returns commands after whose failure a script continues, and ends as failed.
func goingOn(commands []string, platform string) (list []string) {
	for _, c := range commands {
		switch {
		case toFill(c): // it becomes a comment
			list = append(list, c)
		case platform == "windows":
			list = append(list, "try { "+c+" } catch { $_; $failed = 1 }")
		default:
			list = append(list, c+" || failed=1")
		}
	}
	return list
}

// taken reports whether an earlier proposal set one of its knobs, at any end, and otherwise records its knobs: a
// change of both ends is made at both, or at none.
func taken(p *measure.Proposal, before map[string]bool) bool {
	key := func(s measure.Setting) string {
		if s.Knob == knob.MTU { // both ends must agree on one, so a change at either end is an alternative
			return s.Knob + " " + min(p.From, p.To) + " " + max(p.From, p.To)
		}
		return s.EndPoint + " " + s.Knob + " " + s.Interface
	}
	if slices.ContainsFunc(p.Settings, func(s measure.Setting) bool { return before[key(s)] }) {
		return true
	}
	for _, s := range p.Settings {
		before[key(s)] = true
	}
	return false
}

// block returns one change: what, why, its gain and risk, the current values, and the commands. An alternative
// change becomes a comment as a whole.
func block(title string, p *measure.Proposal, c measure.Commands, comment bool) string {
	text := comments(title)
	for _, note := range []struct{ name, text string }{{"why: ", p.Why}, {"expected: ", p.Expect}, {"risk: ", p.Risk}, {"note: ", c.Words}} {
		if note.text != "" {
			text += comments("   " + note.name + note.text)
		}
	}
	if p.Cuts {
		text += comments("   may cut the connection to the host for some seconds")
	}
	for _, b := range p.Before {
		if b.EndPoint == c.EndPoint {
			text += comments("   found: " + b.Knob + " " + b.Interface + " " + b.Value)
		}
	}
	return text + commandLines(shown(c), comment) + commandLines(c.Set, comment)
}

// shown returns the commands that show the values; their failure ends no script.
func shown(c measure.Commands) (list []string) {
	for _, v := range c.Verify {
		if c.Platform == "windows" {
			list = append(list, "try { "+v+" } catch { $_ }")
			continue
		}
		list = append(list, v+" || true")
	}
	return list
}

// comments turns a line of text into a comment: in both shells it ends at the line's end.
func comments(text string) string { return "# " + strings.TrimRight(line(text), " ") + "\n" }

// commandLines writes one command per line. They come from package knob or gate, which insert only names of a host
// that no shell interprets; lines that are not printable, or that the reader has to fill in, are left out as well.
func commandLines(commands []string, comment bool) string {
	var text strings.Builder
	for _, c := range commands {
		if comment || toFill(c) || strings.ContainsFunc(c, func(r rune) bool { return !unicode.IsPrint(r) }) {
			text.WriteString(comments(c))
			continue
		}
		text.WriteString(c + "\n")
	}
	return text.String()
}

// toFill reports whether a command has a placeholder for the reader to fill in.
func toFill(command string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(command, func(c rune) bool { return !(c >= 'A' && c <= 'Z') }), func(word string) bool {
		return slices.Contains([]string{"INTERFACE", "VALUE", "PEER", "HOST", "VSWITCH"}, word)
	})
}
