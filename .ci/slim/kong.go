package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// kong calls methods by names that the linker does not know, which therefore keeps every exported method of the program
// (cmd/link, deadcode). In the copy, the names that it uses are constants. Its own Run, which looks at all methods, would
// be kept with the commands' by that name.
func kong(dir string) error {
	names, err := methodNames(dir)
	if err != nil {
		return err
	}
	calls := filepath.Join(dir, "callbacks.go")
	err = errors.Join(
		rewrite(calls, ` t\.MethodByName\(name\)`, " methodOfType(t, name)", 1),
		rewrite(calls, `(value[A-Za-z.()]*)\.MethodByName\(name\)`, "methodOfValue($1, name)", 4),
		rewrite(calls, `\.MethodByName\(`, "", 0),
		rewrite(filepath.Join(dir, "context.go"), `^func \(c \*Context\) Run\(`, "func (c *Context) run(", 1),
	)
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("package kong\n\nimport \"reflect\"\n")
	cases := func(head, of, zero string) {
		fmt.Fprintf(&b, "\n%s {\n\tswitch name {\n", head)
		for _, n := range names {
			fmt.Fprintf(&b, "\tcase %s:\n\t\treturn %s.MethodByName(%[1]s)\n", n, of)
		}
		fmt.Fprintf(&b, "\t}\n\treturn %s\n}\n", zero)
	}
	cases("func methodOfValue(v reflect.Value, name string) reflect.Value", "v", "reflect.Value{}")
	cases("func methodOfType(t reflect.Type, name string) (reflect.Method, bool)", "t", "reflect.Method{}, false")
	return create(filepath.Join(dir, "constant.go"), b.String())
}

// methodNames returns the names of methods that kong calls, in quotes.
func methodNames(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	call := regexp.MustCompile(`(?:applyHook\(c[tx]*|getMethod\([a-zA-Z.]*), ("[A-Za-z]*")`)
	names := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, m := range call.FindAllStringSubmatch(string(text), -1) {
			names[m[1]] = true
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%w: it calls no methods by name", errUnknown)
	}
	return slices.Sorted(maps.Keys(names)), nil
}
