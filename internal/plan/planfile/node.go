package planfile

import (
	"errors"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"thru/internal/unit"
)

// Limits of a file, far above the needs of a plan with thousands of hosts. They are checked before the YAML
// library parses the text, since its parser recurses.
const (
	// MaxBytes is the size limit of a file.
	MaxBytes   = 1 << 20
	maxNesting = 100     // of brackets and dashes in the text
	maxDepth   = 12      // of the tree
	maxNodes   = 100_000 // including what aliases repeat
)

type kind int

const (
	nullNode kind = iota
	boolNode
	numberNode
	textNode
	listNode
	mapNode
)

// String names the kind as in an error.
func (k kind) String() string {
	return [...]string{"nothing", "a yes or no", "a number", "a text", "a list", "a mapping"}[k]
}

// node is a value of the file and its position. Scalars keep the text as written.
type node struct {
	kind      kind
	text      string
	line, col int
	keys      []*node // of a mapping, in the order of the file
	items     []*node // of a list, or the values of keys
}

// get returns the value of a key, nil if there is none.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	for i, k := range n.keys {
		if k.text == key {
			return n.items[i]
		}
	}
	return nil
}

// parseTree reads YAML into a tree; nil: the file is empty.
func (s *source) parseTree(text string) (root *node, err error) {
	if err := s.bounds(text); err != nil {
		return nil, err
	}
	// A panic of the library on malformed text must not end thru: it becomes an error of that text.
	defer func() {
		if r := recover(); r != nil {
			root, err = nil, s.errorf(&node{line: 1, col: 1}, "check the brackets, quotes and indentation", "this is not valid YAML (%v)", r)
		}
	}()
	file, err := parser.ParseBytes([]byte(text), 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, s.syntax(err)
	}
	t := tree{source: s, anchors: map[string]ast.Node{}, open: map[string]bool{}}
	for _, doc := range file.Docs {
		if doc == nil || doc.Body == nil || doc.Body.Type() == ast.NullType {
			continue
		}
		if root != nil {
			return nil, s.errorf(at(doc.Body.GetToken()), "write one "+s.noun+" per file: remove what follows `---`", "there is a second document")
		}
		if root, err = t.convert(doc.Body, 0); err != nil {
			return nil, err
		}
	}
	return root, nil
}

// bounds refuses a text that no file needs.
func (s *source) bounds(text string) error {
	here := &node{line: 1, col: 1}
	if len(text) > MaxBytes {
		return s.errorf(here, "a `match` of a plan names many hosts in one line", "the file has more than %s, which is the most of a %s", unit.Size(MaxBytes), s.noun)
	}
	if i := strings.IndexByte(text, 0); i >= 0 {
		return s.errorf(here, "save it as UTF-8", "this is not a text file")
	}
	open, markers := 0, 0
	col := 0
	for _, c := range text {
		col++
		switch c {
		case '[', '{':
			open++
		case ']', '}':
			open = max(open-1, 0)
		case '-', '?', '&', '!': // opens a level without a bracket
			markers++
		case ' ':
		case '\n':
			here.line, col, markers = here.line+1, 0, 0
		default:
			if c != ':' {
				markers = 0
			}
		}
		if here.col = col; open > maxNesting || markers > maxNesting {
			return s.errorf(here, "a "+s.noun+" needs few levels", "brackets or dashes are nested too deep")
		}
	}
	return nil
}

// syntax converts an error of the YAML library to thru's form.
func (s *source) syntax(err error) error {
	var y yaml.Error
	if errors.As(err, &y) {
		where, message := at(y.GetToken()), y.GetMessage()
		hint := "check the indentation, the brackets and the colons; a text with : or # in it needs quotes"
		switch {
		case strings.Contains(message, "'\t'"):
			message, hint = "a tab stands here", "YAML is indented by spaces"
		case strings.Contains(message, "cannot start any token"):
			hint = "a text that begins with a sign such as @ or % needs quotes"
		}
		return s.errorf(where, hint, "%s", message)
	}
	return s.errorf(&node{line: 1, col: 1}, "check the brackets, quotes and indentation", "this is not valid YAML")
}

