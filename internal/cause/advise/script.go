package advise

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"thru/internal/cause/knob"
	"thru/internal/measure"
)

// Script writes the changes of one end point as two scripts: the first makes
// them, in order, the second undoes them in reverse. They are for the shell of
// its system: POSIX sh, or PowerShell on Windows. Each value is shown before it
// is changed. Of several changes of the same knob the first is made; the others,
// and what no knob does, stand there as comments. Both are empty where there is nothing to do at that
// end point. Making them twice does no harm: each sets a value, none adds to one.
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
			if len(p.Settings) == 0 { // commands of a remedy: of a stored result anybody may have written them
				makes = append(makes, block(made+": look at it before you do it", p, c, true))
				continue
			}
			if another {
				makes = append(makes, block(made+": another way, where the one above does not help", p, c, true))
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
	do = head + comments("Changes at "+endPoint+" that thru advises, in order. Another script undoes them: keep it.") + "\n" + strings.Join(makes, "\n")
	if len(undoes) > 0 {
		undo = undoHead(platform) + comments("Undoes the changes at "+endPoint+" that thru advised: in reverse, to the values that were found. Where a command fails, it goes on with the next.") +
			"\n" + strings.Join(undoes, "\n") + "\nexit $failed\n"
	}
	return do, undo
}

// scriptHead ends a script at the first command that fails.
func scriptHead(platform string) string {
	if platform == "windows" {
		return "$ErrorActionPreference = 'Stop'\n"
	}
	return "#!/bin/sh\nset -eu\n"
}

// undoHead has a script go on where a command fails: what can be undone is.
func undoHead(platform string) string {
	if platform == "windows" {
		return "$ErrorActionPreference = 'Stop'\n$failed = 0\n"
	}
	return "#!/bin/sh\nset -u\nfailed=0\n"
}

// goingOn are commands after whose failure a script goes on, and ends as failed.
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

// taken tells whether a knob of a proposal was set before, at any end, and else
// notes those of it: a change of both ends is made at both, or at none.
func taken(p *measure.Proposal, before map[string]bool) bool {
	key := func(s measure.Setting) string {
		if s.Knob == knob.MTU { // both ends agree on one: to change that of either is another way
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

// block is one change: what, why, what it brings and risks, the values now, and
// the commands; where it is only another way all of it is a comment.
func block(title string, p *measure.Proposal, c measure.Commands, comment bool) string {
	text := comments(title)
	for _, note := range []struct{ name, text string }{{"why: ", p.Why}, {"to expect: ", p.Expect}, {"risk: ", p.Risk}, {"note: ", c.Words}} {
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

// shown are the commands that show the values; that one tells nothing yet ends no script.
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

// comments makes a line of text a comment: both shells end one at the line's end.
func comments(text string) string { return "# " + strings.TrimRight(line(text), " ") + "\n" }

// commandLines are commands, one a line. They come from package knob or gate,
// which let no name of a host in that a shell reads something into; what is no
// printable line is left out all the same, and so is what the reader has to
// fill in.
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

// toFill tells of a command with a place for the reader to fill in.
func toFill(command string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(command, func(c rune) bool { return !(c >= 'A' && c <= 'Z') }), func(word string) bool {
		return slices.Contains([]string{"INTERFACE", "VALUE", "PEER", "HOST", "VSWITCH"}, word)
	})
}
