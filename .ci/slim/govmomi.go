package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// govmomi registers each of its 7000 types by a function that runs at every start. In the copy, tables hold them. A client
// of a server reads one with the types that thru can meet; the other has all, and only govmomi's simulator reads it, so
// that the linker drops it from a program without the simulator. What the functions record beside the type, nobody reads.
func govmomi(dir string) error {
	types := filepath.Join(dir, "vim25/types")
	rows, err := takeRows(types)
	if err != nil {
		return err
	}
	met, err := metTypes(types, []string{"internal/hypervisor/vsphere", filepath.Join(dir, "vim25"), filepath.Join(dir, "vim25/soap")})
	if err != nil {
		return err
	}
	var all, some strings.Builder
	for _, r := range rows {
		line := fmt.Sprintf("\t{%q, (*%s)(nil)},\n", r.name, r.of)
		all.WriteString(line)
		if met[r.of] {
			some.WriteString(line)
		}
	}
	client := filepath.Join(dir, "vim25/soap/client.go")
	return errors.Join(
		create(filepath.Join(types, "registered.go"), fmt.Sprintf(registered, some.String(), all.String())),
		rewrite(filepath.Join(types, "registry.go"), `^\treturn func\(name string\) \(reflect\.Type, bool\) \{$`, "\tregister()\n$0", 1),
		rewrite(client, `types\.TypeFunc\(\)`, "types.Met()", 1),
		// thru speaks SOAP.
		rewrite(client, `c\.jsonRoundTrip\(ctx, reqBody, resBody\)`, `errors.New("this build does not speak JSON")`, 1),
	)
}

const registered = `package types

import (
	"reflect"
	"strings"
	"sync"
)

// row is a type by its name in the API.
type row struct {
	name string
	of   any
}

var (
	registering sync.Once
	met         = sync.OnceValue(func() map[string]reflect.Type { return fill(map[string]reflect.Type{}, metRows[:]) })
)

// register adds all types, for TypeFunc.
func register() { registering.Do(func() { fill(t, allRows[:]) }) }

func fill(m map[string]reflect.Type, rows []row) map[string]reflect.Type {
	for _, r := range rows {
		m[r.name] = reflect.TypeOf(r.of).Elem()
	}
	return m
}

// Met finds the types that a client meets.
func Met() Func {
	return func(name string) (reflect.Type, bool) {
		typ, ok := met()[strings.TrimPrefix(name, "vim25:")]
		return typ, ok
	}
}

var metRows = [...]row{
%s}

var allRows = [...]row{
%s}
`

// row is what a function of govmomi registers.
type row struct{ name, of string }

// takeRows removes the functions that register types, and returns what they register.
func takeRows(dir string) ([]row, error) {
	registers := regexp.MustCompile(`(?m)^func init\(\) \{\n` +
		`\tt\["([^"]*)"\] = reflect\.TypeOf\(\(\*([A-Za-z0-9_]*)\)\(nil\)\)\.Elem\(\)\n` +
		`(?:\tminAPIVersionForType\[.*\n|\tminAPIVersionForEnumValue\[.*\{\n(?:\t\t.*\n)*?\t\}\n)*\}\n`)
	var rows []row
	for _, name := range []string{"types", "enum", "if"} {
		file := filepath.Join(dir, name+".go")
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, m := range registers.FindAllSubmatch(text, -1) {
			rows = append(rows, row{string(m[1]), string(m[2])})
		}
		text = append(registers.ReplaceAll(text, nil), "\nvar _ reflect.Type\n"...)
		if left := regexp.MustCompile(`(?m)^\tt\[".*`).FindAllString(string(text), -1); len(left) > 0 {
			return nil, fmt.Errorf("%s: %w: it registers in another way: %s", name, errUnknown, strings.Join(left, ""))
		}
		if err := create(file, string(text)); err != nil {
			return nil, err
		}
	}
	if len(rows) < 7000 {
		return nil, fmt.Errorf("%w: it registers %d types", errUnknown, len(rows))
	}
	return rows, nil
}