// at returns an empty node at the position of a token.
func at(t *token.Token) *node {
	n := &node{line: 1, col: 1}
	if t != nil && t.Position != nil {
		n.line, n.col = max(t.Position.Line, 1), max(t.Position.Column, 1)
	}
	return n
}

// tree converts the library's nodes to node.
type tree struct {
	*source
	anchors map[string]ast.Node
	open    map[string]bool // aliases being expanded: one that contains itself has no end
	nodes   int
}

func (t *tree) convert(a ast.Node, depth int) (*node, error) {
	if a == nil {
		return &node{line: 1, col: 1}, nil
	}
	n := at(a.GetToken())
	if t.nodes++; t.nodes > maxNodes {
		return nil, t.errorf(n, "leave out what aliases repeat", "the %s has more than %d values", t.noun, maxNodes)
	}
	if depth > maxDepth {
		return nil, t.errorf(n, "a "+t.noun+" needs few levels", "values are nested too deep")
	}
	switch v := a.(type) {
	case *ast.MappingNode:
		return t.mapping(n, v.Values, depth)
	case *ast.MappingValueNode:
		return t.mapping(n, []*ast.MappingValueNode{v}, depth)
	case *ast.SequenceNode:
		n.kind = listNode
		for _, x := range v.Values {
			item, err := t.convert(x, depth+1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
		return n, nil
	case *ast.AnchorNode:
		if v.Name != nil && v.Value != nil {
			t.anchors[v.Name.GetToken().Value] = v.Value
		}
		return t.convert(v.Value, depth)
	case *ast.AliasNode:
		return t.alias(n, v, depth)
	default:
		return t.scalar(n, a)
	}
}

func (t *tree) scalar(n *node, a ast.Node) (*node, error) {
	tk := a.GetToken()
	if tk != nil {
		n.text = tk.Value
	}
	switch v := a.(type) {
	case *ast.NullNode:
		n.kind = nullNode
	case *ast.BoolNode:
		n.kind = boolNode
	case *ast.IntegerNode, *ast.FloatNode:
		n.kind = numberNode
	case *ast.StringNode:
		n.kind, n.text = textNode, v.Value
	case *ast.LiteralNode:
		n.kind = textNode
		if v.Value != nil {
			n.text = v.Value.Value
		}
	default:
		return nil, t.errorf(n, "write the value without it", "a %s has no %s", t.noun, strings.ToLower(a.Type().YAMLName()))
	}
	return n, nil
}

func (t *tree) mapping(n *node, values []*ast.MappingValueNode, depth int) (*node, error) {
	n.kind = mapNode
	for i, v := range values {
		if _, merge := v.Key.(*ast.MergeKeyNode); merge {
			return nil, t.errorf(at(v.Key.GetToken()), "write the keys out, or give the whole value an alias", "a %s has no merge keys (<<)", t.noun)
		}
		key, err := t.convert(v.Key, depth+1)
		if err != nil {
			return nil, err
		}
		if i == 0 { // the token of a mapping is its first colon
			n.line, n.col = key.line, key.col
		}
		if key.kind >= listNode {
			return nil, t.errorf(key, "a key is a word", "a key is %s", key.kind)
		}
		if n.get(key.text) != nil {
			return nil, t.errorf(key, "remove one of them", "%q exists twice", clip(key.text))
		}
		value, err := t.convert(v.Value, depth+1)
		if err != nil {
			return nil, err
		}
		n.keys, n.items = append(n.keys, key), append(n.items, value)
	}
	return n, nil
}

// alias repeats the value of an earlier anchor. It counts the nodes each time, so that a few lines cannot
// expand to a billion nodes.
func (t *tree) alias(n *node, v *ast.AliasNode, depth int) (*node, error) {
	name := ""
	if v.Value != nil && v.Value.GetToken() != nil {
		name = v.Value.GetToken().Value
	}
	target, known := t.anchors[name]
	if !known || t.open[name] {
		return nil, t.errorf(n, "an alias *NAME repeats the value after &NAME before it", "no value before this one has the name %q", clip(name))
	}
	t.open[name] = true
	defer delete(t.open, name)
	return t.convert(target, depth)
}
