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
		at := Leaf{Path: append(slices.Clone(path), key.text), Line: key.line, Col: key.col}
		values := n.items[i : i+1]
		switch n.items[i].kind {
		case mapNode:
			below, err := s.leaves(n.items[i], at.Path)
			if err != nil {
				return nil, err
			}
			all = append(all, below...)
			continue
		case listNode:
			at.List, values = true, n.items[i].items
		}
		for _, x := range values {
			if x.kind == nullNode || x.kind >= listNode || x.text == "" {
				return nil, s.errorf(x, "write a value, or leave the key out", "%s has no value", clip(key.text))
			}
			at.Values = append(at.Values, x.text)
		}
		all = append(all, at)
	}
	return all, nil
}
