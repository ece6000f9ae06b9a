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
	escape := '\\'
	if shell == "powershell" {
		escape = '`'
	}
	words := split(strings.Join(args, " "), escape)
	return words[min(1, len(words)):]
}

// split splits a line into words as a shell does; the last one may be unfinished or empty.
func split(line string, escape rune) []string {
	words, quote, escaped := []string{""}, rune(0), false
	for _, r := range line {
		last := &words[len(words)-1]
		switch {
		case escaped:
			*last, escaped = *last+string(r), false
		case r == escape && quote != '\'':
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
		if w.Text == "" || !strings.HasPrefix(w.Text, word) || strings.ContainsAny(w.Text, "\n\t") {
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
	Value  *kong.Value // of a flag or an argument; nil: none may stand here
	Word   string      // the unfinished word
	Before string      // "--io=": the part of it before the value
	Names  []Word      // the commands or flags that may stand here
	flags  []*kong.Flag
}

// Locate finds the cursor in the last word.
func Locate(model *kong.Application, words []string) Position {
	p := Position{Node: model.Node, flags: model.Flags, Word: words[len(words)-1]}
	var waits *kong.Value // for its text
	arguments, ended := 0, false
	for _, w := range words[:len(words)-1] {
		at := slices.IndexFunc(p.Node.Children, func(n *kong.Node) bool { return n.Name == w })
		switch {
		case waits != nil:
			waits = nil
		case w == "--":
			ended = true
		case !ended && len(w) > 1 && w[0] == '-':
			waits, _ = p.valueOf(w)
		case at >= 0 && arguments == 0:
			p.Node = p.Node.Children[at]
			p.flags = append(slices.Clone(p.flags), p.Node.Flags...)
		default:
			arguments++
		}
	}
	children := p.Node.Children
	if d := p.Node.DefaultCmd; d != nil { // history is history list
		p.Node, p.flags = d, append(slices.Clone(p.flags), d.Flags...)
	}
	_, inside := p.valueOf(p.Word)
	switch {
	case waits != nil:
		p.Value = waits
	case ended || p.Word == "" || p.Word[0] != '-':
		if p.Value = argument(p.Node.Positional, arguments); arguments == 0 && !ended {
			p.addCommands(children)
		}
	case inside != nil:
		p.Value, p.Before = inside, p.Word[:strings.Index(p.Word, "=")+1]
	default:
		p.addFlags()
	}
	return p
}

// valueOf returns the value that follows a flag as the next word, or that is inside the word behind =.
func (p Position) valueOf(word string) (next, inside *kong.Value) {
	name, _, whole := strings.Cut(strings.TrimLeft(word, "-"), "=")
	long := strings.HasPrefix(word, "--")
	for i, letter := range word {
		for _, f := range p.flags {
			switch {
			case f.IsBool():
			case long && whole && f.Name == name:
				return nil, f.Value
			case long && (f.Name == name || slices.Contains(f.Aliases, name)), !long && f.Short == letter && i == len(word)-1:
				return f.Value, nil
			case !long && i > 0 && f.Short == letter:
				return nil, nil // the rest of the word is its value
			}
		}
	}
	return nil, nil
}

// argument returns the n-th of the arguments; the last one may be repeated.
func argument(all []*kong.Positional, n int) *kong.Value {
	if last := len(all) - 1; n > last && last >= 0 && all[last].IsSlice() {
		n = last
	}
	if n >= len(all) {
		return nil
	}
	return all[n]
}

func (p *Position) addCommands(all []*kong.Node) {
	for _, n := range all {
		p.Names = append(p.Names, Word{n.Name, n.Help})
	}
}

func (p *Position) addFlags() {
	for _, f := range p.flags {
		if f.Hidden {
			continue
		}
		p.Names = append(p.Names, Word{"--" + f.Name, f.Help})
		if f.Short != 0 {
			p.Names = append(p.Names, Word{"-" + string(f.Short), f.Help})
		}
	}
}
