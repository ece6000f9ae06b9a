package iperfdoc

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A JSON reader that accepts the faults of iperf3 and the scripts around it: duplicate keys, nan for a number, an extra comma, truncated text. It keeps
// everything before a fault.

// kind of a node.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindText
	kindList
	kindObject
)

// node is a JSON value. A text keeps its source form until it is read.
type node struct {
	kind  kind
	whole bool     // it is complete
	text  string   // number, word or text inside quotes, as written
	items []member // of a list or an object
}

type member struct {
	key   string
	value node
}

// Limits of the input. A day of one stream at one interval per second fits.
const (
	maxDepth  = 32
	maxValues = 3_000_000
)

var (
	errCut    = errors.New("the text is truncated")
	errDepth  = fmt.Errorf("values are nested more than %d deep", maxDepth)
	errValues = fmt.Errorf("more than %d values", maxValues)
)

// lenient reads values from a text; values is how many more it may read.
type lenient struct {
	text   string
	at     int
	values *int
}

// value reads one value. On error the node holds what was complete before it.
func (p *lenient) value(depth int) (node, error) {
	if *p.values--; *p.values < 0 {
		return node{}, errValues
	}
	p.space()
	if p.at == len(p.text) {
		return node{}, errCut
	}
	switch p.text[p.at] {
	case '{':
		return p.items(depth, kindObject, '}')
	case '[':
		return p.items(depth, kindList, ']')
	case '"':
		text, err := p.quoted()
		return node{kind: kindText, text: text, whole: err == nil}, err
	}
	return p.word()
}

// items reads the inside of an object or a list. It skips extra commas.
func (p *lenient) items(depth int, k kind, closing byte) (node, error) {
	n := node{kind: k}
	if depth >= maxDepth {
		return n, errDepth
	}
	p.at++
	for {
		p.space()
		switch {
		case p.at == len(p.text):
			return n, errCut
		case p.text[p.at] == closing:
			p.at++
			n.whole = true
			return n, nil
		case p.text[p.at] == ',':
			p.at++
			continue
		}
		m, err := p.member(depth, k)
		if err == nil || len(m.value.items) > 0 {
			n.items = append(n.items, m)
		}
		if err != nil {
			return n, err
		}
	}
}

func (p *lenient) member(depth int, k kind) (m member, err error) {
	if k == kindObject {
		if p.text[p.at] != '"' {
			return m, p.unexpected("a key")
		}
		if m.key, err = p.quoted(); err != nil {
			return m, err
		}
		p.space()
		if p.at == len(p.text) {
			return m, errCut
		}
		if p.text[p.at] != ':' {
			return m, p.unexpected("a colon")
		}
		p.at++
	}
	m.value, err = p.value(depth + 1)
	return m, err
}

func (p *lenient) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

// quoted reads a string and returns the text between the quotes.
func (p *lenient) quoted() (string, error) {
	for i := p.at + 1; i < len(p.text); i++ {
		switch p.text[i] {
		case '\\':
			i++
		case '"':
			s := p.text[p.at+1 : i]
			p.at = i + 1
			return s, nil
		}
	}
	p.at = len(p.text)
	return "", errCut
}

// word reads a number, true, false, null, and C's output for a non-number.
func (p *lenient) word() (node, error) {
	end := p.at
	for end < len(p.text) && strings.IndexByte(" \t\r\n,:]}[{\"", p.text[end]) < 0 {
		end++
	}
	word := p.text[p.at:end]
	if end == len(p.text) {
		return node{}, errCut // more of it may be missing
	}
	n := node{text: word, whole: true}
	switch lower := strings.ToLower(strings.TrimLeft(word, "+-")); {
	case lower == "true" || lower == "false":
		n.kind = kindBool
	case lower == "null" || strings.HasPrefix(lower, "nan") || strings.HasPrefix(lower, "inf") || strings.HasPrefix(lower, "1.#"):
		n.kind = kindNull
	default:
		if _, err := strconv.ParseFloat(word, 64); err != nil && !errors.Is(err, strconv.ErrRange) {
			return node{}, p.unexpected("a value")
		}
		n.kind = kindNumber
	}
	p.at = end
	return n, nil
}

func (p *lenient) unexpected(wanted string) error {
	found := p.text[p.at:min(p.at+1, len(p.text))]
	return fmt.Errorf("%q at byte %d where %s should be", found, p.at, wanted)
}

// get returns the last value of a key; a null node without one.
func (n node) get(key string) node {
	for i := len(n.items) - 1; i >= 0; i-- {
		if n.kind == kindObject && n.items[i].key == key {
			return n.items[i].value
		}
	}
	return node{}
}

// nth returns the n-th value of a duplicate key, from 0.
func (n node) nth(key string, i int) node {
	for _, m := range n.items {
		if n.kind == kindObject && m.key == key {
			if i--; i < 0 {
				return m.value
			}
		}
	}
	return node{}
}

func (n node) has(key string) bool { return n.get(key).kind != kindNull }

// list returns the items of a list.
func (n node) list() []member {
	if n.kind != kindList {
		return nil
	}
	return n.items
}

// tooMuch is more than any count or figure of a test: a larger number is a fault of the program that printed it.
const tooMuch = 1 << 60

// number returns false for other values, for numbers below zero (iperf3's -1 means not known), and for -1 as unsigned: 18446744073709551615.
func (n node) number() (float64, bool) {
	if n.kind != kindNumber {
		return 0, false
	}
	x, err := strconv.ParseFloat(n.text, 64)
	return x, err == nil && x >= 0 && x < tooMuch
}

// integer returns the number as a count.
func (n node) integer() (int64, bool) {
	if i, err := strconv.ParseInt(n.text, 10, 64); err == nil && n.kind == kindNumber {
		return i, i >= 0 && i < tooMuch
	}
	x, ok := n.number()
	return int64(x), ok
}

func (n node) count() int64 {
	i, ok := n.integer()
	if !ok {
		return 0
	}
	return i
}

// isTrue accepts true and, as `reverse` is written, 1.
func (n node) isTrue() bool { return n.kind == kindBool && n.text == "true" || n.count() == 1 }

// str returns a text with its escapes decoded; invalid ones stay as they are.
func (n node) str() string {
	text := n.text
	if n.kind != kindText {
		return ""
	}
	if strings.Contains(text, `\`) {
		var read string
		if json.Unmarshal([]byte(`"`+text+`"`), &read) == nil {
			text = read
		}
	}
	return strings.ToValidUTF8(text, "?")
}
