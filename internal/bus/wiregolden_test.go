package bus

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden file anew")

// messages returns all messages on the wire: for each verb the subject, the request, and
// the reply.
func messages() [][3]any {
	o := operatorID{"KEY", "RUN"}
	word := func(verb string, ask any) [3]any { return [3]any{subject("CLIENT", verb), ask, nil} }
	return [][3]any{
		row(Hello), row(Clock), row(Facts), row(Answer), row(Probe), row(Reserve), row(Prepare), row(Start), row(Collect), row(CapturePart), row(Release),
		row(Knobs), row(Tune), row(Alter), row(Revert), row(Rollback), row(TuneEnd), row(Disk.Begin), row(Disk.End), row(Observe.Begin), row(Observe.End),
		row(File.Begin), row(File.End), row(FileSize), row(FileRemove), row(Guests), row(Watch.Begin), row(Watch.End),
		row(Reflect), row(Pairs), row(Samples),
		word(verbAlive, nil), word(verbPart, partRequest{}), {eventSubject("CLIENT"), Event{}, nil},
		{toSubject("AGENT", o, verbAgain), againRequest{}, nil}, {toSubject("AGENT", o, verbBye), nil, nil}, {reSubject(o, "AGENT", wordAlive), lifeSign{}, nil},
		{toSubject(tokenRegistry, o, listHosts.name), HostsRequest{}, HostsReply{}}, {toSubject(tokenRegistry, o, forgetHost.name), ForgetRequest{}, Empty{}},
		{hereSubject("AGENT"), Presence{}, nil}, {spoolSubject("AGENT", tokenAny), spoolMessage{}, nil}, {ackSubject("AGENT", "ID"), ackMessage{}, nil},
		{aliveSubject(o), nil, nil}, {rollSubject("KEY"), nil, nil}, {reSubject(o, "AGENT", wordEvent), Event{}, nil}, {reSubject(o, "AGENT", wordLeave), nil, nil},
	}
}

// row returns the messages of a verb.
func row[Req, Rep any](v Verb[Req, Rep]) [3]any {
	var ask Req
	var reply Rep
	return [3]any{subject("CLIENT", v.name), ask, reply}
}

// TestWire compares the subjects and the JSON of all messages, empty and with every field
// set: programs of other versions read them.
func TestWire(t *testing.T) {
	handled := len(Verbs())
	var got bytes.Buffer
	for _, h := range []string{headerError, headerCode, headerPatience, headerTransfer, headerSize, headerNumber, headerLogin} {
		fmt.Fprintln(&got, "header", h)
	}
	for _, m := range messages() {
		if handled--; handled == -1 && m[0] != subject("CLIENT", verbAlive) {
			t.Errorf("%s stands where all verbs should have been", m[0])
		}
		fmt.Fprintf(&got, "\n%s\n", m[0])
		for i, x := range m[1:] {
			if x == nil {
				continue
			}
			full := reflect.New(reflect.TypeOf(x)).Elem()
			fill(full, nil)
			for _, value := range []any{x, full.Interface()} {
				text, err := json.MarshalIndent(value, "", " ")
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&got, "%s %s\n", []string{"asks", "replies"}[i], text)
			}
		}
	}
	const file = "testdata/wire.golden"
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("-want +got (a change of the wire; accept with -update):\n%s", diff)
	}
}

// fill sets every settable field to a value that is not zero, and enters a recursive type
// once.
func fill(v reflect.Value, within []reflect.Type) {
	if slices.Contains(within, v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), append(within, v.Type()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), append(within, v.Type()))
	case reflect.Map:
		key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, within)
		fill(elem, within)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, elem)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)))
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), within)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), within)
		}
	case reflect.String:
		v.SetString("a")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	}
}
