package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
)

// vim holds the declarations of govmomi's types.
type vim struct {
	types  map[string]ast.Expr
	enums  []string
	embeds map[string][]string // by type: what contains it as its base
}

// metTypes returns the types that a client can meet of which these folders name types and methods: the named ones, what
// their fields refer to, and whatever extends the type of a field that is an interface. Values of the type any can have
// only named types and enumerations, since else nobody reads them.
func metTypes(dir string, users []string) (map[string]bool, error) {
	v, err := readVim(dir)
	if err != nil {
		return nil, err
	}
	met := map[string]bool{}
	for _, user := range users {
		n := len(met)
		if err := v.named(met, user); err != nil {
			return nil, err
		}
		if len(met) == n {
			return nil, fmt.Errorf("%s names no type of vSphere", user)
		}
	}
	for _, name := range v.enums {
		v.add(met, name)
	}
	return met, nil
}

// readVim reads the declarations.
func readVim(dir string) (*vim, error) {
	v := &vim{types: map[string]ast.Expr{}, embeds: map[string][]string{}}
	err := eachFile(dir, func(name string, f *ast.File) {
		for _, d := range f.Decls {
			g, is := d.(*ast.GenDecl)
			if !is || g.Tok != token.TYPE {
				continue
			}
			for _, s := range g.Specs {
				t := s.(*ast.TypeSpec)
				v.types[t.Name.Name] = t.Type
				if name == "enum.go" {
					v.enums = append(v.enums, t.Name.Name)
				}
				if of, is := t.Type.(*ast.StructType); is {
					for _, field := range of.Fields.List {
						if base, is := field.Type.(*ast.Ident); is && len(field.Names) == 0 {
							v.embeds[base.Name] = append(v.embeds[base.Name], t.Name.Name)
						}
					}
				}
			}
		}
	})
	return v, err
}

// named adds the types that a folder names, as types.X, or methods.X for the types of a method.
func (v *vim) named(met map[string]bool, dir string) error {
	return eachFile(dir, func(_ string, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			s, is := n.(*ast.SelectorExpr)
			if !is {
				return true
			}
			switch pkg, _ := s.X.(*ast.Ident); {
			case pkg == nil:
			case pkg.Name == "types":
				v.add(met, s.Sel.Name)
			case pkg.Name == "methods":
				v.add(met, s.Sel.Name+"Response")
			}
			return true
		})
	})
}

// add adds a type and what belongs to it.
func (v *vim) add(met map[string]bool, name string) {
	of := v.types[name]
	if of == nil || met[name] {
		return
	}
	met[name] = true
	if _, is := of.(*ast.InterfaceType); is {
		v.extensions(met, strings.TrimPrefix(name, "Base"))
		return
	}
	ast.Inspect(of, func(n ast.Node) bool {
		if id, is := n.(*ast.Ident); is {
			v.add(met, id.Name)
		}
		return true
	})
}

// extensions adds a type and all that contain it as their base.
func (v *vim) extensions(met map[string]bool, base string) {
	v.add(met, base)
	for _, name := range v.embeds[base] {
		v.extensions(met, name)
	}
}

// eachFile parses the files of a folder, but not tests.
func eachFile(dir string, see func(name string, f *ast.File)) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		see(filepath.Base(file), f)
	}
	return nil
}
