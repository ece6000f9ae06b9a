package text

import (
	"strings"
	"testing"
)

func TestPage(t *testing.T) {
	const source = `# A page

Some **bold** words of a paragraph that is longer than
a line of 40 columns, with a [link](x.md#y).

    code  stays as it is, however long the line may be

## A part
- an item that is longer than a line of a narrow terminal
  - one below it

  more of the item
1. first

` + "```yaml\na: 1\n```" + `
| name | what |
|---|---|
| a | the first |
`
	const want = `A page

Some bold words of a paragraph that is
longer than a line of 40 columns, with a
link=x.md#y.

    code  stays as it is, however long the line may be

A part
- an item that is longer than a line of
  a narrow terminal
  - one below it

  more of the item
1. first

    a: 1
  name  what
  a     the first
`
	p := New(Options{Width: 40})
	p.Page(source, func(name, target string) string { return name + "=" + target })
	if got := p.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	loud := New(Options{Width: 40, Colour: true})
	loud.Page("# A page\n", nil)
	if got := loud.String(); !strings.Contains(got, "\x1b[1mA page") {
		t.Errorf("a heading in colour is %q", got)
	}
}
