package measure

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"unicode"
)

// Limits of the memory that Decode uses for a text. Documents of thru take 1 to 3 times the length of their JSON in memory.
const (
	mostTimes = 8
	alwaysMay = 16 << 20 // bytes
	mostDeep  = 100      // levels
)

// Decode reads a document of this schema, or of the one before, from untrusted JSON. It returns an error for text that is no document, and for text that would
// take far more memory than its length suggests, before it allocates that memory: encoding/json makes an element of any size from two letters, even if its
// type is wrong. Decode ignores unknown fields, because a minor version may add some.
func Decode(text []byte) (*Document, error) {
	var head struct {
		Schema *string `json:"schema"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, err
	}
	switch {
	case head.Schema == nil:
		return nil, errors.New("it names no schema")
	case *head.Schema != Schema && *head.Schema != schema1:
		return nil, fmt.Errorf("its schema is %.40q; this version of thru reads %q and %q", *head.Schema, Schema, schema1)
	}
	s := scale{text: text, from: json.NewDecoder(bytes.NewReader(text)), left: alwaysMay + mostTimes*len(text), fields: map[reflect.Type]map[string]reflect.Type{}}
	s.from.UseNumber()
	if err := s.value(reflect.TypeFor[Document](), 0); err != nil {
		return nil, err
	}
	if s.copied > 0 {
		text = append(s.whole, text[s.copied:]...)
	}
	var d Document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, err
	}
	if d.Schema == schema1 {
		if err := upgrade(&d, text); err != nil {
			return nil, err
		}
	}
	addBirths(&d)
	nameTargets(&d)
	nameOffloads(&d)
	nameNoHypervisor(&d)
	nameParts(&d)
	nameReasons(&d)
	return &d, nil
}

// addBirths adds the start of connections that opened within a transfer: earlier versions left it out.
func addBirths(d *Document) {
	if d.Transfer == nil {
		return
	}
	for i := range d.Transfer.Runs {
		r := &d.Transfer.Runs[i]
		for _, streams := range [][]Stream{r.Sockets, r.There} {
			for k := range streams {
				if s := &streams[k]; s.TCPStart == nil {
					s.TCPStart = s.TCP.AtBirth()
				}
			}
		}
	}
}

// scale walks through JSON in parallel with its target type and adds up the memory that it takes.
type scale struct {
	text   []byte
	from   *json.Decoder
	left   int    // bytes
	whole  []byte // text up to copied, with integers that jq has rounded replaced
	copied int
	fields map[reflect.Type]map[string]reflect.Type
}

// take subtracts memory that a value will need, and returns an error where none is left.
func (s *scale) take(bytes uintptr) error {
	if s.left -= int(bytes); s.left < 0 {
		return errors.New("it decodes to more than a result of its length can hold")
	}
	return nil
}

// value walks through one JSON value with target type t; t is nil where nothing reads the value.
func (s *scale) value(t reflect.Type, deep int) error {
	if deep > mostDeep {
		return fmt.Errorf("it is nested deeper than %d levels", mostDeep)
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
		if err := s.take(t.Size()); err != nil {
			return err
		}
	}
	if t != nil && reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		t = nil // it decodes itself, and takes no more than its text
	}
	token, err := s.from.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('{'):
		return s.object(t, deep)
	case json.Delim('['):
		return s.array(t, deep)
	}
	if n, ok := token.(json.Number); ok && t != nil {
		if err := s.repair(n, t.Kind()); err != nil {
			return err
		}
	}
	if token != nil && t != nil && (t.Kind() == reflect.Struct || t.Kind() == reflect.Map || t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8) {
		return fmt.Errorf("it has %.20q instead of a %s", fmt.Sprint(token), t.Kind())
	}
	return nil
}

// repair replaces a 64-bit integer that a tool has rounded to float64, as jq and JavaScript do: 18446744073709552000
// for 2^64-1, or 1e+18. It refuses one that no rounding explains, rather than change it silently.
func (s *scale) repair(n json.Number, of reflect.Kind) error {
	f, err := n.Float64()
	if err != nil || f != math.Trunc(f) {
		return nil // of an integer, encoding/json reports it
	}
	_, signed := strconv.ParseInt(n.String(), 10, 64)
	_, unsigned := strconv.ParseUint(n.String(), 10, 64)
	var whole string
	switch exact := big.NewFloat(f); {
	case of == reflect.Uint64 && f > 1<<64, (of == reflect.Int || of == reflect.Int64) && math.Abs(f) > 1<<63:
		return fmt.Errorf("it has the number %.30s, which does not fit the 64 bits of its key", n)
	case of == reflect.Uint64 && unsigned != nil && f >= 0:
		u, _ := exact.Uint64()
		whole = strconv.FormatUint(u, 10)
	case (of == reflect.Int || of == reflect.Int64) && signed != nil:
		i, _ := exact.Int64()
		whole = strconv.FormatInt(i, 10)
	default:
		return nil
	}
	end := int(s.from.InputOffset())
	s.whole = append(append(s.whole, s.text[s.copied:end-len(n)]...), whole...)
	s.copied = end
	return nil
}

func (s *scale) object(t reflect.Type, deep int) error {
	switch {
	case t == nil, t.Kind() == reflect.Struct, t.Kind() == reflect.Map:
	default:
		return fmt.Errorf("it has an object instead of a %s", t.Kind())
	}
	for s.from.More() {
		key, err := s.from.Token()
		if err != nil {
			return err
		}
		var of reflect.Type
		switch {
		case t == nil:
		case t.Kind() == reflect.Struct:
			of = s.fieldsOf(t)[folded(key.(string))]
		default:
			if of = t.Elem(); s.take(of.Size()+t.Key().Size()) != nil {
				return s.take(0)
			}
		}
		if err := s.value(of, deep+1); err != nil {
			return err
		}
	}
	_, err := s.from.Token()
	return err
}

func (s *scale) array(t reflect.Type, deep int) error {
	if t != nil && t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
		return fmt.Errorf("it has an array instead of a %s", t.Kind())
	}
	var of reflect.Type
	if t != nil {
		of = t.Elem()
	}
	for s.from.More() {
		if of != nil {
			if err := s.take(of.Size()); err != nil {
				return err
			}
		}
		if err := s.value(of, deep+1); err != nil {
			return err
		}
	}
	_, err := s.from.Token()
	return err
}

// fieldsOf returns the types of a struct's fields by their folded JSON names, including those of embedded structs.
func (s *scale) fieldsOf(t reflect.Type) map[string]reflect.Type {
	if known, ok := s.fields[t]; ok {
		return known
	}
	all := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() && !f.Anonymous && name != "-" {
			name = cmp.Or(name, f.Name)
			all[folded(name)] = f.Type
		}
	}
	s.fields[t] = all
	return all
}

// folded returns a name as encoding/json compares it: case-insensitive, also for letters beyond ASCII that fold to ASCII ones.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		for {
			next := unicode.SimpleFold(r)
			if next <= r {
				return next
			}
			r = next
		}
	}, name)
}
