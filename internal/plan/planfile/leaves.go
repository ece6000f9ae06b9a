package planfile

import "slices"

// Leaf is a value of a YAML file of nested keys that is no plan, such as the settings of thru.
type Leaf struct {
	Path      []string // the keys that lead to it
	Values    []string // one, or those of a list
	List      bool
	Line, Col int // of its last key
}

// Leaves returns the values of a YAML file in their order; none of an empty file. Its errors call the file a noun.
func Leaves(name, noun string, text []byte) ([]Leaf, error) {
	s := &source{name, noun}
	root, err := s.parseTree(trimMark(string(text)))
	if err != nil || root == nil {
		return nil, err
	}
	if root.kind != mapNode {
		return nil, s.errorf(root, "write lines such as KEY: VALUE", "the %s is %s, not a mapping", noun, root.describe())
	}
	return s.leaves(root, nil)
}

// leaves returns the values below a mapping.
func (s *source) leaves(n *node, path []string) (all []Leaf, err error) {
	for i, key := range n.keys {
		value := n.items[i]
		at := Leaf{Path: append(slices.Clone(path), key.text), Line: key.line, Col: key.col}
		switch value.kind {
		case mapNode:
			below, err := s.leaves(value, at.Path)
			if err != nil {
				return nil, err
			}
			all = append(all, below...)
			continue
		case listNode:
			at.List = true
			for _, x := range value.items {
				if err := s.scalarOf(x, key); err != nil {
					return nil, err
				}
				at.Values = append(at.Values, x.text)
			}
		default:
			if err := s.scalarOf(value, key); err != nil {
				return nil, err
			}
			at.Values = []string{value.text}
		}
		all = append(all, at)
	}
	return all, nil
}

// scalarOf refuses a value that is no text, number, true or false.
func (s *source) scalarOf(n, key *node) error {
	if n.kind == nullNode || n.kind >= listNode || n.text == "" {
		return s.errorf(n, "write a value, or leave the key out", "%s has no value", clip(key.text))
	}
	return nil
}
