// Package shell completes command lines of thru. The scripts of the shells ask the binary, so that what it offers is
// always what it takes.
package shell

import (
	"bytes"
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Verb is the hidden command that the scripts run: thru complete-for SHELL WORDS...
const Verb = "complete-for"

// Word is a word to continue with, and what it means.
type Word struct{ Text, Help string }

// Answer is what a shell offers.
type Answer struct {
	Words []Word
	Kind  string // Words, Files, Folders
}

// What completes a word, beside the words.
const (
	Words   = "words"
	Files   = "files"   // names of files
	Folders = "folders" // names of folders
	More    = "more"    // the words go on: no space follows
)

//go:embed thru.*
var scripts embed.FS

// scriptOf lists the shells with their scripts, and the name that the file of each has where the shell looks for it.
var scriptOf = [][3]string{
	{"bash", "thru.bash", "thru"}, {"zsh", "thru.zsh", "_thru"}, {"fish", "thru.fish", "thru.fish"}, {"powershell", "thru.ps1", "thru.ps1"},
}

// Shells returns the names of the shells.
func Shells() (names []string) {
	for _, s := range scriptOf {
		names = append(names, s[0])
	}
	return names
}

// Script returns the script of a shell, and the name of the file that the shell looks for; nil: it is not known.
func Script(shell string) (text []byte, file string) {
	for _, s := range scriptOf {
		if s[0] == shell {
			text, _ = scripts.ReadFile(s[1])
			file = s[2]
		}
	}
	return bytes.ReplaceAll(text, []byte("VERB"), []byte(Verb)), file
}

// Read returns the words of a command line up to the cursor, without the name of the program. bash and PowerShell pass
// the line, since they split words in their own way; zsh and fish pass the words.
func Read(shell string, args []string) []string {
	if shell != "bash" && shell != "powershell" {
		return args
	}
	words := split(strings.Join(args, " "))
	return words[min(1, len(words)):]
}

// split splits a line into words as a shell does; the last one may be unfinished or empty.
func split(line string) []string {
	words, quote, escaped := []string{""}, rune(0), false
	for _, r := range line {
		last := &words[len(words)-1]
		switch {
		case escaped:
			*last, escaped = *last+string(r), false
		case r == '\\' && quote != '\'':
			escaped = true
		case r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote = r
		case quote == 0 && (r == ' ' || r == '\t'):
			if *last != "" {
				words = append(words, "")
			}
		default:
			*last += string(r)
		}
	}
	return words
}

// Print returns the answer in the form that the script of a shell reads: the kind, then a word a line.
func (a Answer) Print(shell, word string) string {
	var out strings.Builder
	kind := a.Kind
	if len(a.Words) > 0 && !slices.ContainsFunc(a.Words, func(w Word) bool { return !strings.HasSuffix(w.Text, "/") }) {
		kind = More
	}
	fmt.Fprintln(&out, kind)
	for _, w := range a.Words {
		if !strings.HasPrefix(w.Text, word) || strings.ContainsAny(w.Text, "\n\t") {
			continue
		}
		help, _, _ := strings.Cut(w.Help, "\n")
		switch shell {
		case "bash": // it has begun a new word at = and at :
			fmt.Fprintln(&out, w.Text[strings.LastIndexAny(word, "=:")+1:])
		case "zsh":
			fmt.Fprintln(&out, strings.TrimSuffix(strings.ReplaceAll(w.Text, ":", `\:`)+":"+help, ":"))
		default:
			fmt.Fprintln(&out, strings.TrimSuffix(w.Text+"\t"+help, "\t"))
		}
	}
	return out.String()
}

// Position is where the cursor stands on a command line.
type Position struct {
	Node   *kong.Node
	Flags  []*kong.Flag // of the command and of those above
	Value  *kong.Value  // of a flag or an argument; nil: a flag
	Word   string       // the unfinished word
	Before string       // "--io=": the part of it before the value
	Child  bool         // a command may stand here
	Dash   bool         // a flag may stand here
}

// Locate finds the cursor behind the last word.
func Locate(model *kong.Application, words []string) Position {
	p := Position{Node: model.Node, Flags: model.Flags, Child: true}
	p.Word = words[len(words)-1]
	var waits *kong.Flag // for its value
	arguments, ended := 0, false
	for _, w := range words[:len(words)-1] {
		switch child := p.child(w); {
		case waits != nil:
			waits = nil
		case w == "--":
			ended = true
		case !ended && len(w) > 1 && w[0] == '-':
			waits, _ = p.flag(w)
		case child != nil && arguments == 0:
			p.Node, p.Flags = child, append(slices.Clone(p.Flags), child.Flags...)
		default:
			arguments++
		}
	}
	p.Dash = !ended && waits == nil && strings.HasPrefix(p.Word, "-")
	p.Child = arguments == 0 && !ended && len(p.Node.Children) > 0
	if d := p.Node.DefaultCmd; d != nil { // history is history list
		p.Flags = append(slices.Clone(p.Flags), d.Flags...)
	}
	flag, value := p.flag(p.Word)
	switch {
	case waits != nil:
		p.Value = waits.Value
	case !ended && flag == nil && value != nil:
		name, _, _ := strings.Cut(p.Word, "=")
		p.Value, p.Before = value, name+"="
	case p.Dash:
	default:
		p.Value = p.argument(arguments)
	}
	return p
}

// child returns a command below this one.
func (p Position) child(name string) *kong.Node {
	for _, n := range p.Node.Children {
		if n.Name == name && !n.Hidden {
			return n
		}
	}
	return nil
}

// flag returns the flag whose value follows a word, or the value that is in it behind =.
func (p Position) flag(word string) (next *kong.Flag, inside *kong.Value) {
	if name, long := strings.CutPrefix(word, "--"); long {
		name, _, whole := strings.Cut(name, "=")
		for _, f := range p.Flags {
			if (f.Name == name || slices.Contains(f.Aliases, name)) && !f.IsBool() {
				if whole {
					return nil, f.Value
				}
				return f, nil
			}
		}
		return nil, nil
	}
	for i, letter := range word {
		for _, f := range p.Flags {
			if i > 0 && f.Short == letter && !f.IsBool() {
				if i+1 < len(word) {
					return nil, nil // the rest is its value
				}
				return f, nil
			}
		}
	}
	return nil, nil
}

// argument returns the n-th argument of the command.
func (p Position) argument(n int) *kong.Value {
	all := p.Node.Positional
	if d := p.Node.DefaultCmd; d != nil {
		all = d.Positional
	}
	switch {
	case len(all) == 0:
		return nil
	case n < len(all):
		return all[n]
	case all[len(all)-1].IsSlice():
		return all[len(all)-1]
	}
	return nil
}

// Names returns the commands and flags that may stand at the cursor.
func (p Position) Names() (all []Word) {
	if p.Child {
		for _, n := range p.Node.Children {
			if !n.Hidden {
				all = append(all, Word{n.Name, n.Help})
			}
		}
	}
	if p.Dash {
		for _, f := range p.Flags {
			if f.Hidden {
				continue
			}
			all = append(all, Word{"--" + f.Name, f.Help})
			if f.Short != 0 {
				all = append(all, Word{"-" + string(f.Short), f.Help})
			}
		}
	}
	return all
}
