package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// empty empties the functions of a file: they return zero values, and errRemoved for an error. One that says by a deferred
// Done that it has ended still does. It leaves out some functions, and init, or all but some. A method is TYPE.NAME.
func empty(file string, except, only []string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, text, 0)
	if err != nil {
		return err
	}
	var b strings.Builder
	from, unknown := 0, slices.Concat(except, only)
	for _, d := range f.Decls {
		fn, is := d.(*ast.FuncDecl)
		if !is || fn.Body == nil || fn.Name.Name == "init" {
			continue
		}
		name := nameOf(fn)
		unknown = slices.DeleteFunc(unknown, func(n string) bool { return n == name })
		if slices.Contains(except, name) || len(only) > 0 && !slices.Contains(only, name) {
			continue
		}
		b.Write(text[from:set.Position(fn.Type.Params.End()).Offset])
		b.WriteString(nothing(text, set, fn))
		from = set.Position(fn.Body.End()).Offset
	}
	b.Write(text[from:])
	if len(unknown) > 0 {
		return fmt.Errorf("%s: %w: it has no function %s", filepath.Base(file), errUnknown, strings.Join(unknown, ", "))
	}
	left, err := dropImports(f, b.String())
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	return create(file, left)
}

// nameOf returns the name of a function, with its type where it is a method.
func nameOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	name := ""
	ast.Inspect(fn.Recv.List[0].Type, func(n ast.Node) bool {
		if id, is := n.(*ast.Ident); is && name == "" {
			name = id.Name
		}
		return true
	})
	return name + "." + fn.Name.Name
}

// nothing returns results and body of a function that does nothing.
func nothing(text []byte, set *token.FileSet, fn *ast.FuncDecl) string {
	cut := func(n ast.Node) string {
		return string(text[set.Position(n.Pos()).Offset:set.Position(n.End()).Offset])
	}
	body := ""
	for _, s := range fn.Body.List {
		if endsWait(s) {
			body += cut(s) + "; "
		}
	}
	if fn.Type.Results == nil {
		return " { " + body + "}"
	}
	var list []string
	for _, r := range fn.Type.Results.List {
		of := cut(r.Type)
		for range max(1, len(r.Names)) {
			name := "_"
			if of == "error" {
				name, body = "removed", body+"removed = errRemoved; "
			}
			list = append(list, name+" "+of)
		}
	}
	return " (" + strings.Join(list, ", ") + ") { " + body + "return }"
}

// endsWait tells whether a statement defers Done of something that a function was passed.
func endsWait(s ast.Stmt) bool {
	d, is := s.(*ast.DeferStmt)
	if !is {
		return false
	}
	f, is := d.Call.Fun.(*ast.SelectorExpr)
	if !is || f.Sel.Name != "Done" {
		return false
	}
	passed := false
	ast.Inspect(f.X, func(n ast.Node) bool {
		if id, is := n.(*ast.Ident); is && id.Obj != nil {
			_, passed = id.Obj.Decl.(*ast.Field)
		}
		return true
	})
	return passed
}

// dropImports removes the imports of a text that the file before used, and the text does not.
func dropImports(before *ast.File, text string) (string, error) {
	now, err := parser.ParseFile(token.NewFileSet(), "", text, 0)
	if err != nil {
		return "", err
	}
	had, has := packages(before), packages(now)
	for _, i := range before.Imports {
		names := importNames(i)
		if !slices.ContainsFunc(names, func(n string) bool { return had[n] }) || slices.ContainsFunc(names, func(n string) bool { return has[n] }) {
			continue
		}
		spec := regexp.MustCompile(`(?m)^(import )?\s*(\w+ )?` + regexp.QuoteMeta(i.Path.Value) + `.*\n`)
		text = spec.ReplaceAllString(text, "")
	}
	return text, nil
}

// packages returns the names that a file has before a dot, and does not declare.
func packages(f *ast.File) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, is := n.(*ast.SelectorExpr); is {
			if id, is := s.X.(*ast.Ident); is && id.Obj == nil {
				names[id.Name] = true
			}
		}
		return true
	})
	return names
}

// importNames returns the names that a file may use for an import: the last part of its path, without a version and go-.
func importNames(i *ast.ImportSpec) []string {
	if i.Name != nil {
		return []string{i.Name.Name}
	}
	at, err := strconv.Unquote(i.Path.Value)
	if err != nil {
		return nil
	}
	if last := path.Base(at); regexp.MustCompile(`^v\d+$`).MatchString(last) {
		at = path.Dir(at)
	}
	return []string{path.Base(at), strings.TrimPrefix(path.Base(at), "go-")}
}
