package html

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// dress converts a page's plain text to HTML typography: "->" to an arrow, and `commands` in backticks and
// --flags to their own type. No line breaks within a flag, which is all that changes in text to paste.
func dress(page []byte) []byte {
	flags := regexp.MustCompile(`(^|[\s(>])(--[a-z][a-z0-9-]{0,24}\b|-[A-Za-z]\b)`) // a longer one is no flag, and must break
	quoted := regexp.MustCompile("`([^`]+)`")
	var out bytes.Buffer
	verbatim, pasted, drawing := 0, 0, 0 // number of open elements of this kind
	for len(page) > 0 {
		at := bytes.IndexByte(page, '<')
		if at < 0 {
			at = len(page)
		}
		text := page[:at]
		if verbatim == 0 {
			if drawing == 0 && !bytes.Contains(text, []byte("`")) {
				text = flags.ReplaceAll(text, []byte(`$1<code class="flag">$2</code>`))
			}
			text = bytes.ReplaceAll(text, []byte("-&gt;"), []byte("→"))
			as := "<code>$1</code>"
			if drawing > 0 {
				as = "$1"
			}
			text = quoted.ReplaceAll(text, []byte(as))
		} else if pasted > 0 {
			text = flags.ReplaceAll(text, []byte(`$1<span class="flag">$2</span>`))
		}
		out.Write(text)
		page = page[at:]
		end := bytes.IndexByte(page, '>') + 1
		if end == 0 {
			end = len(page)
		}
		tag := page[:end]
		if verbatim == 0 { // screen readers read it
			tag = bytes.ReplaceAll(tag, []byte("-&gt;"), []byte("→"))
		}
		out.Write(tag)
		name, closes := elementOf(string(page[:end]))
		step := 1
		if closes {
			step = -1
		}
		switch {
		case slices.Contains([]string{"pre", "code", "style", "script", "template", "textarea"}, name):
			verbatim += step
		case name == "svg" || name == "title":
			drawing += step
		}
		if name == "pre" {
			pasted += step
		}
		page = page[end:]
	}
	return out.Bytes()
}

// elementOf returns the name of a tag's element, and whether the tag closes it; "" for a self-closing tag.
func elementOf(tag string) (name string, closes bool) {
	if strings.HasSuffix(tag, "/>") {
		return "", false
	}
	name = strings.TrimSuffix(strings.TrimPrefix(tag, "<"), ">")
	name, closes = strings.CutPrefix(name, "/")
	if at := strings.IndexAny(name, " \n\t"); at >= 0 {
		name = name[:at]
	}
	return name, closes
}
