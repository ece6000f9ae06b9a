package measure

import (
	"encoding/json"
	"slices"
	"strings"
)

// At finds one value by the path that leads to it in the JSON of the facts: "sysctls.net.core.rmem_max", "interfaces.eth0.channels.combined",
// "settings_changed.netNetqueueEnabled". Names may contain dots; an element of a list is found by its name. At returns the value as in the JSON, a string
// without its quotes. found is false where there is no such fact, or where it has several values.
func (f *Facts) At(path string) (value string, found bool) {
	text, err := json.Marshal(f)
	if err != nil {
		return "", false
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var tree any
	if d.Decode(&tree) != nil {
		return "", false
	}
	return below(tree, strings.Split(path, "."))
}

// below walks down a tree. It takes the shortest name that leads to a value.
func below(tree any, names []string) (string, bool) {
	if len(names) == 0 {
		return leaf(tree)
	}
	for n := 1; n <= len(names); n++ {
		if next, ok := child(tree, strings.Join(names[:n], ".")); ok {
			if value, found := below(next, names[n:]); found {
				return value, true
			}
		}
	}
	return "", false
}

// child returns the value of a key, or the list element of that name.
func child(tree any, name string) (any, bool) {
	switch x := tree.(type) {
	case map[string]any:
		v, ok := x[name]
		return v, ok
	case []any:
		i := slices.IndexFunc(x, func(e any) bool {
			m, ok := e.(map[string]any)
			return ok && m["name"] == name
		})
		if i >= 0 {
			return x[i], true
		}
	}
	return nil, false
}

// leaf returns a scalar value as text.
func leaf(v any) (string, bool) {
	switch x := v.(type) {
	case string:
		return x, true
	case json.Number:
		return x.String(), true
	case bool:
		return map[bool]string{true: "true", false: "false"}[x], true
	}
	return "", false
}
