package html

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// dress makes of a page's plain text what only a page has: an arrow of "->", and
// of `commands` between backticks and of --flags their own type, in which a flag
// does not break. What is to be pasted stays as it is.
func dress(page []byte) []byte {
	flags := regexp.MustCompile(`(^|[\s(>])(--[a-z][a-z0-9-]{0,24}\b|-[A-Za-z]\b)`) // a longer one is no flag, and has to break
	quoted := regexp.MustCompile("`([^`]+)`")
	var out bytes.Buffer
	verbatim, drawing := 0, 0 // how many of such elements are open
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
		}
		out.Write(text)
		page = page[at:]
		end := bytes.IndexByte(page, '>') + 1
		if end == 0 {
			end = len(page)
		}
		tag := page[:end]
		if verbatim == 0 { // what a screen reader says
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
		page = page[end:]
	}
	return out.Bytes()
}

// elementOf is the name of a tag's element, and whether the tag closes it; empty of
// one that closes itself.
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
