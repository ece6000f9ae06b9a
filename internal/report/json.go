package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"thru/internal/fault"
	"thru/internal/measure"
)

// MaxDocument limits what ReadJSON reads, in bytes.
const MaxDocument = 64 << 20

// JSON prints the document of docs/result.md: one indented value and a newline. It writes nothing if encoding
// fails.
func JSON(w io.Writer, d *measure.Document) error {
	return encode(w, "result", measure.Complete(d))
}

// encode prints one value.
func encode(w io.Writer, what string, value any) error {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(value); err != nil {
		return fmt.Errorf("report: encoding the %s: %w", what, err)
	}
	if _, err := w.Write(withoutControls(out.Bytes())); err != nil {
		return fmt.Errorf("report: writing JSON: %w", err)
	}
	return nil
}

// withoutControls escapes U+007F to U+009F, which JSON allows unescaped and which control a terminal.
func withoutControls(text []byte) []byte {
	control := func(r rune) bool { return r >= 0x7f && r <= 0x9f }
	if !bytes.ContainsFunc(text, control) {
		return text
	}
	var out bytes.Buffer
	for _, r := range string(text) { // the encoder writes only valid UTF-8
		if control(r) {
			fmt.Fprintf(&out, "\\u%04x", r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.Bytes()
}

// ReadJSON reads one document of the schema that this program writes. It ignores unknown fields: a minor
// version may add some.
func ReadJSON(r io.Reader) (*measure.Document, error) {
	const hint = "give a file that `thru ... --json` has written"
	text, err := io.ReadAll(io.LimitReader(r, MaxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("report: reading a result: %w", err)
	}
	if len(text) > MaxDocument {
		return nil, fault.Failf(hint, "report: reading a result: more than %d MiB", MaxDocument>>20)
	}
	d, err := measure.Decode(text)
	if err != nil {
		return nil, fault.Failf(hint, "report: reading a result: %w", err)
	}
	return d, nil
}
